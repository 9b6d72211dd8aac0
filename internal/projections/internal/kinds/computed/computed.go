// Package computed is the kind of rule that writes on an item what it works out from
// this item alone: index keys, sort keys made of several attributes, numbers.
//
// No ledger remembers what such a rule wrote: what an item must hold is a function of the
// item. So a worker compares, and a write is conditional on the attributes that the worker read.
package computed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// Set is the kind.
var Set rules.Kind = kind{}

type kind struct{}

const word = "set"

var traits = rules.Traits{
	Number: 6,
	Noun:   "a set rule",
	Plural: "set rules",
	Keys: []rules.Key{
		{Name: "of", Required: true, Hint: "name the entity on whose items the attributes are: `of: Post`"},
		{Name: "where"},
	},
	SourceField: "of",
	TargetField: "of",
}

// Word is the key that gives a rule the kind.
func (kind) Word() string { return word }

// Traits are what the language must know of the kind.
func (kind) Traits() *rules.Traits { return &traits }

// Read reads the templates.
func (kind) Read(d *rules.Declaration) { d.ReadTemplates(word) }

// Check reports a rule that writes nothing.
func (kind) Check(d *rules.Declaration) {
	if d.IsEmpty(word) {
		d.Report(rules.Word{At: d.PlaceOf(word)}, "rule.no_attributes",
			"name an attribute and what it holds, as in `set: { GSI1PK: \"STATUS#${status}\" }`", "set names no attribute")
	}
}

// Compile makes the Form of a rule.
func (kind) Compile(r *rules.Rule, _ *rules.Declaration) rules.Form {
	f := &Form{rule: r}
	for i := range r.Attributes {
		f.order = append(f.order, i)
	}
	slices.SortFunc(f.order, func(x, y int) int { return cmp.Compare(r.Attributes[x].As, r.Attributes[y].As) })
	return f
}

// Form works out the attributes of a set rule.
type Form struct {
	rule  *rules.Rule
	order []int // of the rule's Attributes, by name: the order in the file means nothing
}

var _ rules.Setter = (*Form)(nil)

// Of returns the Form of a set rule; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Values implements rules.Setter: all attributes are absent if where does not hold, if something
// that one of them needs is missing, or if the rule cannot read the item. If several things cannot be read, the
// attribute whose name comes first tells.
func (f *Form) Values(m *rules.Match, img change.Image) ([]change.Value, error) {
	none := make([]change.Value, len(f.rule.Attributes))
	holds, err := f.rule.Wanted(m, img)
	if err != nil || !holds {
		return none, err
	}
	values, complete := make([]change.Value, len(f.rule.Attributes)), true
	for _, i := range f.order {
		a := f.rule.Attributes[i]
		if values[i] = a.Constant; a.Template == nil {
			continue
		}
		v, ok, err := f.rule.Worked(a, m, img)
		if err != nil {
			return none, err
		}
		values[i], complete = v, complete && ok
	}
	if !complete {
		return none, nil
	}
	return values, nil
}

// Meaning returns a line for each attribute.
func (f *Form) Meaning() []string {
	lines := make([]string, len(f.rule.Attributes))
	for i, a := range f.rule.Attributes {
		text := rules.Canonical(a.Constant)
		if a.Template != nil {
			text = fmt.Sprintf("template %q", a.Template)
		}
		lines[i] = fmt.Sprintf("set %q %s", a.As, text)
	}
	return lines
}

// Says returns nothing: the language compares templates itself.
func (f *Form) Says() []rules.Said { return nil }

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	return rules.Cost{WriteUnits: 1, Text: "1 WU per KB of an item whose values change"}
}

// Replays implements rules.Form.
func (f *Form) Replays() string {
	return fmt.Sprintf("writes %s on every %s for which it differs, when the pass reaches it",
		strings.Join(f.rule.Writes, ", "), f.rule.Target.Name)
}

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need {
	return []rules.Need{{Action: "dynamodb:ConditionCheckItem", Why: "ConditionCheckItem is for mirror, copy, set and tree rules."}}
}
