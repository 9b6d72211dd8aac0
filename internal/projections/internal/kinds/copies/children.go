package copies

import (
	"context"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

const (
	fillsAtOnce     = 50 // children that are filled with the same two reads
	fillsSideBySide = 4  // so many times that number
)

// childFill is a child that is filled.
type childFill struct {
	plan.ItemRule
	*Fill
	referred bool                     // its reference, or what is parked of it, is there
	answer   *ddb.BatchStatementError // to the statement that was to insert the reference; nil: there was none
	moved    bool                     // it moved while it was written
	left     bool                     // it is gone or refers elsewhere by now: a later record says so
}

// parentID is the parent to which the child refers under the rule.
func (ch *childFill) parentID() plan.ItemRule {
	return plan.ItemRule{Binding: ch.Binding, Key: ch.parent}
}

// fill brings children to what their parents say.
func (w run) fill(ctx context.Context, asked *plan.OrderedMap[plan.ItemRule, Fill]) {
	var children []*childFill
	for id, f := range asked.All() {
		children = append(children, &childFill{ItemRule: id, Fill: f})
	}
	chunks := slices.Collect(slices.Chunk(children, fillsAtOnce))
	ended := make([]*host.Run, len(chunks))
	var all errgroup.Group
	all.SetLimit(fillsSideBySide)
	for i, chunk := range chunks {
		ended[i] = &host.Run{Host: w.Host, Suffix: w.Suffix, Done: w.Done}
		all.Go(func() error {
			part := run{ended[i]}
			part.Failed(chunk[0].First, part.fillSome(ctx, chunk))
			return nil
		})
	}
	_ = all.Wait() // of functions that return nil
	for _, part := range ended {
		w.Failed(part.Done, part.Err)
		w.Pointing = append(w.Pointing, part.Pointing...)
	}
}

// fillSome fills some children: reference first, then the parent's position and the child's stamp, then the parent, then
// the write.
func (w run) fillSome(ctx context.Context, some []*childFill) error {
	if err := w.findReferred(ctx, some); err != nil {
		return err
	}
	w.referAll(ctx, some)
	open := slices.DeleteFunc(slices.Clone(some), func(ch *childFill) bool { return !ch.refers })
	if err := w.fillChunk(ctx, open); err != nil {
		return err
	}
	for _, ch := range open {
		if !ch.left {
			w.Pointing = append(w.Pointing, plan.GroupRef{Binding: ch.Binding, Group: nameOf(ch.Binding, ch.parent)})
		}
	}
	w.onChildren(ctx, some, w.afterFill)
	return nil
}

// findReferred finds children, filled without a record, whose reference or parked record
// is there already: putting it again would change nothing.
func (w run) findReferred(ctx context.Context, some []*childFill) error {
	var asked []*childFill
	var keys []table.Key
	for _, ch := range some {
		var key table.Key
		switch {
		case !ch.Position.IsZero() || ch.Repark || ch.WasBad:
			continue
		case ch.bad != nil:
			key = state.ParkedKey(state.ParkedID(ch.ID, ch.Key))
		case ch.refers && !ch.Rule.Collection:
			key = state.ReferenceKey(ch.Binding, ch.parent, ch.Key)
		default:
			continue
		}
		asked, keys = append(asked, ch), append(keys, key)
	}
	rows, err := w.Tables.ReadState(ctx, "reading references", keys)
	for i, ch := range asked {
		row := rows[keys[i]]
		ch.referred = row != nil && (ch.bad == nil || table.TextOf(row["code"]) == ch.bad.Code)
	}
	return err
}

// onChildren takes one step with several children at once.
func (w run) onChildren(ctx context.Context, some []*childFill, step func(context.Context, *childFill) error) {
	errs := w.Tables.Every(ctx, len(some), func(ctx context.Context, i int) error { return step(ctx, some[i]) })
	for i, ch := range some {
		w.Ended(ctx, ch.First, ch.Binding, ch.Key, errs[i])
	}
}

// referAll puts the references of several children: in batches those that are probably new.
func (w run) referAll(ctx context.Context, some []*childFill) {
	added := slices.DeleteFunc(slices.Clone(some), func(ch *childFill) bool {
		isNew := ch.refers && ch.parent != ch.Before && !ch.Repark
		return !isNew || ch.WasBad || ch.Rule.Collection || ch.referred
	})
	if w.Tables.Batches(table.MayInsert, len(added)) {
		batches := slices.Collect(slices.Chunk(added, table.StatementsMax))
		_ = w.Tables.Every(ctx, len(batches), func(ctx context.Context, i int) error {
			return w.insertReferences(ctx, batches[i]) // each of them goes out alone, and fails or succeeds by itself
		})
	}
	w.onChildren(ctx, some, w.refer)
}

// insertReferences puts references that are not there yet.
func (w run) insertReferences(ctx context.Context, some []*childFill) error {
	statements, owners := make([]ddb.BatchStatementRequest, len(some)), make([]string, len(some))
	for i, ch := range some {
		statements[i] = w.Tables.InsertStatement(state.ReferenceRow(ch.Binding, ch.parent, ch.Key, stamp.VersionAt(ch.Epoch, ch.Position)))
		owners[i] = ch.ID
	}
	responses, err := w.Tables.Statements(ctx, table.MayInsert, "putting references", owners, statements)
	for i, r := range responses {
		some[i].referred, some[i].answer = r.Error == nil, r.Error
	}
	return err
}

// refer puts the child's reference, or parks a child whose parent cannot be named, unless that is there already.
func (w run) refer(ctx context.Context, ch *childFill) error {
	if ch.referred {
		return nil
	}
	if ch.bad != nil || ch.WasBad {
		err := w.ParkUnread(ctx, ch.ItemRule, ch.Position, ch.Rule.JoinReads, func(child change.Image) *rules.ItemError {
			return linkOf(w.Planner, ch.Binding, ch.Key, child).bad
		})
		if err != nil {
			return err
		}
	}
	if !ch.refers || ch.Rule.Collection {
		return nil
	}
	at := stamp.VersionAt(ch.Epoch, ch.Position)
	row, c := state.ReferenceRow(ch.Binding, ch.parent, ch.Key, at), table.NewExpression()
	condition := state.SeenBefore(c, ch.Binding, "<", at)
	written, err := w.Tables.PutState(ctx, ch.ID, "putting a reference to "+ch.parent.String(), row, condition, c)
	if written {
		w.Tables.WrittenAlone(ctx, table.MayInsert, ch.answer)
	}
	return err
}

// linkOf is how an item refers to its parent. One that is not there, or is no child, has no link.
func linkOf(p *plan.Planner, b *plan.Binding, key change.Key, item change.Image) link {
	m, ok := as(b.Rule.Target, p, key, item)
	if !ok {
		return link{}
	}
	return linkIn(b.Rule, &m, item)
}

// as is an item as one of an entity; false if it is none, or not there.
func as(e *rules.Entity, p *plan.Planner, key change.Key, item change.Image) (rules.Match, bool) {
	if item == nil {
		return rules.Match{}, false
	}
	m, ok := p.Set.Identify(key, item)
	return m, ok && m.Entity == e
}

// afterFill drops the references to parents that the child referred to before,
// and takes off copies that have no parent any more.
func (w run) afterFill(ctx context.Context, ch *childFill) error {
	if !ch.refers && !ch.Gone && ch.bad == nil {
		allowed, err := w.MayHeal(ctx, ch.Binding, ch.Key, ch.Contested)
		if err == nil && allowed {
			err = w.strip(ctx, ch.ItemRule)
		}
		if err != nil {
			return err
		}
	}
	for _, parent := range ch.Former {
		if ch.refers && parent == ch.parent {
			continue
		}
		w.Missing[ch.Binding].AdjustSources(nameOf(ch.Binding, parent), func(p *sightings.TargetSources) { p.Remove(ch.Key) })
		if ch.Rule.Collection {
			continue
		}
		c := table.NewExpression()
		condition := c.Format("%n < %v", "a", table.Text(string(stamp.VersionAt(ch.Epoch, ch.Position))))
		key := state.ReferenceKey(ch.Binding, parent, ch.Key)
		if err := w.Tables.DeleteState(ctx, ch.ID, "dropping a reference to "+parent.String(), key, condition, c); err != nil {
			return err
		}
	}
	return nil
}

// fillChunk reads positions and children, then parents, then writes.
func (w run) fillChunk(ctx context.Context, open []*childFill) error {
	counted := false // the corrections of contested children
	return table.Contend(ctx, "filling children", func() (table.Round, error) {
		var positions []table.Key
		var keys []change.Key
		var parents []plan.ItemRule
		for _, ch := range open {
			positions = append(positions, state.ParentKey(ch.Binding, ch.parent))
			keys, parents = append(keys, ch.Key), append(parents, ch.parentID())
		}
		items, at, err := w.Tables.ReadBoth(ctx, "reading children and their parents' positions", keys, positions)
		if err != nil {
			return table.Lost, err
		}
		sources, err := w.readParents(ctx, parents)
		if err != nil {
			return table.Lost, err
		}
		open = slices.DeleteFunc(slices.Clone(open), func(ch *childFill) bool {
			l := linkOf(w.Planner, ch.Binding, ch.Key, table.Image(items[ch.Key]))
			ch.left = !l.refers || l.parent != ch.parent
			return ch.left
		})
		errs := w.Targets.Every(ctx, len(open), func(ctx context.Context, to target.Sender, i int) error {
			ch := open[i]
			v := state.ParentAt(ch.Binding, at[state.ParentKey(ch.Binding, ch.parent)])
			parent := table.Image(sources[ch.parentID()])
			return w.fillChild(ctx, to, ch, items[ch.Key], parent, v, ch.Contested && !counted)
		})
		counted = true
		for i, ch := range open {
			w.Ended(ctx, ch.First, ch.Binding, ch.Key, errs[i])
		}
		open = slices.DeleteFunc(open, func(ch *childFill) bool { return !ch.moved })
		return table.FinishedIf(len(open) == 0), nil
	})
}

// fillChild writes a parent, as it was read, on one child. The parent is at least
// as new as its position, so what is written is later than what a fan-out of that
// position writes, and no fill has the version of another.
func (w run) fillChild(ctx context.Context, to target.Sender, ch *childFill, child change.Item, parent change.Image, at stamp.Version,
	contested bool) error {
	ch.moved = false
	if name := nameOf(ch.Binding, ch.parent); parent != nil {
		w.Missing[ch.Binding].NoteTarget(name)
	} else {
		w.Missing[ch.Binding].NoteMissing(name, func(p *sightings.TargetSources) { p.Add(ch.Key) })
	}
	if at == "" {
		at = stamp.VersionAt(ch.Epoch, change.Position{})
	}
	pw := parentWrite{b: ch.Binding, parent: ch.parent, version: at.Rederived(1), values: Of(ch.Rule).Given(parent)}
	if s, ok := stamp.Read(child.Lookup(ch.Stamp), stamp.Context(w.Planner.Incarnation, ch.Key, ch.parent.String())); ok {
		if s.Version >= at && s.Digest == stamp.Digest(pw.values) && pw.isOn(child) {
			return nil // it has what the parent says
		}
		pw.version = max(pw.version, s.Version.NextRederived())
	}
	if allowed, err := w.MayHeal(ctx, ch.Binding, ch.Key, contested); err != nil || !allowed {
		return err
	}
	ended, _, err := w.writeCopies(ctx, to, pw, ch.Key, child)
	ch.moved = ended == target.RaceLost && err == nil
	return err
}

// stampOf is the stamp of a parent's state on a child.
func (w run) stampOf(pw parentWrite, child change.Key) stamp.Stamp {
	context := stamp.Context(w.Planner.Incarnation, child, pw.parent.String())
	return stamp.Stamp{Context: context, Version: pw.version, Digest: stamp.Digest(pw.values)}
}

// isOn reports whether a child holds the parent's values. The digest of each in a stamp is too short to tell.
func (pw parentWrite) isOn(child change.Image) bool {
	return change.Digest(plan.ValuesOf(pw.b.Rule, child)...) == change.Digest(pw.values...)
}

// sendCopies sends the write of a child, and counts it.
func (w run) sendCopies(ctx context.Context, to target.Sender, t *target.Write) (ended target.Outcome, current change.Image, err error) {
	if ended, current, err = to.Write(ctx, t); ended == target.Written && err == nil {
		w.Counters.Children.Add(1)
	}
	return ended, current, err
}

// writeChild writes a parent's state on a child as it was read, trying again with the child as it is as often as it
// moves. It reads a child that is nil: an endpoint may refuse a write without the item.
// It reports whether the child refers to the parent.
func (w run) writeChild(ctx context.Context, to target.Sender, pw parentWrite, key change.Key, child change.Image) (refers bool,
	err error) {
	err = table.Contend(ctx, "copying to "+key.String(), func() (table.Round, error) {
		if child == nil {
			items, err := w.Tables.ReadItems(ctx, "reading child "+key.String(), []change.Key{key})
			if err != nil {
				return table.Lost, err
			}
			child = table.Image(items[key])
		}
		l := linkOf(w.Planner, pw.b, key, child)
		if refers = l.refers && l.parent == pw.parent; !refers {
			return table.Finished, nil
		}
		context := stamp.Context(w.Planner.Incarnation, key, pw.parent.String())
		if s, ok := stamp.Read(child.Lookup(pw.b.Stamp), context); ok && pw.isBelow(s.Version) {
			return table.Finished, nil // a later state of the parent is there already
		}
		ended, current, err := w.writeCopies(ctx, to, pw, key, child)
		child = current
		return table.FinishedIf(ended != target.RaceLost), err
	})
	return refers, err
}

// writeCopies writes copies and stamp, unless the child holds both already. If the child
// changed since it was read, current is the child as it is now.
func (w run) writeCopies(ctx context.Context, to target.Sender, pw parentWrite, key change.Key, child change.Image) (
	ended target.Outcome, current change.Image, err error) {
	s := w.stampOf(pw, key)
	if child.Lookup(pw.b.Stamp).Equal(change.String(s.String())) && pw.isOn(child) {
		return target.Written, nil, nil
	}
	t := pw.on(key, s)
	w.unmoved(t, child)
	return w.sendCopies(ctx, to, t)
}

// strip takes copies and stamp off a child that refers to no parent, if that is still so.
func (w run) strip(ctx context.Context, id plan.ItemRule) error {
	doing := "taking copies off " + id.Key.String()
	return table.Contend(ctx, doing, func() (table.Round, error) {
		items, err := w.Tables.ReadItems(ctx, "reading child "+id.Key.String(), []change.Key{id.Key})
		child := items[id.Key]
		if l := linkOf(w.Planner, id.Binding, id.Key, table.Image(child)); err != nil || !l.isChild || l.refers || l.bad != nil {
			return table.Finished, err
		}
		names := slices.DeleteFunc(append(slices.Clone(id.Rule.Writes), id.Stamp), func(name string) bool {
			return child.Lookup(name).Kind() == change.KindAbsent
		})
		if len(names) == 0 {
			return table.Finished, nil
		}
		t := target.On(id.Binding, doing, id.Key)
		t.TakeOff(names...)
		w.unmoved(t, child)
		ended, _, err := w.Targets.Write(ctx, t)
		return table.FinishedIf(ended != target.RaceLost), err
	})
}

// unmoved adds the condition that a child refers to what it referred to when it was read, and carries the same stamp.
func (w run) unmoved(t *target.Write, seen change.Image) {
	t.Condition = target.StillEntity(w.Tables.Reader, t.Expression, t.Binding.Rule.Target)
	t.Holds(seen, append(slices.Clone(t.Binding.Rule.JoinReads), t.Binding.Stamp)...)
}
