package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// fanOut writes changed parents to their children: the parent's position for
// the rule is raised first, then the children are looked up. A child that
// comes meanwhile reads the parent after putting its reference, so either it
// sees the new parent or the lookup sees it. What lies beyond the bound becomes a task.
func (w *work) fanOut(ctx context.Context, parents *plan.Asked[plan.ItemRule, plan.FanOut]) {
	for id, f := range parents.All() {
		w.ended(ctx, f.First, id.Binding, id.Key, w.fanOutParent(ctx, id, f))
	}
}

func (e *Engine) fanOutParent(ctx context.Context, id plan.ItemRule, f *plan.FanOut) error {
	v := plan.VersionAt(id.Epoch, f.Position)
	raised, err := e.raiseParent(ctx, id, v)
	if err != nil || !raised {
		return err // or a later change of the parent is being written already
	}
	write := parentWrite{b: id.Binding, parent: id.Key, version: v, values: f.Values}
	if !f.Deleted {
		e.missing[id.Binding].forget(id.Key.String())
	}
	referring, next, err := e.writeChildren(ctx, write, nil, e.fanOutMax)
	switch {
	case err != nil:
		return err
	case len(next) > 0:
		return e.putTask(ctx, task{id: id, at: v, cursor: next, children: e.fanOutMax, referring: referring})
	case referring > 0 && !f.Deleted:
		e.missing[id.Binding].noteTarget(id.Key.String())
	case referring > 0:
		e.missing[id.Binding].noteMissing(id.Key.String(), func(p *pointers) { p.known, p.counted = nil, int64(referring) })
	case referring == 0 && f.Deleted:
		return e.retireParent(ctx, id, v)
	}
	return nil
}

// raiseParent raises the position up to which the rule has seen the parent. It reports false if it is higher already.
func (e *Engine) raiseParent(ctx context.Context, id plan.ItemRule, v plan.Version) (bool, error) {
	c := newExpression()
	set := c.sprintf("SET %n = %v REMOVE %n", "at", textValue(string(v)), "ttl")
	condition := c.copiedBefore(id.Binding, "<=", v)
	return e.update(ctx, id.ID, "raising the position of parent "+id.Key.String(), e.stateUpdate(parentKey(id.Binding, id.Key), set, condition, c))
}

// retireParent lets the position of a deleted parent without children expire.
func (e *Engine) retireParent(ctx context.Context, id plan.ItemRule, v plan.Version) error {
	c := newExpression()
	set := c.sprintf("SET %n = %v", "ttl", numberValue(e.now().Add(tombstoneTTL).Unix()))
	condition := c.sprintf("%n = %v", "at", textValue(string(v)))
	_, err := e.update(ctx, id.ID, "retiring the position of parent "+id.Key.String(), e.stateUpdate(parentKey(id.Binding, id.Key), set, condition, c))
	return err
}

// parentAt is the position up to which the rule has seen the parent; "" for none.
func (e *Engine) parentAt(ctx context.Context, id plan.ItemRule) (plan.Version, error) {
	key := parentKey(id.Binding, id.Key)
	rows, err := e.readState(ctx, "reading the position of parent "+id.Key.String(), []stateKey{key})
	return copiedAt(id.Binding, rows[key]), err
}

// copiedAt is the version of a row that belongs to a copy rule; "" if there is none.
func copiedAt(b *plan.Binding, r row) plan.Version {
	if at := plan.Version(textOf(r["at"])); at < beyond(b) {
		return at
	}
	return ""
}

// beyond is later than every version under which a rule copies. What is later still, a
// worker of a state table that was lost has left.
func beyond(b *plan.Binding) plan.Version { return plan.VersionAt(b.Epoch+1, change.Position{}) }

// copiedBefore is the condition that a row of a copy rule is not there yet or has a version below v ("<"; "<=": or just that).
func (c *expression) copiedBefore(b *plan.Binding, below string, v plan.Version) string {
	return c.sprintf("attribute_not_exists(%n) OR %n "+below+" %v OR %n >= %v",
		"at", "at", textValue(string(v)), "at", textValue(string(beyond(b))))
}

// retireIfGone retires the position of a parent that is not there any more.
func (e *Engine) retireIfGone(ctx context.Context, id plan.ItemRule, v plan.Version) error {
	items, err := e.readItems(ctx, "reading parent "+id.Key.String(), []change.Key{id.Key})
	if err != nil || e.parentItem(id.Binding, id.Key, items) != nil {
		return err
	}
	return e.retireParent(ctx, id, v)
}

// parentWrite is what one state of a parent puts on its children.
type parentWrite struct {
	b       *plan.Binding
	parent  change.Key
	version plan.Version
	since   plan.Version // children with this version or a later one are left alone; "" for those with a later one than version
	values  []change.Value
	refill  bool // children are filled anew, each from the parent as it is then
}

// isBelow reports whether a child with this version is to be left alone.
func (pw parentWrite) isBelow(v plan.Version) bool {
	return v > pw.version || pw.since != "" && v >= pw.since
}

// copyWrite writes a rule's copies and stamp on a child, provided that it
// still exists, refers to the same parent and carries the stamp that was read.
func (e *Engine) copyWrite(pw parentWrite, child change.Key, seen change.Image, s plan.Stamp) *targetWrite {
	t := onTarget(pw.b, "copying to "+child.String(), child)
	t.stamp(s)
	for i, copied := range pw.b.Rule.Attributes {
		t.put(copied.As, pw.values[i])
	}
	e.unmoved(t, seen)
	return t
}

// unmoved adds the condition that a child refers to what it referred to when it was read, and carries the same stamp.
func (rd *reader) unmoved(t *targetWrite, seen change.Image) {
	t.condition = rd.stillEntity(t.expression, t.b.Rule.Target)
	t.holds(seen, append(slices.Clone(t.b.Rule.JoinReads), t.b.Stamp)...)
}
