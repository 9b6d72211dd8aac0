// Package deletions is the kind of rule that deletes the children of a deleted parent. It is the only kind that deletes items which
// dynamill did not make (promise 8), and what it does depends on what happened (promise 11): no child outlives its parent's deletion,
// and no child of a living parent is deleted.
package deletions

import (
	"fmt"

	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/rules"
)

// Delete is the kind.
var Delete rules.Kind = kind{}

type kind struct {
	children.Following[kind]
	childaudit.Auditing[kind]
}

var traits = rules.Traits{
	Number: 12,
	Noun:   "a delete rule",
	Plural: "delete rules",
	Keys: []rules.Key{
		{Name: "with", Required: true, Hint: "name the entity whose deletion deletes them, too: `with: Post`"},
		{Name: "by"},
	},
	SourceField: "with",
	TargetField: "delete",
	HasParent:   true,
	Deletes:     true,
}

// Word is the key that gives a rule the kind.
func (kind) Word() string { return "delete" }

// Traits are what the language must know of the kind.
func (kind) Traits() *rules.Traits { return &traits }

// Read reads nothing: the rule has no keys of its own.
func (kind) Read(*rules.Declaration) {}

// Check reports nothing: the language checks all of it.
func (kind) Check(*rules.Declaration) {}

// Compile makes the Form of a rule.
func (kind) Compile(r *rules.Rule, _ *rules.Declaration) rules.Form { return &Form{r} }

// Form is what a delete rule means: nothing beside its entities and its join.
type Form struct{ rule *rules.Rule }

// Meaning returns nothing: the kind says it.
func (*Form) Meaning() []string { return nil }

// Says returns nothing: the language compares entities and joins itself.
func (*Form) Says() []rules.Said { return nil }

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	parent, checks, once := f.rule.Source.Name, 4, 1
	if f.rule.ByUnique {
		checks, once = 6, 8
	}
	c := rules.Cost{WriteUnits: 2, Text: fmt.Sprintf("DELETES %s items: 2 WU per child and KB, %d WU for each %d of them, and %d WU, "+
		"when a %s is deleted", f.rule.Target.Name, checks, removedAtOnce, once, parent)}
	if f.rule.ByUnique {
		c.Text += fmt.Sprintf(" + 4 WU per %s that comes", parent)
	}
	if !f.rule.Collection {
		c.Text += " + 1 WU per child that comes or goes, 2 WU if it changes its parent"
	}
	return c
}

// Replays implements rules.Form.
func (f *Form) Replays() string {
	text := fmt.Sprintf("deletes no %s whose %s is gone already, unless the stream still holds that deletion: `dynamill verify` lists the "+
		"others", f.rule.Target.Name, f.rule.Source.Name)
	if !f.rule.Collection {
		text = fmt.Sprintf("notes in the state table to which %s every %s belongs, when the pass reaches it; it ", f.rule.Source.Name,
			f.rule.Target.Name) + text
	}
	return text
}

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need {
	all := []rules.Need{
		{Action: "dynamodb:ConditionCheckItem", Why: "ConditionCheckItem lets a delete rule check that a parent is gone."},
		{Action: "dynamodb:DeleteItem", Why: "DeleteItem deletes the children of deleted parents, as delete rules ask for."},
	}
	if f.rule.Collection {
		all = append(all, rules.Need{Action: "dynamodb:Query",
			Why: "Query finds the children of delete rules that lie in their parent's collection."})
	}
	return all
}
