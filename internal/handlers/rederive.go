package handlers

import (
	"context"
	"errors"

	"github.com/dynamill/dynamill/change"
)

// rederiveAll works off a late batch. Its images are never applied: since Lambda
// read them, later records of the same items may have been applied, under newer
// rules, and tombstones may have expired. What counts is the items as they are now.
func (d *delivery) rederiveAll(ctx context.Context) error {
	_, failure := d.park(ctx, func(e *element) bool { return !e.hasKey })
	return errors.Join(failure, d.rederive(ctx, func(*element) bool { return true }))
}

// rederive has elements' items rederived. It also repairs what parked elements leave behind. A later
// record of the same item is applied in its turn: what counts is the state that it shows, and
// the ledger notices the gap. But a rule whose attributes only the malformed
// record changed sees nothing in later records, so the item is rederived as well.
// Where not even the key can be read, what is parked is all that is left of it.
func (d *delivery) rederive(ctx context.Context, wanted func(*element) bool) error {
	var keyed []int
	for i := range d.elements {
		switch e := &d.elements[i]; {
		case !wanted(e):
		case e.hasKey:
			keyed = append(keyed, i)
		default:
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
