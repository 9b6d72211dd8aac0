package copies

import (
	"cmp"
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

// fill brings children to what their parents say.
func (w run) fill(ctx context.Context, children *plan.OrderedMap[plan.ItemRule, Fill]) {
	chunks := slices.Collect(slices.Chunk(children.Keys(), fillsAtOnce))
	ended := make([]*host.Run, len(chunks))
	var all errgroup.Group
	all.SetLimit(fillsSideBySide)
	for i, chunk := range chunks {
		ended[i] = &host.Run{Host: w.Host, Suffix: w.Suffix, Done: w.Done}
		all.Go(func() error {
			part := run{ended[i]}
			part.Failed(children.Of(chunk[0]).First, part.fillSome(ctx, chunk, children))
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
func (w run) fillSome(ctx context.Context, some []plan.ItemRule, children *plan.OrderedMap[plan.ItemRule, Fill]) error {
	unchanged, err := w.findUnchanged(ctx, some, children)
	if err != nil {
		return err
	}
	w.referAll(ctx, some, children, unchanged)
	open := slices.DeleteFunc(slices.Clone(some), func(id plan.ItemRule) bool { return !children.Of(id).refers })
	notChildren, err := w.fillChunk(ctx, open, children)
	if err != nil {
		return err
	}
	for _, id := range open {
		if !notChildren[id] {
			w.Pointing = append(w.Pointing, plan.GroupRef{Binding: id.Binding, Group: children.Of(id).parent.String()})
		}
	}
	w.onChildren(ctx, some, children, w.afterFill)
	return nil
}

// findUnchanged finds children, filled without a record, whose reference or parked record
// is there already: putting it again would change nothing.
func (w run) findUnchanged(ctx context.Context, ids []plan.ItemRule,
	children *plan.OrderedMap[plan.ItemRule, Fill]) (map[plan.ItemRule]bool,
	error) {
	at := map[plan.ItemRule]table.Key{}
	var keys []table.Key
	for _, id := range ids {
		f := children.Of(id)
		if !f.Position.IsZero() || f.Repark || f.WasBad {
			continue
		}
		switch {
		case f.bad != nil:
			at[id] = state.ParkedKey(state.ParkedID(id.ID, id.Key))
		case f.refers && !id.Rule.Collection:
			at[id] = state.ReferenceKey(id.Binding, f.parent, id.Key)
		default:
			continue
		}
		keys = append(keys, at[id])
	}
	rows, err := w.Tables.ReadState(ctx, "reading references", keys)
	found := map[plan.ItemRule]bool{}
	for id, key := range at {
		bad := children.Of(id).bad
		found[id] = rows[key] != nil && (bad == nil || table.TextOf(rows[key]["code"]) == bad.Code)
	}
	return found, err
}

// onChildren takes one step with several children at once.
func (w run) onChildren(ctx context.Context, ids []plan.ItemRule, children *plan.OrderedMap[plan.ItemRule, Fill],
	step func(context.Context, plan.ItemRule, *Fill) error) {
	errs := w.Tables.Every(ctx, len(ids), func(ctx context.Context, i int) error {
		return step(ctx, ids[i], children.Of(ids[i]))
	})
	for i, err := range errs {
		w.Ended(ctx, children.Of(ids[i]).First, ids[i].Binding, ids[i].Key, err)
	}
}

// referAll puts the references of several children, but for those of which nothing changed: in batches those that are probably new.
func (w run) referAll(ctx context.Context, ids []plan.ItemRule, children *plan.OrderedMap[plan.ItemRule, Fill],
	done map[plan.ItemRule]bool) {
	var added []plan.ItemRule
	answers := map[plan.ItemRule]*ddb.BatchStatementError{}
	for _, id := range ids {
		f := children.Of(id)
		isNew := f.parent != f.Before && !f.Repark
		if f.refers && isNew && !f.WasBad && !id.Rule.Collection && !done[id] {
			added = append(added, id)
		}
	}
	if w.Tables.Batches(table.MayInsert, len(added)) {
		batches := slices.Collect(slices.Chunk(added, table.StatementsMax))
		inserted := make([][]ddb.BatchStatementResponse, len(batches))
		_ = w.Tables.Every(ctx, len(batches), func(ctx context.Context, i int) (err error) {
			inserted[i], err = w.insertReferences(ctx, batches[i], children)
			return err // each of them goes out alone, and fails or succeeds by itself
		})
		for i, responses := range inserted {
			for j, r := range responses {
				id := batches[i][j]
				done[id], answers[id] = r.Error == nil, r.Error
			}
		}
	}
	w.onChildren(ctx, ids, children, func(ctx context.Context, id plan.ItemRule, f *Fill) error {
		if done[id] {
			return nil
		}
		return w.refer(ctx, id, f, answers[id])
	})
}

// insertReferences puts references that are not there yet.
func (w run) insertReferences(ctx context.Context, ids []plan.ItemRule, children *plan.OrderedMap[plan.ItemRule, Fill]) (
	[]ddb.BatchStatementResponse, error) {
	statements, owners := make([]ddb.BatchStatementRequest, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		f := children.Of(id)
		statements[i] = w.Tables.InsertStatement(state.ReferenceRow(id.Binding, f.parent, id.Key, stamp.VersionAt(id.Epoch, f.Position)))
		owners[i] = id.ID
	}
	return w.Tables.Statements(ctx, table.MayInsert, "putting references", owners, statements)
}

// refer puts the child's reference, or parks a child whose parent cannot be named. answer is that to the
// statement that was to insert the reference, nil if there was none.
func (w run) refer(ctx context.Context, id plan.ItemRule, f *Fill, answer *ddb.BatchStatementError) error {
	if f.bad != nil || f.WasBad {
		if err := w.updateParking(ctx, id, f); err != nil {
			return err
		}
	}
	if !f.refers || id.Rule.Collection {
		return nil
	}
	at := stamp.VersionAt(id.Epoch, f.Position)
	row, c := state.ReferenceRow(id.Binding, f.parent, id.Key, at), table.NewExpression()
	condition := state.SeenBefore(c, id.Binding, "<", at)
	written, err := w.Tables.PutState(ctx, id.ID, "putting a reference to "+f.parent.String(), row, condition, c)
	if written {
		w.Tables.WrittenAlone(ctx, table.MayInsert, answer)
	}
	return err
}

// updateParking parks a child that cannot name its parent, or clears what is
// parked of one that can, by the child as it is now: in one transaction with a
// check that it is so, for a write that is late must not park what a good
// record has cleared, nor the other way round.
func (w run) updateParking(ctx context.Context, id plan.ItemRule, f *Fill) error {
	return table.Contend(ctx, "parking or clearing "+id.Key.String(), func() (table.Round, error) {
		items, err := w.Tables.ReadItems(ctx, "reading child "+id.Key.String(), []change.Key{id.Key})
		if err != nil {
			return table.Lost, err
		}
		child := items[id.Key]
		pid := state.ParkedID(id.ID, id.Key)
		write := w.Tables.DeletePart(state.ParkedKey(pid), "", table.NewExpression())
		bad := linkOf(w.Planner, id.Binding, id.Key, table.Image(child)).bad
		if bad != nil {
			write = w.Tables.PutPart(w.ParkedRow(id.ID, id.Key, f.Position, bad), "", table.NewExpression())
		}
		err = w.Tables.Transact(ctx, "updating what is parked of "+id.Key.String(), []string{id.ID},
			[]ddb.TransactWriteItem{write, stillNamed(w.Tables.Reader, id, child)})
		if err == nil && bad != nil {
			w.NoteParked(ctx, id.ID, id.Key, bad)
		}
		if table.LostRace(err) {
			return table.Lost, nil
		}
		return table.Finished, err
	})
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

// stillNamed checks that an item names its entity and its parent as it did when it was read.
func stillNamed(rd *table.Reader, id plan.ItemRule, seen change.Item) ddb.TransactWriteItem {
	t := target.On(id.Binding, "", id.Key)
	t.Condition = t.Format("attribute_not_exists(%n)", rd.PartitionKey)
	if seen != nil {
		t.Condition = t.Format("attribute_exists(%n)", rd.PartitionKey)
		t.Holds(seen, id.Rule.JoinReads...)
		for _, eq := range id.Rule.Target.Equals {
			t.Holds(seen, eq.Attribute)
		}
	}
	return t.InTransaction(rd)
}

// afterFill drops the references to parents that the child referred to before,
// and takes off copies that have no parent any more.
func (w run) afterFill(ctx context.Context, id plan.ItemRule, f *Fill) error {
	if !f.refers && !f.Gone && f.bad == nil {
		allowed, err := w.MayHeal(ctx, id.Binding, id.Key, f.Contested)
		if err == nil && allowed {
			err = w.strip(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	for _, parent := range f.Former {
		if f.refers && parent == f.parent {
			continue
		}
		w.Missing[id.Binding].AdjustSources(parent.String(), func(p *sightings.TargetSources) { p.Remove(id.Key) })
		if id.Rule.Collection {
			continue
		}
		c := table.NewExpression()
		condition := c.Format("%n < %v", "a", table.Text(string(stamp.VersionAt(id.Epoch, f.Position))))
		key := state.ReferenceKey(id.Binding, parent, id.Key)
		if err := w.Tables.DeleteState(ctx, id.ID, "dropping a reference to "+parent.String(), key, condition, c); err != nil {
			return err
		}
	}
	return nil
}

// fillChunk reads positions and children, then parents, then writes. It returns the
// children that are gone or refer elsewhere by now: a later record of each says so.
func (w run) fillChunk(ctx context.Context, open []plan.ItemRule, children *plan.OrderedMap[plan.ItemRule, Fill]) (map[plan.ItemRule]bool,
	error) {
	notChildren, counted := map[plan.ItemRule]bool{}, false // counted: the corrections of contested children
	return notChildren, table.Contend(ctx, "filling children", func() (table.Round, error) {
		var positions []table.Key
		var keys, parents []change.Key
		for _, id := range open {
			positions = append(positions, state.ParentKey(id.Binding, children.Of(id).parent))
			keys = append(keys, id.Key)
			parents = append(parents, children.Of(id).parent)
		}
		items, at, err := w.Tables.ReadBoth(ctx, "reading children and their parents' positions", keys, positions)
		if err != nil {
			return table.Lost, err
		}
		sources, err := w.Tables.ReadItems(ctx, "reading parents", parents)
		if err != nil {
			return table.Lost, err
		}
		for _, id := range open {
			if l := linkOf(w.Planner, id.Binding, id.Key, table.Image(items[id.Key])); !l.refers || l.parent != children.Of(id).parent {
				notChildren[id] = true
			}
		}
		open = slices.DeleteFunc(slices.Clone(open), func(id plan.ItemRule) bool { return notChildren[id] })
		again := make([]bool, len(open))
		errs := w.Targets.Every(ctx, len(open), func(ctx context.Context, to target.Sender, i int) (err error) {
			id, f := open[i], children.Of(open[i])
			v := state.SeenAt(id.Binding, at[state.ParentKey(id.Binding, f.parent)])
			parent := table.Image(parentIn(w.Planner, id.Binding, f.parent, sources))
			again[i], err = w.fillChild(ctx, to, id, f.parent, items[id.Key], parent, v, f.Contested && !counted)
			return err
		})
		counted = true
		var rest []plan.ItemRule
		for i, id := range open {
			w.Ended(ctx, children.Of(id).First, id.Binding, id.Key, errs[i])
			if again[i] {
				rest = append(rest, id)
			}
		}
		open = rest
		return table.FinishedIf(len(open) == 0), nil
	})
}

// parentIn is the parent, provided that the item under its key is of the parent's entity.
func parentIn(p *plan.Planner, b *plan.Binding, key change.Key, items map[change.Key]change.Item) change.Item {
	if _, ok := as(b.Rule.Source, p, key, table.Image(items[key])); !ok {
		return nil
	}
	return items[key]
}

// fillChild writes a parent, as it was read, on one child. The parent is at least
// as new as its position, so what is written is later than what a fan-out of that
// position writes, and no fill has the version of another. It reports true if
// the child moved meanwhile.
func (w run) fillChild(ctx context.Context, to target.Sender, id plan.ItemRule, key change.Key, child change.Item, parent change.Image,
	at stamp.Version, contested bool) (bool, error) {
	if parent != nil {
		w.Missing[id.Binding].NoteTarget(key.String())
	} else {
		w.Missing[id.Binding].NoteMissing(key.String(), func(p *sightings.TargetSources) { p.Add(id.Key) })
	}
	if at == "" {
		at = stamp.VersionAt(id.Epoch, change.Position{})
	}
	pw := parentWrite{b: id.Binding, parent: key, version: at.Rederived(1), values: Of(id.Rule).Given(parent)}
	context := stamp.Context(w.Planner.Incarnation, id.Key, key.String())
	if s, ok := stamp.Read(child.Lookup(id.Stamp), context); ok {
		if s.Version >= at && s.Digest == stamp.Digest(pw.values) && pw.isOn(child) {
			return false, nil // it has what the parent says
		}
		pw.version = max(pw.version, s.Version.NextRederived())
	}
	if allowed, err := w.MayHeal(ctx, id.Binding, id.Key, contested); err != nil || !allowed {
		return false, err
	}
	ended, _, err := w.writeCopies(ctx, to, pw, id.Key, child)
	return ended == target.RaceLost && err == nil, err
}

// writeUnread writes a parent's state on a child that was not read, on condition that it refers to the parent and
// holds no later state. A child that is refused comes with the refusal.
func (w run) writeUnread(ctx context.Context, to target.Sender, pw parentWrite, key change.Key) (refers bool, err error) {
	texts, ok := pw.b.Rule.ParentTexts(key, pw.parent)
	if !ok { // only its attributes tell
		return w.writeChild(ctx, to, pw, key, nil)
	}
	s := w.stampOf(pw, key)
	t := target.On(pw.b, "copying to "+key.String(), key)
	t.Stamp(s)
	pw.put(t)
	t.Condition = target.StillEntity(w.Tables.Reader, t.Expression, pw.b.Rule.Target)
	for _, attribute := range pw.b.Rule.JoinReads {
		t.Condition += target.HoldsText(t.Expression, attribute, texts[attribute])
	}
	t.Condition += target.UnstampedOrBelow(t.Expression, pw.b.Stamp, s.Context, cmp.Or(pw.since, pw.version))
	ended, current, err := w.sendCopies(ctx, to, t)
	if ended != target.RaceLost || err != nil {
		return true, err
	}
	return w.writeChild(ctx, to, pw, key, current)
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
	return w.sendCopies(ctx, to, w.copyWrite(pw, key, child, s))
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
