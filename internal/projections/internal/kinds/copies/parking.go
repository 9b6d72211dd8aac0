package copies

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// updateParking parks a child that cannot name its parent, or clears what is parked of one that can. The same transaction
// checks the child: a late write must not park what a good record has cleared, nor the other way round.
func (w run) updateParking(ctx context.Context, ch *childFill) error {
	return table.Contend(ctx, "parking or clearing "+ch.Key.String(), func() (table.Round, error) {
		parked := state.ParkedKey(state.ParkedID(ch.ID, ch.Key))
		items, rows, err := w.Tables.ReadBoth(ctx, "reading child "+ch.Key.String()+" and what is parked", []change.Key{ch.Key},
			[]table.Key{parked})
		if err != nil {
			return table.Lost, err
		}
		child, code := items[ch.Key], table.TextOf(rows[parked]["code"])
		bad := linkOf(w.Planner, ch.Binding, ch.Key, table.Image(child)).bad
		if bad == nil && (code == "" || audit.ParkingStays(code)) {
			return table.Finished, nil // nothing is parked but, perhaps, a write that was refused
		}
		c := table.NewExpression()
		write := w.Tables.DeletePart(parked, table.Whole(c.SameAs(rows[parked], "code")), c)
		if bad != nil {
			write = w.Tables.PutPart(w.ParkedRow(ch.ID, ch.Key, ch.Position, bad), "", table.NewExpression())
		}
		err = w.Tables.Transact(ctx, "updating what is parked of "+ch.Key.String(), []string{ch.ID},
			[]ddb.TransactWriteItem{write, stillNamed(w.Tables.Reader, ch.ItemRule, child)})
		if err == nil && bad != nil {
			w.NoteParked(ctx, ch.ID, ch.Key, bad)
		}
		if table.LostRace(err) {
			return table.Lost, nil
		}
		return table.Finished, err
	})
}

// stillNamed checks that an item names its entity and its parent as it did when it was read.
func stillNamed(rd *table.Reader, id plan.ItemRule, seen change.Item) ddb.TransactWriteItem {
	t := target.On(id.Binding, "", id.Key)
	t.Condition = t.Format("attribute_not_exists(%n)", rd.PartitionKey)
	if seen != nil {
		t.Condition = t.Format("attribute_exists(%n)", rd.PartitionKey)
		t.Holds(seen, id.Rule.JoinReads...)
		for _, eq := range id.Rule.Target.Equals {
			t.Holds(seen, eq.Attribute)
		}
	}
	return t.InTransaction(rd)
}
