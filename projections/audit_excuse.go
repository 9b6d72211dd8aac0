package projections

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// excuse notes what is not to be judged now: what is parked, and children that
// an unfinished fan-out of their parent has still to come to.
func (s *auditRead) excuse(ctx context.Context, readings []drift.Reading) error {
	var keys []table.Key
	wrong := false
	for i := range readings {
		if len(readings[i].Findings) > 0 {
			wrong, keys = true, append(append(keys, s.parkings(&readings[i])...), s.tasksOf(&readings[i])...)
		}
	}
	if !wrong {
		return nil
	}
	if err := errors.Join(s.fetchRows(ctx, keys), s.checkEpoch(ctx)); err != nil {
		return err
	}
	for i := range readings {
		r := &readings[i]
		if len(r.Findings) == 0 || r.Torn { // what is parked is so because of the torn row
			continue
		}
		if slices.ContainsFunc(s.parkings(r), func(k table.Key) bool { return audit.ParkingStays(table.TextOf(s.rows[k]["code"])) }) {
			r.Waiting, r.Final = "parked", true
		} else if slices.ContainsFunc(s.tasksOf(r), func(k table.Key) bool {
			return len(s.rows[k]) > 0 && !audit.TornTask(s.planner, attributes.ItemFromTable(s.rows[k]))
		}) {
			r.Waiting = "a fan-out of its parent is not finished"
		}
	}
	return nil
}

// parkings are where what would excuse a reading is parked.
func (s *auditRead) parkings(r *drift.Reading) []table.Key {
	sus := r.Suspect
	switch sus.Kind {
	case drift.Entry:
		var keys []table.Key
		for _, f := range r.Findings {
			if strings.HasPrefix(f.Expected, "!") {
				continue // that it is parked is what is expected
			}
			for _, rule := range s.planner.Set.Rules {
				if rule.Name == f.Rule {
					keys = append(keys, state.ParkedKey(state.ParkedID(s.planner.Of(rule).ID, sus.Item)))
				}
			}
			if entity, ok := strings.CutPrefix(f.Rule, "unique "); ok {
				keys = append(keys, state.ParkedKey(state.ParkedID(plan.LocatorID(entity), sus.Item)))
			}
		}
		return keys
	case drift.Claims, drift.Locator:
		var keys []table.Key
		for _, f := range r.Findings {
			if f.Kind == drift.Parked {
				continue // the row of a contested target
			}
			keys = append(keys, state.ParkedKey(state.ParkedID(sus.Rule, change.ParseKey(f.Expected+f.Found))))
		}
		return keys
	case drift.Mirror:
		var keys []table.Key
		for _, b := range s.mirrorRules(sus.Item) {
			keys = append(keys, state.ParkedKey(state.ParkedID(b.ID, sus.Item)))
			for _, source := range s.sourcesOf(sus) {
				keys = append(keys, state.ParkedKey(state.ParkedID(b.ID, change.ParseKey(source))))
			}
		}
		return keys
	}
	return []table.Key{state.ParkedKey(state.ParkedID(sus.Rule, sus.Item))}
}

// tasksOf are where unfinished work on a child's parent is kept.
func (s *auditRead) tasksOf(r *drift.Reading) []table.Key {
	if r.Suspect.Kind != drift.Copy && r.Suspect.Kind != drift.Reference {
		return nil
	}
	id := plan.ItemRule{Binding: s.planner.ByID(r.Suspect.Rule), Key: change.ParseKey(r.Suspect.Group)}
	return []table.Key{state.TaskKey(state.Task{Parent: id}), state.TaskKey(state.Task{Parent: id, Refill: true})}
}
