// Package mirrors is the kind of rule that makes an item for each of its sources.
package mirrors

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// Mirror is the kind.
var Mirror rules.Kind = kind{}

type kind struct{}

var traits = rules.Traits{
	Number: 2,
	Noun:   "a mirror",
	Plural: "mirrors",
	Keys: []rules.Key{
		{Name: "as", Required: true, Hint: "name the entity that the mirror items are: `as: Member`"},
		{Name: "attributes"},
		{Name: "set"},
		{Name: "each"},
		{Name: "where"},
		{Name: "by"},
	},
	SourceField:     "mirror",
	TargetField:     "as",
	AttributesField: "attributes",
	MakesItems:      true,
	WholeKey:        &rules.WholeKey{Reason: "a mirror item needs its whole key", Hint: "fill {variables}"},
}

// Word is the key that gives a rule the kind.
func (kind) Word() string { return "mirror" }

// Traits are what the language must know of the kind.
func (kind) Traits() *rules.Traits { return &traits }

// Read reads the constants.
func (kind) Read(d *rules.Declaration) { d.ReadConstants("set") }

// Check reports nothing: the language checks all of it.
func (kind) Check(*rules.Declaration) {}

// Compile makes the Form of a rule.
func (kind) Compile(r *rules.Rule, _ *rules.Declaration) rules.Form { return &Form{r} }

// Form makes the items of a mirror rule.
type Form struct{ rule *rules.Rule }

// Of returns the Form of a mirror rule; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Item says which item mirrors a source item, and what it holds. A nil error and
// false mean none. Attributes that the source does not have are left out, NULL is
// copied as it is. The error is an *ItemError.
func (f *Form) Item(m *rules.Match, img change.Image) (rules.MadeItem, bool, error) {
	r := f.rule
	ok, err := r.Wanted(m, img)
	if err != nil || !ok {
		return rules.MadeItem{}, false, err
	}
	key, ok, err := r.JoinedKey(m, img)
	if err != nil || !ok {
		return rules.MadeItem{}, false, err
	}
	item := rules.MadeItem{Key: key, Attributes: make(map[string]change.Value, len(r.Attributes))}
	for _, a := range r.Attributes {
		value := a.Constant
		if value.Kind() == change.KindAbsent {
			value = r.Source.Value(a.From, m, img)
		}
		if value.Kind() != change.KindAbsent {
			item.Attributes[a.As] = value
		}
	}
	return item, true, nil
}

// Meaning returns a line for each attribute.
func (f *Form) Meaning() []string {
	lines := make([]string, len(f.rule.Attributes))
	for i, a := range f.rule.Attributes {
		lines[i] = fmt.Sprintf("set %q %q %s", a.As, a.From, rules.Canonical(a.Constant))
	}
	return lines
}

// Says returns nothing: a mirror rule says what all rules say.
func (f *Form) Says() []rules.Said { return nil }

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	each, claimed := f.rule.Each.Given(), !f.rule.Injective
	switch {
	case each && claimed:
		return rules.Cost{WriteUnits: 6, Text: "2 WU per change and 2 + 2 WU per element that changes: for its item and its claim"}
	case each:
		return rules.Cost{WriteUnits: 4, Text: "2 WU per change and 2 WU per element that changes"}
	case claimed:
		return rules.Cost{WriteUnits: 6, Text: "2 + 2 WU per change + 2 WU for its claim"}
	}
	return rules.Cost{WriteUnits: 4, Text: "2 + 2 WU per change"}
}

// Replays implements rules.Form.
func (f *Form) Replays() string {
	return fmt.Sprintf("writes %s items for %s, when the pass reaches them", f.rule.Target.Name, f.rule.Source.Name)
}

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need {
	return []rules.Need{
		{Action: "dynamodb:ConditionCheckItem", Why: "ConditionCheckItem is for mirror, copy, set and tree rules."},
		{Action: "dynamodb:DeleteItem", Why: "DeleteItem takes mirror items away whose source is gone."},
	}
}
