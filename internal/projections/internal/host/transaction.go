package host

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Part is one write of a transaction.
type Part struct {
	Write  ddb.TransactWriteItem
	Action plan.Action  // what it carries out; under no key: a ledger entry, or a check
	Moves  []*plan.Move // in a ledger transaction: the move whose entry or action it is; all that add to a sum

	SeveralEffects bool // two or more effects ask for it; Action.Key is the first one's
}

// PartOf is an action of a move as a part of a transaction; v is the version of what it writes.
func (h *Host) PartOf(mv *plan.Move, a plan.Action, v stamp.Version) Part {
	p := Part{Action: a, Moves: []*plan.Move{mv}}
	switch a.Kind {
	case plan.AddLocator, plan.RemoveLocator:
		p.Write = h.locatorWrite(mv, a)
	case plan.Park:
		p.Write = h.Tables.PutPart(h.ParkedRow(a.Key.ID, a.Target, mv.Position, a.Effect.Parked), "", table.NewExpression())
	case plan.Unpark:
		p.Write = h.Tables.DeletePart(state.ParkedItemKey(a.Key.ID, a.Target), "", table.NewExpression())
	default:
		p.Write = a.Rule.Kind.(Actor).Write(h, a, v)
	}
	return p
}

// locatorWrite changes the set of items that claim a unique value, and counts the change: what is shown before it is earlier.
func (h *Host) locatorWrite(mv *plan.Move, a plan.Action) ddb.TransactWriteItem {
	locator, _ := effects.LocatorIn(a.Key.ID)
	c := table.NewExpression()
	members := &ddb.AttributeValueMemberSS{Value: []string{mv.Key.String()}}
	update := c.Format("ADD %n %v", "changes", table.Number(1))
	if a.Kind == plan.AddLocator {
		update += c.Format(", %n %v", "items", members)
	} else {
		update += c.Format(" DELETE %n %v", "items", members)
	}
	return h.Tables.UpdatePart(state.LocatorKey(locator, a.Effect.Group), update, "", c)
}

// Transact sends parts as one transaction for their owners. Once it took effect, it counts and logs the actions.
func (h *Host) Transact(ctx context.Context, doing string, owners []string, parts []Part) error {
	writes := make([]ddb.TransactWriteItem, len(parts))
	for i, p := range parts {
		writes[i] = p.Write
	}
	if err := h.Tables.Transact(ctx, doing, owners, writes); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Action.Writes {
			h.Counters.Made.Add(1)
		}
		if p.Action.Kind == plan.Park && !p.Action.Again {
			h.NoteParked(ctx, p.Action.Key.ID, p.Action.Target, p.Action.Effect.Parked)
		}
	}
	return nil
}
