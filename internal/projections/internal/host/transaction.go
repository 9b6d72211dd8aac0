package host

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Part is one write of a transaction.
type Part struct {
	Write  ddb.TransactWriteItem
	ID     string       // the rule (or locator) that asks for it; "" for a ledger entry
	Action plan.Action  // what it carries out; of no kind: none
	Moves  []*plan.Move // in a ledger transaction: the move whose entry or action it is; all that add to a sum
}

// PartOf is an action of a move as a part of a transaction; v is the version of what it writes.
func (h *Host) PartOf(mv *plan.Move, a plan.Action, v plan.Version) Part {
	p := Part{ID: a.ID, Action: a, Moves: []*plan.Move{mv}}
	switch a.Kind {
	case plan.AddLocator, plan.RemoveLocator:
		p.Write = h.locatorWrite(mv, a)
	case plan.Park:
		p.Write = h.Tables.PutPart(h.ParkedRow(a.ID, a.Target, mv.Position, a.Effect.Parked), "", table.NewExpression())
	case plan.Unpark:
		p.Write = h.Tables.DeletePart(state.ParkedKey(state.ParkedID(a.ID, a.Target)), "", table.NewExpression())
	default:
		p.Write = MakerOf(a.Rule).Write(h, a, v)
	}
	return p
}

// locatorWrite adds or removes the item in the set of items that claim a
// unique value, and counts the change, so that what is shown before it is
// earlier than what is shown after.
func (h *Host) locatorWrite(mv *plan.Move, a plan.Action) ddb.TransactWriteItem {
	locator, _ := plan.LocatorIn(a.ID)
	c := table.NewExpression()
	members := &ddb.AttributeValueMemberSS{Value: []string{mv.Key.String()}}
	update := c.Format("ADD %n %v", "changes", table.Number(1))
	if a.Kind == plan.AddLocator {
		update += c.Format(", %n %v", "items", members)
	} else {
		update += c.Format(" DELETE %n %v", "items", members)
	}
	return h.Tables.UpdatePart(state.LocatorKey(locator, a.Effect.Value), update, "", c)
}

// Transact sends parts as one transaction, for their owners (see table.Tables.Transact). Once it took
// effect, it counts and logs the actions.
func (h *Host) Transact(ctx context.Context, doing string, owners []string, parts []Part) error {
	writes := make([]ddb.TransactWriteItem, len(parts))
	for i, p := range parts {
		writes[i] = p.Write
	}
	if err := h.Tables.Transact(ctx, doing, owners, writes); err != nil {
		return err
	}
	for _, p := range parts {
		switch p.Action.Kind {
		case plan.UpsertMirror, plan.DeleteMirror, plan.ReleaseMirror:
			h.Counters.Made.Add(1)
		case plan.Park:
			if !p.Action.Again {
				h.NoteParked(ctx, p.ID, p.Action.Target, p.Action.Effect.Parked)
			}
		}
	}
	return nil
}
