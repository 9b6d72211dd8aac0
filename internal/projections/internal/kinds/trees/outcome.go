package trees

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// levelsMax is how many levels a tree can have. It bounds the writes that a cycle causes, too.
const levelsMax = 64

// The depths of items that show nothing.
const (
	none    = 0             // in a cycle, below one, below an item that is too deep, or unreadable or below one that is
	tooDeep = levelsMax + 1 // just below the deepest level
)

// outcome is what an item shows: at depth 1 it is a root.
type outcome struct {
	depth   int
	path    change.Value // absent: a name is missing here or above, or the rule shows none
	lineage change.Value // absent: the rule shows none
}

// shows reports whether the item shows something.
func (o outcome) shows() bool { return o.depth > none && o.depth < tooDeep }

// digest is what the stamp of the outcome holds behind its version: after the digest of the values their depth, so that a change of
// the depth alone is a change of the item.
func (o outcome) digest(b *plan.Binding) string {
	return plan.Digest(b, o.values(b)) + stamp.AppendedNumber(o.depth)
}

func (o outcome) values(b *plan.Binding) []change.Value { return Of(b.Rule).values(o.path, o.lineage) }

func (o outcome) equal(other outcome) bool {
	return o.depth == other.depth && o.path.Equal(other.path) && o.lineage.Equal(other.lineage)
}

// view is an item as its children see it.
type view struct {
	exists bool
	known  bool // the engine wrote what the item shows, for the parent that it has; if not, a worker is about to
	outcome
}

// equal reports whether children see the same.
func (v view) equal(other view) bool {
	return v.exists == other.exists && v.known == other.known && (!v.known || v.outcome.equal(other.outcome))
}

// contextOf is the context of an item's stamp: it names its parent, if it has one.
func contextOf(p *plan.Planner, key change.Key, l children.Link) string {
	if !l.Refers {
		return stamp.Context(p.Incarnation, key, "")
	}
	return stamp.Context(p.Incarnation, key, l.Parent.String())
}

// viewOf is an item as its children see it; nil is none.
func viewOf(p *plan.Planner, b *plan.Binding, key change.Key, item change.Image) view {
	l := children.LinkOf(p, b, key, item)
	if !l.IsChild {
		return view{}
	}
	return viewIn(p, b, key, item, l)
}

func viewIn(p *plan.Planner, b *plan.Binding, key change.Key, item change.Image, l children.Link) view {
	v := view{exists: true}
	s, ok := stamp.Read(item.Lookup(b.Stamp), contextOf(p, key, l))
	if !ok {
		return v
	}
	mark, told := strings.CutPrefix(s.Digest, plan.DigestOf(b, item))
	depth, ok := stamp.ReadAppendedNumber(mark)
	if !told || !ok {
		return v // another program wrote over it
	}
	v.known, v.depth = true, depth
	v.path, v.lineage = Of(b.Rule).heldBy(item)
	return v
}

// nameOf is the name of an item in a path; false if it has none. The error is an *ItemError.
func nameOf(b *plan.Binding, m *rules.Match, item change.Image) (string, bool, error) {
	f := Of(b.Rule)
	if f.name == "" {
		return "", false, nil
	}
	return b.Rule.Source.TextOf(f.name, m, item)
}

// nameAndID is what an item gives to its own outcome: its name, if it has one, and its id.
type nameAndID struct {
	name, id string
	named    bool
}

func ownOf(b *plan.Binding, m *rules.Match, item change.Image) nameAndID {
	name, named, _ := nameOf(b, m, item) // an item whose name cannot be read has a bad link
	return nameAndID{name, b.Rule.IDOf(m), named}
}

// below is what an item shows whose parent is as given: a parent that does not exist makes it a root.
func (o nameAndID) below(b *plan.Binding, parent view) outcome {
	f := Of(b.Rule)
	switch {
	case !parent.exists:
		parent.outcome = outcome{}
	case !parent.shows() || contains(parent.lineage, o.id):
		return outcome{}
	case parent.depth == levelsMax:
		return outcome{depth: tooDeep}
	}
	found := outcome{depth: parent.depth + 1}
	if f.path != "" && o.named && (!parent.exists || parent.path.Kind() == change.KindString) {
		found.path = change.String(parent.path.Text() + "/" + o.name)
	}
	if f.lineage != "" {
		found.lineage = change.List(append(slices.Clone(idsIn(parent.lineage)), change.String(o.id)))
	}
	return found
}

func idsIn(lineage change.Value) []change.Value {
	if lineage.Kind() != change.KindList {
		return nil
	}
	return lineage.List()
}

func contains(lineage change.Value, id string) bool {
	return slices.ContainsFunc(idsIn(lineage), change.String(id).Equal)
}

// outcomeWithoutParent is what an item shows that refers to no parent: nothing, if that is because it cannot be read.
func outcomeWithoutParent(b *plan.Binding, l children.Link, m *rules.Match, item change.Image) outcome {
	if l.Bad != nil {
		return outcome{}
	}
	return ownOf(b, m, item).below(b, view{})
}
