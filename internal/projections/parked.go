package projections

import (
	"context"
	"errors"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ErrNotParked is returned for an id under which nothing is parked.
var ErrNotParked = errors.New("nothing is parked under this id")

// Parked is an (item, rule) that is set aside because it can never succeed as it is.
type Parked struct {
	state.Parked // its Raw, what came or its beginning, is from FindParked only

	Rule string // the rule's name, "unique <Entity>" for a locator, or "record" for one that could not be read
	Key  change.Key
	// Claimants are the items that claim a contested target, the one that wins first. Key is
	// the mirror item, or, of a unique value, the item that wins.
	Claimants []change.Key

	contested *audit.ContestedTarget // nil for every other entry
}

// recordID begins the id of a parked record that could not be read.
const recordID = "record/"

// rawBytesMax is how much of a record that could not be read is kept: an item
// holds 400 KB (DynamoDB developer guide, "Constraints").
const rawBytesMax = 300 << 10

// ParkRecord sets aside a record that a driver could not read. Under the same id it changes nothing
// but when that was. Nothing of it is applied, and a retry cannot help:
// the item's next record that changes its effects does, or rederiving the item.
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

// RetryParked rederives the item. What was parked goes away if the item is
// good now. Otherwise it stays with its new reason, as does a record that could not be read. A contested
// target stays listed while several items claim it. It returns ErrNotParked for an unknown id.
func (e *Engine) RetryParked(ctx context.Context, id string) error {
	p, err := e.FindParked(ctx, id)
	if err != nil {
		return err
	}
	if p.contested != nil {
		return e.host.UnlistIfUncontested(ctx, *p.contested)
	}
	if p.Key == (change.Key{}) {
		return nil // a record that cannot be read stays so
	}
	if err := e.Rederive(ctx, []change.Key{p.Key}); err != nil {
		return err
	}
	return e.host.Unpark(ctx, id, p.Parking)
}

// DiscardParked forgets what is parked under an id, and does nothing else: the
// item has no effect under the rule until it changes. It returns ErrNotParked for an unknown id.
func (e *Engine) DiscardParked(ctx context.Context, id string) error {
	if _, err := e.FindParked(ctx, id); err != nil {
		return err
	}
	return e.host.Unpark(ctx, id, "")
}
