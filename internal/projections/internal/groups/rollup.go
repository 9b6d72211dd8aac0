package groups

import (
	"cmp"
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// run applies the changes that rules of groups ask for.
type run struct{ *host.Run }

// RollUp implements host.Grouper: each group's total is read and shown. Whether a rule is live is
// asked after the moves: a sum that changed before the rule went live is then seen by the
// seeding's own roll-up. Of rules that are not live it updates the list of contested targets, as
// far as locators changed: no roll-up reads these.
func (Family) RollUp(ctx context.Context, hr *host.Run, groups []plan.GroupRef, pl *plan.Changes) []error {
	r, errs := run{hr}, make([]error, len(groups))
	open, keys := openGroups(groups, pl, errs)
	rows, readErr := r.Tables.ReadState(ctx, "reading accumulators", keys)
	outcomes := r.Targets.Every(ctx, len(open), func(ctx context.Context, to target.Sender, n int) error {
		if readErr != nil {
			return readErr
		}
		return r.rollUpOne(ctx, to, open[n], rows, pl)
	})
	for n, err := range outcomes {
		errs[open[n].index] = err
	}
	r.makeItems(ctx, groups, pl, errs)
	return errs
}

// openGroup is a group whose total is shown, or whose locator decides whether a target is listed as contested.
type openGroup struct {
	plan.GroupRef
	index  int  // among the groups of the call
	isLive bool // its rule is
	lists  bool // it updates the list of contested targets: each locator is that of one group
}

// openGroups finds the groups that show an aggregate, or list a target, those of one item side by side, and the keys of their rows. Where a
// rule is not live, it sets host.ErrNotLive.
func openGroups(groups []plan.GroupRef, pl *plan.Changes, errs []error) (open []openGroup, keys []table.Key) {
	listed := map[table.Key]bool{}
	for i, g := range groups {
		if g.Rule.Derives() {
			continue
		}
		one := openGroup{GroupRef: g, index: i}
		if g.Live.Load() {
			one.isLive, keys = true, append(keys, TotalKeys(g)...)
		} else if errs[i] = host.ErrNotLive; !g.Rule.ByUnique || len(pl.Rollups.Of(g).Relocated) == 0 {
			continue
		}
		if key := state.LocatorKey(g.Locator, g.Group); g.Rule.ByUnique {
			one.lists, listed[key], keys = !listed[key], true, append(keys, key)
		}
		open = append(open, one)
	}
	slices.SortStableFunc(open, func(a, b openGroup) int { return cmp.Compare(a.Group, b.Group) })
	return open, keys
}

// rollUpOne shows a group's total, and lists its target if that is contested, by the rows as they were read.
func (r run) rollUpOne(ctx context.Context, to target.Sender, one openGroup, rows map[table.Key]table.Row, pl *plan.Changes) error {
	g := one.GroupRef
	if one.lists {
		contested := audit.ContestedTarget{ID: effects.LocatorID(g.Locator), Value: g.Group}
		locator := state.ReadSet(rows[state.LocatorKey(g.Locator, g.Group)], true)
		if err := r.UpdateContentionList(ctx, contested, locator); err != nil {
			return err
		}
	}
	if !one.isLive {
		return host.ErrNotLive
	}
	t, err := r.tidied(ctx, g, AddUp(g, rows))
	if err == nil {
		err = r.read(ctx, g, &t)
	}
	if err != nil {
		return err
	}
	return r.show(ctx, to, g, t, pl.Rollups.Of(g))
}

// show writes an aggregate's value to its target, if that exists and shows nothing later.
func (r run) show(ctx context.Context, to target.Sender, g plan.GroupRef, t Total, ru *plan.Rollup) error {
	if len(t.Targets) == 0 && t.Operations > 0 && t.Err == nil {
		r.noteRollupTarget(g, t, false) // no item has this unique value
	}
	for i, item := range t.Targets {
		if ru.Seen[item] == nil && !ru.Asked || !r.Tables.CanExist(item) {
			continue // its own record or scan shows it; or the locator's row is damaged
		}
		if t.Err != nil {
			if err := r.ParkTarget(ctx, g.Binding, item, t.Err); err != nil {
				return err
			}
			continue
		}
		write := r.writeTotal
		switch {
		case i > 0:
			if !ru.Hides(t.Targets[i-1], item) || len(ru.Relocated) == 0 && r.showsNothing(g, item, ru.Seen[item]) {
				continue
			}
			write = r.hide
		case t.Operations == 0 && !ru.Present && showsNothing(g.Rule):
			continue // it shows nothing now, and nothing was ever counted
		case r.showsTotal(g, t, item, ru.Seen[item]):
			r.noteRollupTarget(g, t, true)
			continue
		}
		allowed, err := r.MayHeal(ctx, g.Binding, item, ru.Corrections[item])
		if err == nil && allowed {
			err = write(ctx, to, g, t, item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTotal writes the total on a target that shows nothing later.
func (r run) writeTotal(ctx context.Context, to target.Sender, g plan.GroupRef, t Total, key change.Key) error {
	w := r.totalWrite("rolling up "+g.Rule.Name+" of "+key.String(), g, t, key, FormOf(g.Rule).Values(t))
	ended, current, err := to.Write(ctx, w)
	switch {
	case err != nil || ended == target.Refused:
		return err
	case ended == target.Written:
		r.Counters.Rollups.Add(1)
	}
	r.noteRollupTarget(g, t, ended == target.Written || r.isTarget(g, key, current))
	return nil
}

// totalWrite puts values under the stamp of a total on an item that displays the aggregate and shows nothing later.
func (r run) totalWrite(doing string, g plan.GroupRef, t Total, key change.Key, values []change.Value) *target.Write {
	s := stamp.Stamp{Context: stamp.Context(r.Planner.Incarnation, key, g.Group), Version: r.versionOf(t),
		Digest: plan.Digest(g.Binding, values)}
	w := target.On(g.Binding, doing, key)
	for i, name := range g.Rule.Writes {
		w.Put(name, values[i])
	}
	w.Stamp(s)
	w.Condition = target.StillEntity(r.Tables.Reader, w.Expression, g.Rule.Target) + target.StillGroup(w.Expression, g) + " AND " +
		target.UnstampedOrNotLater(w.Expression, g.Stamp, s)
	return w
}

// isTarget reports whether the item that a lost write found is one that displays the aggregate.
func (r run) isTarget(g plan.GroupRef, target change.Key, current change.Image) bool {
	if current == nil {
		return false
	}
	m, ok := r.Planner.Set.Identify(target, current)
	if !ok || m.Entity != g.Rule.Target {
		return false
	}
	group, has, err := g.Rule.GroupOf(&m, current)
	return err == nil && has && group == g.Group
}

// shownVersion returns the version under which an item shows values; false if it shows others. The item was
// read before the sum.
func (r run) shownVersion(g plan.GroupRef, key change.Key, seen change.Image, values []change.Value) (stamp.Version, bool) {
	if seen == nil {
		return "", false
	}
	digest := plan.Digest(g.Binding, values)
	s, ok := stamp.Read(seen.Lookup(g.Stamp), contextOf(g.Binding, r.Planner.Incarnation, key, g.Group))
	return s.Version, ok && s.Digest == digest && plan.DigestOf(g.Binding, seen) == digest
}

// showsTotal reports whether a target shows a total: under older rules the same count of operations made the same sum.
func (r run) showsTotal(g plan.GroupRef, t Total, key change.Key, seen change.Image) bool {
	v, ok := r.shownVersion(g, key, seen, FormOf(g.Rule).Values(t))
	return ok && v.UnderEpoch(r.Planner.Epoch) == r.versionOf(t)
}

// showsNothing reports whether an item that lost its unique value to another shows nothing. Only a change of
// the locator asks for more: a sum that was read before is older than the stamp.
func (r run) showsNothing(g plan.GroupRef, key change.Key, seen change.Image) bool {
	_, ok := r.shownVersion(g, key, seen, nothing(g.Rule))
	return ok
}

// VersionOf is the version of a total. What is summed and where it is shown only ever
// changes by counts that rise, so their sum is a version.
func VersionOf(p *plan.Planner, t Total) stamp.Version {
	return stamp.VersionOf(p.Epoch, t.Operations+t.Changes)
}

func (r run) versionOf(t Total) stamp.Version { return VersionOf(r.Planner, t) }

// hide takes the attribute off an item that lost its unique value to another.
// The stamp stays: it keeps a stalled worker from showing there what was true before.
func (r run) hide(ctx context.Context, to target.Sender, g plan.GroupRef, t Total, item change.Key) error {
	_, _, err := to.Write(ctx, r.totalWrite("taking "+g.Rule.Name+" off "+item.String(), g, t, item, nothing(g.Rule)))
	return err
}

// TakeOffUngrouped takes the attribute off items that have no unique value, and so display nothing.
func TakeOffUngrouped(ctx context.Context, r *host.Run, pl *plan.Changes) {
	for id, u := range plan.PartOf[ungrouped](pl).All() {
		allowed, err := r.MayHeal(ctx, id.Binding, id.Key, u.Correction)
		if err == nil && allowed {
			t := target.On(id.Binding, "taking "+id.Rule.Name+" off "+id.Key.String(), id.Key)
			t.TakeOff(append(slices.Clone(id.Rule.Writes), id.Stamp)...)
			t.Condition = target.StillEntity(r.Tables.Reader, t.Expression, id.Rule.Target)
			t.Holds(u.Last, id.Rule.Target.Unique)
			_, _, err = r.Targets.Write(ctx, t)
		}
		r.Failed(u.First, err)
	}
}

// noteRollupTarget notes whether the target of a roll-up exists.
func (r run) noteRollupTarget(g plan.GroupRef, t Total, there bool) {
	m := r.Missing[g.Binding]
	switch {
	case t.Members == 0: // no source points at it
		m.Forget(g.Group)
	case there:
		m.NoteTarget(g.Group)
	default:
		m.NoteMissing(g.Group, func(p *sightings.TargetSources) { p.SetCount(t.Members) })
	}
}

// tidied is a total whose rows hold nothing in vain, and whose parked record is in line with them.
func (r run) tidied(ctx context.Context, g plan.GroupRef, t Total) (Total, error) {
	tidier, ok := g.Rule.Form.(Tidier)
	if !ok {
		return t, nil
	}
	changed, err := tidier.Tidy(ctx, r.Host, g, t)
	if changed && err == nil {
		var rows map[table.Key]table.Row
		rows, err = r.Tables.ReadState(ctx, "reading accumulators", TotalKeys(g))
		t = AddUp(g, rows)
	}
	if err == nil {
		err = tidier.List(ctx, r.Host, g, t)
	}
	return t, err
}
