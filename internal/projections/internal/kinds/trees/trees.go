// Package trees is the kind of rule that writes on each item of an entity what the items on its way to the root give together: the
// path of their names, and the list of their ids.
//
// Such a rule is a copy along itself. What an item shows follows from what its parent shows, and from the item's own name and id. A
// worker's own write on a parent is a change for the parent's children: so a change goes down level by level.
package trees

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/rules"
)

// Tree is the kind.
var Tree rules.Kind = kind{}

type kind struct {
	children.Following[kind]
	childaudit.Auditing[kind]
}

const word = "tree"

// The keys of the rule file that name what a rule writes.
const (
	pathKey    = "path"
	lineageKey = "lineage"
)

var traits = rules.Traits{
	Number: 13,
	Noun:   "a tree",
	Plural: "trees",
	Keys: []rules.Key{
		{Name: "by", Required: true, Hint: "say which attribute holds the parent: `by: { folderId: parentId }`"},
		{Name: pathKey},
		{Name: lineageKey},
	},
	SourceField:     word,
	TargetField:     word,
	AttributesField: pathKey,
	HasParent:       true,
}

// Word is the key that gives a rule the kind.
func (kind) Word() string { return word }

// Traits are what the language must know of the kind.
func (kind) Traits() *rules.Traits { return &traits }

// Read reads the attribute of the ids.
func (kind) Read(d *rules.Declaration) {
	lineage := d.Attribute(lineageKey)
	d.Own = lineage.Text
	if lineage.Given() {
		d.Written = append(d.Written, rules.Written{As: lineage})
	}
}

// Check reports a rule that writes nothing, or two paths.
func (kind) Check(d *rules.Declaration) {
	var paths []rules.Written
	for _, w := range d.Written {
		if w.From.Given() {
			paths = append(paths, w)
		}
	}
	switch {
	case len(paths) > 1:
		d.Report(paths[1].As, "rule.path", "make a second rule for another path", "a tree has one path; this is the second")
	case len(d.Written) == 0 && !d.HasKey(pathKey) && !d.HasKey(lineageKey):
		d.Report(rules.Word{At: d.PlaceOf(word)}, "rule.no_attributes",
			"name what it shows: `path: name as path`, `lineage: folderIds`, or both", "this tree writes no attribute")
	}
}

// Compile makes the Form of a rule.
func (kind) Compile(r *rules.Rule, d *rules.Declaration) rules.Form {
	f := &Form{rule: r, lineage: d.Own.(string)}
	for _, a := range r.Attributes {
		if a.From != "" {
			f.name, f.path = a.From, a.As
		}
	}
	return f
}

// Form is what a tree rule reads and writes.
type Form struct {
	rule                *rules.Rule
	name, path, lineage string // attributes; "" for none
}

var _ rules.Nester = (*Form)(nil)

// Of returns the Form of a tree rule; nil of any other rule.
func Of(r *rules.Rule) *Form {
	f, _ := r.Form.(*Form)
	return f
}

// Nested implements rules.Nester.
func (f *Form) Nested() (name, path, lineage string) { return f.name, f.path, f.lineage }

// Meaning returns a line for each attribute.
func (f *Form) Meaning() []string {
	return []string{fmt.Sprintf("path %q %q", f.path, f.name), fmt.Sprintf("lineage %q", f.lineage)}
}

// Says returns the attribute of the ids.
func (f *Form) Says() []rules.Said { return []rules.Said{{Key: lineageKey, Text: f.lineage}} }

// Cost implements rules.Form.
func (f *Form) Cost() rules.Cost {
	return rules.Cost{WriteUnits: 2, Text: fmt.Sprintf("1 WU and 1 WU per KB of each %[1]s that comes, and of each that moves or is renamed, "+
		"with all below it + 1 WU per %[1]s that comes or goes, 2 WU if it changes its parent", f.rule.Target.Name)}
}

// Replays implements rules.Form.
func (f *Form) Replays() string {
	return fmt.Sprintf("writes %s on every %s, level by level", strings.Join(f.rule.Writes, ", "), f.rule.Target.Name)
}

// Needs implements rules.Form.
func (f *Form) Needs() []rules.Need {
	return []rules.Need{{Action: "dynamodb:ConditionCheckItem", Why: "ConditionCheckItem is for mirror, copy, set and tree rules."}}
}

// values are those of the rule's Writes.
func (f *Form) values(path, lineage change.Value) []change.Value {
	values := make([]change.Value, len(f.rule.Writes))
	for i, name := range f.rule.Writes {
		if values[i] = lineage; name == f.path && f.path != "" {
			values[i] = path
		}
	}
	return values
}

// heldBy is what an item holds in the two attributes, right or wrong; absent for one that the rule does not write.
func (f *Form) heldBy(item change.Image) (path, lineage change.Value) {
	if f.path != "" {
		path = item.Lookup(f.path)
	}
	if f.lineage != "" {
		lineage = item.Lookup(f.lineage)
	}
	return path, lineage
}

// reads are the attributes of an item on which what it shows depends beside its parent.
func (f *Form) reads() []string {
	return slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(f.rule.JoinReads), f.rule.Reads...))))
}
