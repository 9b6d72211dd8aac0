package projections

import (
	"cmp"
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
	"github.com/dynamill/dynamill/projections/internal/target"
	"github.com/dynamill/dynamill/rules"
)

// total is an aggregate's accumulators added up.
type total struct {
	value      decimal.Decimal
	operations int64        // on the accumulators
	changes    int64        // of the locator
	locator    state.Set    // as it was read
	targets    []change.Key // the one that displays it first, then those that lost the locator to it
	err        *rules.ItemError
}

// rollUp writes every due aggregate to its target, once. Rules that are still
// seeding show nothing (promise 10). Whether a rule is live is asked after the
// moves: a sum that changed before the rule went live is then seen by the
// seeding's own roll-up.
func (w *work) rollUp(ctx context.Context, pl *plan.Changes) {
	var due, moved []plan.GroupRef // moved: rules that are not live find their targets by locators that changed
	var waiting []*plan.Rollup
	for g, ru := range pl.Rollups.All() {
		if g.Rule.MakesItems() || g.Live.Load() {
			due = append(due, g)
			continue
		}
		if waiting = append(waiting, ru); g.Rule.ByUnique && len(ru.Relocated) > 0 {
			moved = append(moved, g)
		}
	}
	for g, err := range w.settleLocators(ctx, moved) {
		w.Failed(pl.Rollups.Of(g).First, err)
	}
	slices.SortFunc(due, func(a, b plan.GroupRef) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Group, b.Group))
	})
	totals, err := w.readTotals(ctx, due)
	if err != nil {
		for _, g := range due {
			w.Failed(pl.Rollups.Of(g).First, err)
		}
		return
	}
	unsettled := map[*plan.Move]bool{}
	settles := firstOfLocators(due)
	errs := table.Every(ctx, len(due), func(ctx context.Context, i int) error {
		g := due[i]
		if settles[i] {
			if err := w.settleLocator(ctx, g, totals[g]); err != nil {
				return err
			}
		}
		if g.Rule.MakesItems() {
			return w.deriveTarget(ctx, g.Binding, change.ParseKey(g.Group), nil)
		}
		return w.show(ctx, g, totals[g], pl.Rollups.Of(g))
	})
	for i, err := range errs {
		if err == nil {
			continue
		}
		ru := pl.Rollups.Of(due[i])
		w.Failed(ru.First, err)
		for _, mv := range ru.Marks {
			unsettled[mv] = true
		}
	}
	for _, ru := range waiting {
		for _, mv := range ru.Marks {
			if !unsettled[mv] && !slices.Contains(w.waiting, mv) {
				w.waiting = append(w.waiting, mv)
			}
		}
	}
	for _, mv := range w.waiting {
		unsettled[mv] = true
	}
	w.clearMarks(ctx, pl, unsettled)
}

// clearMarks clears the due marks of entries whose aggregates are all shown.
func (w *work) clearMarks(ctx context.Context, pl *plan.Changes, unsettled map[*plan.Move]bool) {
	seen := map[*plan.Move]bool{}
	for _, ru := range pl.Rollups.All() {
		for _, mv := range ru.Marks {
			if seen[mv] || unsettled[mv] {
				continue
			}
			seen[mv] = true
			w.Failed(mv.First, w.clearDue(ctx, mv))
		}
	}
}

// readTotals reads the accumulators of aggregates and, where targets are known by a unique value alone, their locators.
func (e *Engine) readTotals(ctx context.Context, due []plan.GroupRef) (map[plan.GroupRef]total, error) {
	if len(due) == 0 {
		return nil, nil
	}
	rows, err := e.tables.ReadState(ctx, "reading accumulators", totalKeys(due))
	if err != nil {
		return nil, err
	}
	totals := make(map[plan.GroupRef]total, len(due))
	for _, g := range due {
		totals[g] = addUp(g, rows)
	}
	return totals, nil
}

// totalKeys are the rows that aggregates are added up from.
func totalKeys(groups []plan.GroupRef) (keys []table.Key) {
	for _, g := range groups {
		for suffix := range g.Suffixes {
			keys = append(keys, state.AccumulatorKey(g, suffix))
		}
		if g.Rule.ByUnique {
			keys = append(keys, state.LocatorKey(g.Locator, g.Group))
		}
	}
	return keys
}

