package projections

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// rollUp brings up to date, once, what several sources make together: first what is
// displayed, then the items that are made. The marks of rules that are not live wait.
func (w *work) rollUp(ctx context.Context, pl *plan.Changes) {
	keptMarks := map[*plan.Move]bool{}
	for _, family := range slices.Backward(host.Having[host.Grouper](Kinds)) {
		groups := groupsOf(family, pl)
		for i, err := range family.RollUp(ctx, w.Run, groups, pl) {
			if err == nil {
				continue
			}
			ru, waits := pl.Rollups.Of(groups[i]), errors.Is(err, host.ErrNotLive)
			if !waits {
				w.Failed(ru.First, err)
			}
			for _, mv := range ru.Marks {
				if waits && !slices.Contains(w.waiting, mv) {
					w.waiting = append(w.waiting, mv)
				}
				keptMarks[mv] = true
			}
		}
	}
	w.clearMarks(ctx, pl, keptMarks)
	for _, gatherer := range host.Having[host.Gatherer](Kinds) {
		gatherer.Finish(ctx, w.Run, pl)
	}
}

// groupsOf are the groups of a family's rules that are to be rolled up.
func groupsOf(family host.Grouper, pl *plan.Changes) []plan.GroupRef {
	groups := slices.DeleteFunc(slices.Clone(pl.Rollups.Keys()), func(g plan.GroupRef) bool { return !host.SameFamily(g.Rule.Kind, family) })
	slices.SortFunc(groups, func(a, b plan.GroupRef) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Group, b.Group))
	})
	return groups
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
