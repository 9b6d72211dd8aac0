package projections

import (
	"cmp"
	"context"
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

// rollUp brings up to date, once, what several sources make together. Rules that are still
// seeding show nothing (promise 10). Whether a rule is live is asked after the
// moves: a sum that changed before the rule went live is then seen by the
// seeding's own roll-up.
func (w *work) rollUp(ctx context.Context, pl *plan.Changes) {
	made := map[host.Maker][]plan.GroupRef{} // items that several sources may claim
	due, relocated := map[host.Gatherer][]plan.GroupRef{}, map[host.Gatherer][]plan.GroupRef{}
	var waiting []*plan.Rollup
	for g, ru := range pl.Rollups.All() {
		switch {
		case g.Rule.MakesItems():
			made[host.MakerOf(g.Rule)] = append(made[host.MakerOf(g.Rule)], g)
		case g.Live.Load():
			due[host.GathererOf(g.Rule)] = append(due[host.GathererOf(g.Rule)], g)
		default: // the rule finds its targets by locators, which may have changed
			if waiting = append(waiting, ru); len(ru.Relocated) > 0 {
				relocated[host.GathererOf(g.Rule)] = append(relocated[host.GathererOf(g.Rule)], g)
			}
		}
	}
	keptMarks := map[*plan.Move]bool{}
	rolledUp := func(groups []plan.GroupRef, errs []error) {
		for i, err := range errs {
			if err == nil {
				continue
			}
			ru := pl.Rollups.Of(groups[i])
			w.Failed(ru.First, err)
			for _, mv := range ru.Marks {
				keptMarks[mv] = true
			}
		}
	}
	gatherers := inForce(w.planner.Set, host.GathererOf)
	for _, gatherer := range gatherers {
		for g, err := range gatherer.ListContention(ctx, w.Run, relocated[gatherer]) {
			w.Failed(pl.Rollups.Of(g).First, err)
		}
		groups := sortedGroups(due[gatherer])
		rolledUp(groups, gatherer.RollUp(ctx, w.Run, groups, pl))
	}
	for _, m := range inForce(w.planner.Set, host.MakerOf) {
		targets := sortedGroups(made[m])
		rolledUp(targets, m.Derive(ctx, w.host, targets))
	}
	for _, ru := range waiting {
		for _, mv := range ru.Marks {
			if !keptMarks[mv] && !slices.Contains(w.waiting, mv) {
				w.waiting = append(w.waiting, mv)
			}
		}
	}
	for _, mv := range w.waiting {
		keptMarks[mv] = true
	}
	w.clearMarks(ctx, pl, keptMarks)
	for _, gatherer := range gatherers {
		gatherer.Finish(ctx, w.Run, pl)
	}
}

func sortedGroups(groups []plan.GroupRef) []plan.GroupRef {
	slices.SortFunc(groups, func(a, b plan.GroupRef) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Group, b.Group))
	})
	return groups
}

// inForce are the roles of the rules in force, each once, in the order of the file.
func inForce[Role comparable](set *rules.Set, of func(*rules.Rule) Role) []Role {
	var none Role
	var all []Role
	for _, r := range set.Rules {
		if role := of(r); role != none && !slices.Contains(all, role) {
			all = append(all, role)
		}
	}
	return all
}

// clearMarks clears the due marks of entries whose aggregates are all shown.
func (w *work) clearMarks(ctx context.Context, pl *plan.Changes, keptMarks map[*plan.Move]bool) {
	seen := map[*plan.Move]bool{}
	for _, ru := range pl.Rollups.All() {
		for _, mv := range ru.Marks {
			if seen[mv] || keptMarks[mv] {
				continue
			}
			seen[mv] = true
			w.Failed(mv.First, w.ledger.ClearDue(ctx, mv))
		}
	}
}
