// Package copies is the kind of rule that gives the children of a parent copies
// of the parent's attributes.
package copies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/rules"
)

// Copy is the kind.
var Copy rules.Kind = kind{}

type kind struct {
	children.Following[kind]
	childaudit.Auditing[kind]
}

var traits = rules.Traits{
	Number: 1,
	Noun:   "a copy",
	Plural: "copies",
	Keys: []rules.Key{
		{Name: "from", Required: true, Hint: "name the entity that has the attributes: `from: User`"},
		{Name: "to", Required: true, Hint: "name the entity that gets them: `to: Comment`"},
		{Name: "if_missing"},
		{Name: "by"},
	},
	SourceField:     "from",
	TargetField:     "to",
	AttributesField: "copy",
	HasParent:       true,
}

// Word is the key that gives a rule the kind.
func (kind) Word() string { return "copy" }

// Traits are what the language must know of the kind.
func (kind) Traits() *rules.Traits { return &traits }

// Read reads the substitutes.
func (kind) Read(d *rules.Declaration) { d.Own = d.Constants("if_missing") }

// Check reports a substitute for an attribute that the rule does not copy.
func (kind) Check(d *rules.Declaration) {
	names := d.Writes()
	for _, c := range substitutes(d) {
		if !slices.Contains(names, c.Name.Text) {
			d.ReportUnknown(c.Name, "rule.unknown_attribute", names, "if_missing names %q, which this rule does not copy to", c.Name.Text)
		}
	}
}

func substitutes(d *rules.Declaration) []rules.Constant { return d.Own.([]rules.Constant) }

// Compile makes the Form of a rule.
func (kind) Compile(r *rules.Rule, d *rules.Declaration) rules.Form {
	f := &Form{rule: r, IfMissing: map[string]change.Value{}}
	for _, c := range substitutes(d) {
		f.IfMissing[c.Name.Text] = c.Value
	}
	return f
}

// Form is what a copy rule means beside its Attributes.
type Form struct {
	IfMissing map[string]change.Value // by the child's attribute: what it is where the parent has none

	rule *rules.Rule
}

// Of returns the Form of a copy rule; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Given returns a value for each of the rule's Attributes, absent where the
// children's attribute must be absent. A nil parent is one that does not exist.
// NULL is a value like any other.
func (f *Form) Given(parent change.Image) []change.Value {
	values := make([]change.Value, len(f.rule.Attributes))
	for i, a := range f.rule.Attributes {
		if parent != nil {
			values[i] = f.rule.Source.ValueOf(a.From, parent)
		}
		if values[i].Kind() == change.KindAbsent {
			values[i] = f.IfMissing[a.As]
		}
	}
	return values
}

// Meaning returns a line for each attribute.
func (f *Form) Meaning() []string {
	lines := make([]string, len(f.rule.Attributes))
	for i, a := range f.rule.Attributes {
		lines[i] = fmt.Sprintf("copy %q %q %s", a.As, a.From, rules.Canonical(f.IfMissing[a.As]))
	}
	return lines
}

// Says returns the substitutes.
func (f *Form) Says() []rules.Said {
	return []rules.Said{{Key: "if_missing", Text: rules.ConstantsText(f.IfMissing)}}
}

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	c := rules.Cost{WriteUnits: 1, Text: "1 WU per child and KB"}
	if !f.rule.Collection {
		c.Text += " + 1 WU per child that comes or goes, 2 WU if it changes its parent"
	}
	if f.rule.ByUnique {
		c.Text += fmt.Sprintf(" + 1 WU per %s that changes, 9 WU if its %s does", f.rule.Source.Name, f.rule.Source.Unique)
	}
	return c
}

// Replays implements rules.Form.
func (f *Form) Replays() string {
	return fmt.Sprintf("writes %s on every %s, when the pass reaches it", strings.Join(f.rule.Writes, ", "), f.rule.Target.Name)
}

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need {
	all := []rules.Need{{Action: "dynamodb:ConditionCheckItem", Why: "ConditionCheckItem is for mirror, copy, set and tree rules."}}
	if f.rule.Collection {
		all = append(all, rules.Need{Action: "dynamodb:Query",
			Why: "Query finds the children of copy rules that lie in their parent's collection."})
	}
	return all
}
