package handlers

import (
	"context"
	"errors"

	"github.com/dynamill/dynamill/change"
)

// byPosition tells malformed elements that have a position from those that have none.
func (d *delivery) byPosition(parked []int) (placed, unplaced []int) {
	for _, i := range parked {
		if d.elements[i].record.Position.IsZero() {
			unplaced = append(unplaced, i)
		} else {
			placed = append(placed, i)
		}
	}
	return placed, unplaced
}

// rederiveAll works off a late batch. Its images are never applied: since Lambda
// read them, later records of the same items may have been applied, under newer
// rules, and tombstones may have expired. What counts is the items as they are now.
func (d *delivery) rederiveAll(ctx context.Context) error {
	_, _, failure := d.park(ctx, func(e *element) bool { return !e.hasKey })
	all := make([]int, len(d.elements))
	for i := range all {
		all[i] = i
	}
	return errors.Join(failure, d.rederive(ctx, all))
}

// rederive has elements' items rederived. It also repairs what parked elements leave behind. A later
// record of the same item is applied in its turn: what counts is the state that it shows, and
// the ledger notices the gap. But a rule whose attributes only the malformed
// record changed sees nothing in later records, so the item is rederived as well.
// Where not even the key can be read, what is parked is all that is left of it.
func (d *delivery) rederive(ctx context.Context, elements []int) error {
	var keyed []int
	for _, i := range elements {
		if e := &d.elements[i]; e.hasKey {
			keyed = append(keyed, i)
		} else {
			e.done = e.parked
		}
	}
	return d.inPieces(ctx, "rederiving", keyed, func(ctx context.Context, piece []change.Record) (int, error) {
		if err := d.Rederiver.RederiveRecords(ctx, piece); err != nil {
			return 0, err
		}
		return len(piece), nil
	})
}
