package host

import (
	"context"
	"fmt"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// DynamoDB refuses some writes for good: an item over 400 KB, a number that does not fit. Such a write parks its (item, rule); the
// others go on (promise 7). The ledger judges its own transactions, ParkRefused all other writes.

// ParkedRow is the row that sets an (item, rule) aside.
func (h *Host) ParkedRow(ruleID string, item change.Key, position change.Position, why *rules.ItemError) table.Row {
	return h.newParked(state.ParkedID(ruleID, item), ruleID, item, position, why).Row()
}

func (h *Host) newParked(id, ruleID string, item change.Key, position change.Position, why *rules.ItemError) state.Parked {
	return state.Parked{
		ID: id, Rule: ruleID, Item: item, Code: why.Code, Reason: why.Reason, Position: position, At: h.Now(), Parking: state.NewID(),
	}
}

// ParkID sets an item aside under a rule or a locator; position is that of the record to blame, zero for none.
func (h *Host) ParkID(ctx context.Context, ruleID string, item change.Key, position change.Position, why *rules.ItemError) error {
	return h.putParked(ctx, h.newParked(state.ParkedID(ruleID, item), ruleID, item, position, why), why)
}

// ParkTarget sets aside an item that the engine cannot write for a rule, under audit.ParkedTargetID.
func (h *Host) ParkTarget(ctx context.Context, b *plan.Binding, item change.Key, why *rules.ItemError) error {
	return h.putParked(ctx, h.newParked(audit.ParkedTargetID(b, item), b.ID, item, change.Position{}, why), why)
}

func (h *Host) putParked(ctx context.Context, p state.Parked, why *rules.ItemError) error {
	_, err := h.Tables.PutState(ctx, p.Rule, "parking "+p.Item.String(), p.Row(), "", table.NewExpression())
	if err == nil {
		h.NoteParked(ctx, p.Rule, p.Item, why)
	}
	return err
}

// NoteParked counts and logs an (item, rule) that is set aside.
func (h *Host) NoteParked(ctx context.Context, ruleID string, item change.Key, why *rules.ItemError) {
	h.Counters.Parked.Add(1)
	h.Logger.WarnContext(ctx, "parked an item under a rule", "rule", ruleID, "item", item.String(), "code", why.Code, "reason", why.Reason)
}

// ParkUnread parks an item that a rule cannot read, or clears what is parked of one that it can, by the item as it is now. bad says
// why it cannot be read; reads are the attributes on which that depends. The same transaction checks them: a late write
// must not park what a good record has cleared, nor the other way round.
func (h *Host) ParkUnread(ctx context.Context, id plan.ItemRule, position change.Position, reads []string,
	bad func(change.Image) *rules.ItemError) error {
	return table.Contend(ctx, "parking or clearing "+id.Key.String(), func() (table.Round, error) {
		parked := state.ParkedItemKey(id.ID, id.Key)
		items, rows, err := h.Tables.ReadBoth(ctx, "reading "+id.Key.String()+" and what is parked", []change.Key{id.Key}, []table.Key{parked})
		if err != nil {
			return table.Lost, err
		}
		why, code := bad(table.Image(items[id.Key])), table.TextOf(rows[parked]["code"])
		parker, parks := id.Family.(Parker)
		if why == nil && (code == "" || audit.ParkingStays(id.Binding, code) || parks && parker.Parks(code)) {
			return table.Finished, nil // nothing is parked but, perhaps, a write that was refused
		}
		c := table.NewExpression()
		write := h.Tables.DeletePart(parked, table.Whole(c.SameAs(rows[parked], "code")), c)
		if why != nil {
			write = h.Tables.PutPart(h.ParkedRow(id.ID, id.Key, position, why), "", table.NewExpression())
		}
		err = h.Tables.Transact(ctx, "updating what is parked of "+id.Key.String(), []string{id.ID},
			append([]ddb.TransactWriteItem{write}, target.StillReads(h.Tables.Reader, id, reads, items[id.Key])...))
		if err == nil && why != nil {
			h.NoteParked(ctx, id.ID, id.Key, why)
		}
		if table.LostRace(err) {
			return table.Lost, nil
		}
		return table.Finished, err
	})
}

// Unpark clears what is parked under an id; with a parking, only if it was not parked again since.
func (h *Host) Unpark(ctx context.Context, id, parking string) error {
	c, condition := table.NewExpression(), ""
	if parking != "" {
		condition = c.Format("%n = %v", "parking", table.Text(parking))
	}
	return h.Tables.DeleteState(ctx, "", "clearing what was parked", state.ParkedKey(id), condition, c)
}

// ParkRefused parks the (item, rule) if DynamoDB refuses its write for good, and returns every other error.
func (h *Host) ParkRefused(ctx context.Context, b *plan.Binding, item change.Key, err error) error {
	if reason := table.Refusal(err); reason != "" {
		return h.ParkTarget(ctx, b, item, WriteRejected(reason))
	}
	return err
}

// WriteRejected says that DynamoDB refuses a write for good.
func WriteRejected(reason string) *rules.ItemError {
	return &rules.ItemError{Code: effects.CodeWriteRejected, Reason: "DynamoDB refuses the write: " + reason}
}

// healWindow is the time in which HealsMax corrections are allowed.
const healWindow = 10 * time.Minute

// MayHeal counts one correction of a foreign write, and reports whether it stays within the bound. Beyond it another program fights for the
// attribute: the (item, rule) is parked.
func (h *Host) MayHeal(ctx context.Context, b *plan.Binding, item change.Key, correction bool) (bool, error) {
	if !correction {
		return true, nil
	}
	now := h.Now()
	c := table.NewExpression()
	update := c.Format("SET %n = %v ADD %n %v", "ttl", table.Number(now.Add(2*healWindow).Unix()), "corrections", table.Number(1))
	in := h.Tables.StateUpdate(state.HealsKey(b, item, now.Unix()/int64(healWindow/time.Second)), update, "", c)
	in.ReturnValues = ddb.ReturnValueUpdatedNew
	out, err := h.Tables.UpdateItem(ctx, b.ID, "counting a correction", in)
	if err != nil {
		return false, err
	}
	n := table.NumberOf(out.Attributes["corrections"])
	if n <= h.HealsMax {
		h.Counters.Heals.Add(1)
		return true, nil
	}
	if n == h.HealsMax+1 {
		h.Logger.ErrorContext(ctx, "another program keeps overwriting a derived attribute: correcting it is suspended",
			"rule", b.Rule.Name, "item", item.String(), "corrections", h.HealsMax, "within", healWindow)
	}
	return false, h.ParkTarget(ctx, b, item, &rules.ItemError{Code: effects.CodeHealContested, Reason: fmt.Sprintf(
		"another program overwrote what rule %s writes here more than %d times in %s: stop that program, then run `dynamill parked retry`",
		b.Rule.Name, h.HealsMax, healWindow)})
}
