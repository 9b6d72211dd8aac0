package projections

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/table"
	"github.com/dynamill/dynamill/rules"
)

// DynamoDB refuses some writes for good: an item that would grow over 400 KB, a
// collection over 10 GB, a number that does not fit. Such a write parks its (item,
// rule); the neighbours and the shard go on (promise 7). Every part of a plan comes
// by here: ledger.go judges ledger transactions, parkRefused all other writes.

func writeRejected(reason string) *rules.ItemError {
	return &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses the write: " + reason}
}

// parkRefused parks the (item, rule) if DynamoDB refuses its write for good, and returns
// every other error.
func (e *Engine) parkRefused(ctx context.Context, b *plan.Binding, item change.Key, err error) error {
	if reason := table.Refusal(err); reason != "" {
		return e.park(ctx, b, item, writeRejected(reason))
	}
	return err
}

// ended reports the outcome of a part of the plan for the first record that asked for
// it. A refused write counts as done.
func (w *work) ended(ctx context.Context, first int, b *plan.Binding, item change.Key, err error) {
	w.failed(first, w.parkRefused(ctx, b, item, err))
}