func addUp(g plan.GroupRef, rows map[table.Key]table.Row) total {
	var t total
	var values []decimal.Decimal
	for suffix := range g.Suffixes {
		r, ok := rows[state.AccumulatorKey(g, suffix)]
		if !ok {
			continue
		}
		v, operations, err := state.ReadAccumulator(r)
		t.operations += operations
		if err != nil {
			t.err = plan.Overflow("the sum").Parked
		}
		values = append(values, v)
	}
	value, err := decimal.Sum(values...)
	if err != nil {
		t.err = plan.Overflow("the sum").Parked
	}
	t.value = value
	if !g.Rule.ByUnique {
		t.targets = []change.Key{change.ParseKey(g.Group)}
		return t
	}
	t.locator = state.ReadSet(rows[state.LocatorKey(g.Locator, g.Group)], true)
	t.changes = t.locator.Changes
	for _, text := range t.locator.Sources {
		t.targets = append(t.targets, change.ParseKey(text))
	}
	return t
}

// show writes an aggregate's value to its target, if that exists and shows nothing later.
func (e *Engine) show(ctx context.Context, g plan.GroupRef, t total, ru *plan.Rollup) error {
	if len(t.targets) == 0 && t.operations > 0 && t.err == nil {
		e.noteRollupTarget(g, t, false) // no item has this unique value
	}
	for i, target := range t.targets {
		if ru.Seen[target] == nil && !ru.Asked || !e.tables.CanExist(target) {
			continue // its own record or scan shows it; or the locator's row is damaged
		}
		if t.err != nil {
			if err := e.host.Park(ctx, g.Binding, target, t.err); err != nil {
				return err
			}
			continue
		}
		write := e.showOn
		switch {
		case i > 0:
			if !ru.Hides(t.targets[i-1], target) || len(ru.Relocated) == 0 && e.hidden(g, target, ru.Seen[target]) {
				continue
			}
			write = e.hide
		case t.operations == 0 && !ru.Present: // nothing was ever counted and nothing is shown
			continue
		case e.shown(g, t, target, ru.Seen[target]):
			e.noteRollupTarget(g, t, true)
			continue
		}
		allowed, err := e.host.MayHeal(ctx, g.Binding, target, ru.Contested[target])
		if err == nil && allowed {
			err = write(ctx, g, t, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showOn writes the total on a target that shows nothing later.
func (e *Engine) showOn(ctx context.Context, g plan.GroupRef, t total, key change.Key) error {
	w := e.totalWrite("rolling up "+g.Rule.Name+" of "+key.String(), g, t, key, change.Number(t.value.String()))
	ended, standing, err := e.host.Targets.Write(ctx, w)
	switch {
	case err != nil || ended == target.Refused:
		return err
	case ended == target.Written:
		e.host.Counters.Rollups.Add(1)
	}
	e.noteRollupTarget(g, t, ended == target.Written || e.isTarget(g, key, standing))
	return nil
}

// totalWrite puts a value under the stamp of a total on an item that displays the aggregate and shows nothing later.
func (e *Engine) totalWrite(doing string, g plan.GroupRef, t total, key change.Key, value change.Value) *target.Write {
	s := e.totalStamp(g, t, key, value)
	w := target.On(g.Binding, doing, key)
	w.Put(g.Rule.Writes[0], value)
	w.Stamp(s)
	w.Condition = target.StillEntity(e.tables.Reader, w.Expression, g.Rule.Target) + target.StillGroup(w.Expression, g) + " AND " + target.UnstampedOr(w.Expression, g.Stamp, s)
	return w
}

// isTarget reports whether the item that a lost write found is one that displays the aggregate.
func (rd *ruleReader) isTarget(g plan.GroupRef, target change.Key, standing change.Image) bool {
	if standing == nil {
		return false
	}
	m, ok := rd.planner.Set.Identify(target, standing)
	if !ok || m.Entity != g.Rule.Target {
		return false
	}
	group, has, err := aggregates.Of(g.Rule).GroupOf(&m, standing)
	return err == nil && has && group == g.Group
}

// shown reports whether a target, as it was read before the sum was, shows it: under
// older rules the same count of operations made the same sum.
func (e *Engine) shown(g plan.GroupRef, t total, target change.Key, seen change.Image) bool {
	if seen == nil {
		return false
	}
	want := e.totalStamp(g, t, target, change.Number(t.value.String()))
	s, ok := plan.ReadStamp(seen.Lookup(g.Stamp), want.Context)
	return ok && s.Version.UnderEpoch(e.planner.Epoch) == want.Version && s.Digest == want.Digest && plan.DigestOf(g.Binding, seen) == want.Digest
}

// hidden reports whether an item that lost its unique value to another, as it was read
// before the sum was, shows nothing. Only a change of the locator asks for more: a sum
// that was read before is older than the stamp.
func (e *Engine) hidden(g plan.GroupRef, target change.Key, seen change.Image) bool {
	if seen == nil {
		return false
	}
	s, ok := plan.ReadStamp(seen.Lookup(g.Stamp), plan.StampContext(e.planner.Incarnation, target, g.Group))
	return ok && s.Digest == change.Digest(change.Value{}) && plan.DigestOf(g.Binding, seen) == s.Digest
}

// totalStamp is the stamp of a total on a target. What is summed and where it
// is shown only ever changes by counts that rise, so their sum is a version.
func (e *Engine) totalStamp(g plan.GroupRef, t total, target change.Key, value change.Value) plan.Stamp {
	return plan.Stamp{Context: plan.StampContext(e.planner.Incarnation, target, g.Group), Version: plan.VersionOf(e.planner.Epoch, t.operations+t.changes), Digest: change.Digest(value)}
}

// hide takes the attribute off an item that lost its unique value to another.
// The stamp stays: it keeps a sleeper from showing there what was true before.
func (e *Engine) hide(ctx context.Context, g plan.GroupRef, t total, target change.Key) error {
	_, _, err := e.host.Targets.Write(ctx, e.totalWrite("taking "+g.Rule.Name+" off "+target.String(), g, t, target, change.Value{}))
	return err
}

// takeOff takes what former rules, or rules of a former entity, wrote off items that
// still carry it. Should an item be what it was again by now, the record of this
// write heals it.
func (w *work) takeOff(ctx context.Context, leftovers *plan.Asked[plan.ItemRule, plan.Leftover]) {
	for id, left := range leftovers.All() {
		w.Ended(ctx, left.First, id.Binding, id.Key, w.takeOffOne(ctx, id, left))
	}
}

// takeOffOne judges the item anew if another writer has changed it meanwhile.
func (w *work) takeOffOne(ctx context.Context, id plan.ItemRule, left *plan.Leftover) error {
	return table.Contend(ctx, "taking "+id.Rule.Name+" off "+id.Key.String(), func() (table.Round, error) {
		if left.Whole {
			return table.Settled, w.dropWhole(ctx, id, left)
		}
		ended, standing, err := w.host.Targets.Write(ctx, w.takeOffNames(id, left))
		if err != nil || ended != target.RaceLost || standing == nil {
			return table.Settled, err
		}
		left = w.planner.Again(id, left, standing)
		return table.SettledIf(left == nil), nil
	})
}

// takeOffNames takes attributes and stamp off an item, or puts back what was there
// before, if it holds in them what was seen.
func (w *work) takeOffNames(id plan.ItemRule, left *plan.Leftover) *target.Write {
	t := target.On(id.Binding, "taking "+id.Rule.Name+" off "+id.Key.String(), id.Key)
	t.Condition = t.Format("attribute_exists(%n)", w.tables.PartitionKey)
	t.Holds(left.Last, id.Stamp)
	for _, b := range left.Beside {
		t.Holds(left.Last, b.Stamp)
	}
	t.Holds(left.Last, id.Rule.Writes...) // also those that stay: with the stamp goes what tells of them
	t.TakeOff(id.Stamp)
	for _, name := range left.Names {
		t.Put(name, left.Back[name])
	}
	return t
}

// bare takes the attribute off items that have no unique value, and so display nothing.
func (w *work) bare(ctx context.Context, bares *plan.Asked[plan.ItemRule, aggregates.Bare]) {
	for id, ba := range bares.All() {
		allowed, err := w.host.MayHeal(ctx, id.Binding, id.Key, ba.Contested)
		if err == nil && allowed {
			t := target.On(id.Binding, "taking "+id.Rule.Name+" off "+id.Key.String(), id.Key)
			t.TakeOff(id.Rule.Writes[0], id.Stamp)
			t.Condition = target.StillEntity(w.tables.Reader, t.Expression, id.Rule.Target)
			t.Holds(ba.Last, id.Rule.Target.Unique)
			_, _, err = w.host.Targets.Write(ctx, t)
		}
		w.Failed(ba.First, err)
	}
}
