package projections

import (
	"context"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// recordID begins the id of a parked record that could not be read.
const recordID = "record/"

// rawBytesMax is how much of such a record is kept: an item holds 400 KB (DynamoDB developer guide, "Constraints").
const rawBytesMax = 300 << 10

// ParkRecord sets aside a record that a driver could not read. A retry cannot help; the item's next record, or rederiving it, does.
func (e *Engine) ParkRecord(ctx context.Context, id, code, reason string, raw []byte) error {
	text := strings.ToValidUTF8(string(raw[:min(len(raw), rawBytesMax)]), "\ufffd") // which may be three times as long
	record := state.Parked{
		ID: recordID + id, Code: code, Reason: reason, At: e.host.Now(), Parking: state.NewID(),
		Raw: strings.ToValidUTF8(text[:min(len(text), rawBytesMax)], ""),
	}
	_, err := e.tables.PutState(ctx, "", "parking record "+id, record.Row(), "", table.NewExpression())
	if err == nil {
		e.host.Counters.Parked.Add(1)
		e.host.Logger.WarnContext(ctx, "parked a record that cannot be read", "record", id, "code", code, "reason", reason)
	}
	return err
}

// RetryParked rederives the item. What was parked goes if the item is good now; otherwise it stays with its new reason. A record that could
// not be read stays. The row of a contested target goes once fewer than two items claim it, and that of an aggregate with too many values
// once it has few enough. It returns inspect.ErrNotParked for an unknown id.
func (e *Engine) RetryParked(ctx context.Context, id string) error {
	p, err := e.FindParked(ctx, id)
	if err != nil {
		return err
	}
	if p.Contested() != nil {
		return e.host.UnlistIfUncontested(ctx, *p.Contested())
	}
	if p.Key == (change.Key{}) {
		return nil // a record that cannot be read stays so
	}
	if err := e.Rederive(ctx, []change.Key{p.Key}); err != nil {
		return err
	}
	if p.Code == audit.PerTooMany {
		return nil // the roll-up clears it, if there are few values
	}
	return e.host.Unpark(ctx, id, p.Parking)
}

// DiscardParked forgets what is parked under an id: the item has no effect under the rule until it changes. It returns
// inspect.ErrNotParked for an unknown id.
func (e *Engine) DiscardParked(ctx context.Context, id string) error {
	if _, err := e.FindParked(ctx, id); err != nil {
		return err
	}
	return e.host.Unpark(ctx, id, "")
}
