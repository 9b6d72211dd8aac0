package handlers

import (
	"context"
	"errors"
	"slices"

	"github.com/dynamill/dynamill/change"
)

// byPosition tells malformed elements that have a position from those that have none.
func (d *delivery) byPosition(parked []int) (placed, unplaced []int) {
	for _, i := range parked {
		if _, err := d.elements[i].position(); err == nil {
			placed = append(placed, i)
		} else {
			unplaced = append(unplaced, i)
		}
	}
	return placed, unplaced
}

// rederiveParked repairs what parked elements leave behind. A later record of the
// same item is applied in its turn: what counts is the state that it shows, and
// the ledger notices the gap. But a rule whose attributes only the malformed
// record changed sees nothing in later records, so the item is rederived as well.
// Where not even the key can be read, what is parked is all that is left of it.
func (d *delivery) rederiveParked(ctx context.Context, parked []int) error {
	var keyed []int
	for _, i := range parked {
		if d.elements[i].hasKey {
			keyed = append(keyed, i)
		} else {
			d.open[i] = false
			d.parked++
		}
	}
	done, err := d.rederive(ctx, keyed)
	for _, i := range keyed[:done] {
		d.open[i] = false
	}
	d.parked += done
	return err
}

// rederiveAll works off a late batch. Its images are never applied: since Lambda
// read them, later records of the same items may have been applied, under newer
// rules, and tombstones may have expired. What counts is the items as they are now.
func (d *delivery) rederiveAll(ctx context.Context) error {
	parked, _, failure := d.park(ctx, func(e *element) bool { return !e.hasKey })
	for _, i := range parked {
		d.open[i] = false
	}
	d.parked = len(parked)
	var keyed []int
	for i := range d.elements {
		if d.elements[i].hasKey {
			keyed = append(keyed, i)
		}
	}
	done, err := d.rederive(ctx, keyed)
	for _, i := range keyed[:done] {
		d.open[i] = false
	}
	d.applied = done
	return errors.Join(failure, err)
}

// rederive has elements' items rederived, piece by piece, until one fails or time
// is up, and returns how many elements are done.
func (d *delivery) rederive(ctx context.Context, elements []int) (done int, err error) {
	if len(elements) == 0 {
		return 0, nil
	}
	for piece := range slices.Chunk(d.recordsOf(elements), d.BatchMax) {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		if err := d.Rederiver.RederiveRecords(ctx, piece); err != nil {
			return done, d.stopped(ctx, "rederiving", err)
		}
		done += len(piece)
	}
	return done, nil
}

// recordsOf are elements' records; of a malformed one all that is to be trusted
// is its key, and its position if it has one.
func (d *delivery) recordsOf(elements []int) []change.Record {
	good := make(map[int]int, len(d.owners))
	for i, owner := range d.owners {
		good[owner] = i
	}
	records := make([]change.Record, len(elements))
	for n, i := range elements {
		if r, ok := good[i]; ok {
			records[n] = d.records[r]
			continue
		}
		e := &d.elements[i]
		position, _ := e.position() // zero if it cannot be read
		records[n] = change.Record{Key: e.key, Position: position}
	}
	return records
}
