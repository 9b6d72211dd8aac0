package copies

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// fanOut writes changed parents to their children: the parent's position for
// the rule is raised first, then the children are looked up. A child that
// comes meanwhile reads the parent after putting its reference, so either it
// sees the new parent or the lookup sees it. What lies beyond the bound becomes a task.
func (w run) fanOut(ctx context.Context, parents *plan.OrderedMap[plan.ItemRule, FanOut]) {
	for id, f := range parents.All() {
		w.Ended(ctx, f.First, id.Binding, id.Key, w.fanOutParent(ctx, id, f))
	}
}

func (w run) fanOutParent(ctx context.Context, id plan.ItemRule, f *FanOut) error {
	v := stamp.VersionAt(id.Epoch, f.Position)
	raised, err := w.raiseParent(ctx, id, v)
	if err != nil || !raised {
		return err // or a later change of the parent is being written already
	}
	write := parentWrite{b: id.Binding, parent: id.Key, version: v, values: f.Values}
	if !f.Deleted {
		w.Missing[id.Binding].Forget(id.Key.String())
	}
	atOnce := w.FanOutNow()
	referring, next, err := w.writeChildren(ctx, write, atOnce)
	switch {
	case err != nil:
		return err
	case len(next) > 0:
		return w.putTask(ctx, state.Task{Parent: id, At: v, Cursor: next, Children: atOnce, Referring: referring})
	case referring > 0 && !f.Deleted:
		w.Missing[id.Binding].NoteTarget(id.Key.String())
	case referring > 0:
		w.Missing[id.Binding].NoteMissing(id.Key.String(), func(p *sightings.TargetSources) { p.Count(int64(referring)) })
	case referring == 0 && f.Deleted:
		return w.retireParent(ctx, id, v)
	}
	return nil
}

// raiseParent raises the position up to which the rule has seen the parent. It reports false if it is higher already.
func (w run) raiseParent(ctx context.Context, id plan.ItemRule, v stamp.Version) (bool, error) {
	c := table.NewExpression()
	set := c.Format("SET %n = %v REMOVE %n", "a", table.Text(string(v)), "ttl")
	condition := state.SeenBefore(c, id.Binding, "<=", v)
	key := state.ParentKey(id.Binding, id.Key)
	return w.Tables.UpdateState(ctx, id.ID, "raising the position of parent "+id.Key.String(), key, set, condition, c)
}

// retireParent lets the position of a deleted parent without children expire.
func (w run) retireParent(ctx context.Context, id plan.ItemRule, v stamp.Version) error {
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "ttl", table.Number(w.Now().Add(state.TombstoneTTL).Unix()))
	attribute, value := "a", table.Text(string(v))
	if id.Rule.ByUnique {
		attribute, value = "changes", table.Number(v.Count())
	}
	condition := c.Format("%n = %v", attribute, value)
	key := state.ParentKey(id.Binding, id.Key)
	_, err := w.Tables.UpdateState(ctx, id.ID, "retiring the position of parent "+id.Key.String(), key, set, condition, c)
	return err
}

// parentAt is the position up to which the rule has seen the parent; "" for none.
func (w run) parentAt(ctx context.Context, id plan.ItemRule) (stamp.Version, error) {
	key := state.ParentKey(id.Binding, id.Key)
	rows, err := w.Tables.ReadState(ctx, "reading the position of parent "+id.Key.String(), []table.Key{key})
	return state.ParentAt(id.Binding, rows[key]), err
}

// parentWrite is what one state of a parent puts on its children.
type parentWrite struct {
	b       *plan.Binding
	parent  change.Key
	version stamp.Version
	since   stamp.Version // children with this version or a later one are left alone; "" for those with a later one than version
	values  []change.Value
	refill  bool      // children are filled anew, each from the parent as it is then
	end     table.Row // the last key of children to look at; nil: all are
}

// isBelow reports whether a child with this version is to be left alone.
func (pw parentWrite) isBelow(v stamp.Version) bool {
	return v > pw.version || pw.since != "" && v >= pw.since
}

// on puts the copies and the stamp on a child. The caller adds the condition.
func (pw parentWrite) on(child change.Key, s stamp.Stamp) *target.Write {
	t := target.On(pw.b, "copying to "+child.String(), child)
	t.Stamp(s)
	pw.putCopies(t)
	return t
}

func (pw parentWrite) putCopies(t *target.Write) {
	for i, copied := range pw.b.Rule.Attributes {
		t.Put(copied.As, pw.values[i])
	}
}
