package auditing

import (
	"context"
	"errors"
	"slices"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// excuse notes what is not to be judged now: what is parked, and children that
// an unfinished fan-out of their parent has still to come to.
func (e *Evidence) excuse(ctx context.Context, readings []drift.Reading) error {
	var keys []table.Key
	wrong := false
	for i := range readings {
		if r := &readings[i]; len(r.Findings) > 0 {
			wrong, keys = true, append(append(keys, e.Parkings(r)...), e.tasksOf(r)...)
		}
	}
	if !wrong {
		return nil
	}
	if err := errors.Join(e.fetchRows(ctx, keys), e.checkEpoch(ctx)); err != nil {
		return err
	}
	for i := range readings {
		r := &readings[i]
		if len(r.Findings) == 0 || r.Torn { // what is parked is so because of the torn row
			continue
		}
		if slices.ContainsFunc(e.Parkings(r), func(k table.Key) bool { return audit.ParkingStays(table.TextOf(e.Rows[k]["code"])) }) {
			r.Waiting, r.Final = "parked", true
		} else if slices.ContainsFunc(e.tasksOf(r), func(k table.Key) bool {
			return len(e.Rows[k]) > 0 && !audit.TornTask(e.Planner, attributes.ItemFromTable(e.Rows[k]))
		}) {
			r.Waiting = "a fan-out of its parent is not finished"
		}
	}
	return nil
}

// Parkings are where what would excuse a reading is parked.
func (e *Evidence) Parkings(r *drift.Reading) []table.Key {
	if parkings := e.procedure(r.Suspect).Parkings; parkings != nil {
		return parkings(e, r)
	}
	return []table.Key{parkedKey(r.Suspect)}
}

// tasksOf are where unfinished work that has still to come to an item is kept.
func (e *Evidence) tasksOf(r *drift.Reading) []table.Key {
	if tasks := e.procedure(r.Suspect).Tasks; tasks != nil {
		return tasks(e, r)
	}
	return nil
}
