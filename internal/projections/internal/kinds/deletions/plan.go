package deletions

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

var (
	_ children.Marking  = kind{}
	_ childaudit.Family = kind{}
	_ host.Kind         = kind{}
	_ host.Postponer    = kind{}
	_ host.Sweeper      = kind{}
	_ host.Grouper      = kind{}
	_ explaining.Family = kind{}
)

// Reads implements children.Family.
func (kind) Reads(b *plan.Binding) []string { return b.Rule.JoinReads }

// Concerns implements children.Family: the parent was deleted, or is there, and was not before. One that became an item of another entity
// was not deleted.
func (kind) Concerns(_ *plan.Planner, _ *plan.Binding, v plan.View) bool {
	if v.New != nil {
		return v.Old == nil
	}
	return v.Record.New == nil
}

// Overwritten implements children.Family: the rule writes nothing.
func (kind) Overwritten(*plan.Planner, *plan.Binding, plan.View, children.Link) (due, correction bool) {
	return false, false
}

// Write implements children.Family: Remove does it.
func (kind) Write(context.Context, *host.Run, target.Sender, *children.Filling) (target.Outcome, error) {
	return target.Written, nil
}

// Unlinked implements children.Family: an item without a parent stays as it is.
func (kind) Unlinked(context.Context, *host.Run, plan.ItemRule, *children.Fill) error { return nil }

// Needs implements children.Family.
func (kind) Needs(*plan.Binding, change.Image) bool { return false }

// Tell implements plan.Family: it also tells as which parent an image shows its item.
func (k kind) Tell(late *plan.Late, b *plan.Binding, m *rules.Match, img change.Image) {
	k.Following.Tell(late, b, m, img)
	if m.Entity != b.Rule.Source {
		return
	}
	key := change.Key{} // of the item itself
	if b.Rule.ByUnique {
		value, ok, err := b.Rule.Source.UniqueValue(m, img)
		if err != nil || !ok {
			return
		}
		key = change.Key{Partition: value}
	}
	if late.Shown == nil {
		late.Shown = map[string]change.Key{}
	}
	late.Shown[b.ID] = key
}

// RederiveParent implements children.Marking. It plans the deletion mark if late records show that the item was deleted as a parent and it
// is no parent now. It does so, too, if a late record cannot be read, the item is gone, and only a parent can have its key. If the item is
// a parent again, it raises the parent's row: a stalled worker can then not put the former mark. For a living parent that is found by a
// unique value it asks for that value, because its roll-up updates the list of contested values.
func (kind) RederiveParent(pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	gone, asked := it.Late.Gone[b.ID], children.Asked(pl)
	if b.Rule.ByUnique && it.Scope == plan.Everything && it.Match.Entity == b.Rule.Source {
		children.AskValue(pl, b, &it.Match, it.Image, 0)
	}
	switch unread := it.Image == nil && it.Late.Unread && len(b.Rule.Source.Equals) == 0 && b.Rule.Source.HasKey(it.Key); {
	case b.Rule.ByUnique:
		for _, parent := range gone {
			g := plan.GroupRef{Binding: b, Group: parent.Partition}
			pl.Rollups.OrPut(g, plan.Rollup{})
			v := asked.Values.OrPut(g, children.Value{})
			v.Deleted = append(v.Deleted, it.Key)
		}
	case it.Match.Entity != b.Rule.Source && (len(gone) > 0 || unread):
		asked.FanOuts.Put(plan.ItemRule{Binding: b, Key: it.Key}, &children.FanOut{Position: it.Late.Position})
	case (len(gone) > 0 || it.Late.Back[b.ID]) && !it.Late.Position.IsZero():
		back := &children.FanOut{Position: it.Late.Position, Given: it.Image, Back: true}
		asked.FanOuts.Put(plan.ItemRule{Binding: b, Key: it.Key}, back)
	}
}

// Explain implements plan.Family.
func (kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	asked, parent, child := children.Asked(pl), b.Rule.Source.Name, b.Rule.Target.Name
	const ifGone = ", unless there is one again"
	for g, v := range asked.Values.All() {
		if g.Binding == b && len(v.Deleted) > 0 {
			tell("the "+parent+" found as "+g.Group+" was deleted", "delete every "+child+" that names it"+ifGone)
		}
	}
	for id, f := range asked.FanOuts.All() {
		switch {
		case id.Binding != b:
		case f.Given != nil || f.Back:
			tell("the "+parent+" is there", "forget its former deletion, if there was one")
		default:
			tell("the "+parent+" was deleted", "delete every "+child+" of "+id.Key.String()+ifGone)
		}
	}
	for id, f := range asked.Fills.All() {
		switch {
		case id.Binding != b:
		case f.Bad != nil:
			tell("cannot name its parent: "+f.Bad.Reason, "park it ("+f.Bad.Code+")")
		case f.Gone && !b.Rule.Collection:
			tell("the child is gone", "drop its reference")
		case f.Refers:
			tell("refers to "+children.NameOf(b, f.Parent), "delete it if that was deleted, and is not there")
		}
	}
}

// Takes implements childaudit.Family.
func (kind) Takes() string { return "goes with" }

// child is the kind of drift of an item that goes with its parent, and is there without it.
const child drift.Kind = "child"

// Drift implements childaudit.Family.
func (kind) Drift() drift.Kind { return child }

// Gives implements childaudit.Family: whether the parent is there.
func (kind) Gives(_ *plan.Planner, _ *plan.Binding, _ change.Key, parent change.Image) string {
	if parent == nil {
		return ""
	}
	return there
}

const there = "there"

// Holds implements childaudit.Family.
func (kind) Holds(*plan.Planner, *plan.Binding, *audit.Subject, children.Link) string { return "" }

// Agree implements childaudit.Family.
func (kind) Agree(_ *plan.Binding, gives, _ string) bool { return gives == there }

// Alone implements childaudit.Family: an item that names no parent may stay.
func (kind) Alone(*plan.Planner, *plan.Binding, *audit.Subject, children.Link, func(drift.Fact)) {}
