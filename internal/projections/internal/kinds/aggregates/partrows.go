package aggregates

import (
	"context"
	"maps"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Bounds of values that no source has any more.
const (
	emptyPartsMax   = 8  // they stay in the accumulators of one aggregate
	removedPartsMax = 50 // one transaction removes: DynamoDB bounds the length of a condition
)

// Tidy implements groups.Tidier: it removes values that no source has any more, if there are many. What goes is as it was read, and adds up
// to nothing: the sum stays the same. It counts as an operation, because a reader could see one accumulator before it and
// another after it. The caller shows the sum that follows.
func (f *Form) Tidy(ctx context.Context, h *host.Host, g plan.GroupRef, t groups.Total) (bool, error) {
	if len(t.Parts) <= emptyPartsMax || t.Err != nil {
		return false, nil
	}
	var empty []string
	for _, per := range slices.Sorted(maps.Keys(t.Parts)) {
		if t.Parts[per].IsEmpty() {
			empty = append(empty, per)
		}
	}
	if len(empty) <= emptyPartsMax {
		return false, nil
	}
	var items []ddb.TransactWriteItem
	going := removable(g, t, empty)
	for _, key := range groups.Accumulators(nil, g) {
		row, names, c := t.Rows[key], going[key], table.NewExpression()
		if len(names) == 0 {
			continue
		}
		condition := table.Whole(c.SameAs(row, names...))
		update := "REMOVE " + c.List(names) + c.Format(" ADD %n %v", "ops", table.Number(1))
		items = append(items, h.Tables.UpdatePart(key, update, condition, c))
	}
	if len(items) == 0 {
		return false, nil
	}
	err := h.Tables.Transact(ctx, "removing empty values of "+g.Group, []string{g.ID}, items)
	if table.LostRace(err) {
		return false, nil
	}
	return err == nil, err
}

// removable returns, for each accumulator, the attributes of empty values that one transaction can remove. It skips a value if its
// accumulators do not fit into the transaction.
func removable(g plan.GroupRef, t groups.Total, empty []string) map[table.Key][]string {
	names, bytes, values := map[table.Key][]string{}, 0, 0
	for _, per := range empty {
		found, more := map[table.Key][]string{}, 0
		for _, key := range groups.Accumulators(nil, g) {
			for _, name := range []string{audit.PartValue + per, audit.PartMembers + per} {
				if t.Rows[key][name] != nil {
					found[key] = append(found[key], name)
				}
			}
			if len(found[key]) > 0 && len(names[key]) == 0 {
				more += attributes.ItemFromTable(t.Rows[key]).Size()
			}
		}
		if bytes+more > plan.TransactBytesMax {
			continue
		}
		for key, of := range found {
			names[key] = append(names[key], of...)
		}
		if bytes, values = bytes+more, values+1; values == removedPartsMax {
			break
		}
	}
	return names
}

// List implements groups.Tidier: it lists an aggregate among the parked records if it has too many values, or takes it off the list. One
// transaction does so, and checks that every accumulator has the operations that were read: if one has more, the worker that
// counted them updates the list. Of accumulators that are larger than a transaction may be, it checks as many as it can; a listing that is
// wrong then stays until the aggregate changes, or verify repairs it.
func (f *Form) List(ctx context.Context, h *host.Host, g plan.GroupRef, t groups.Total) error {
	crowded := f.IsCrowded(t.Amount)
	if crowded == t.Listed || t.Err != nil {
		return nil
	}
	item, why := change.Key{}, f.TooMany()
	if len(t.Targets) > 0 {
		item = t.Targets[0]
	}
	list := h.Tables.DeletePart(groups.CrowdedKey(g), "", table.NewExpression())
	if crowded {
		p := state.Parked{ID: audit.CrowdedID(g.ID, g.Group), Rule: g.ID, Item: item, Code: why.Code, Reason: why.Reason, At: h.Now(),
			Parking: state.NewID()}
		if g.Rule.ByUnique {
			p.Value = g.Group
		}
		list = h.Tables.PutPart(p.Row(), "", table.NewExpression())
	}
	items, noted, bytes := []ddb.TransactWriteItem{list}, 0, 0
	for _, key := range groups.Accumulators(nil, g) {
		row, c := t.Rows[key], table.NewExpression()
		condition := table.Whole(c.SameAs(row, "ops")) // absent: no operation was ever counted there
		bytes += attributes.ItemFromTable(row).Size()
		switch {
		case crowded && row != nil && noted == 0:
			noted = len(items)
			update := c.Format("SET %n = %v", state.Listed, &ddb.AttributeValueMemberBOOL{Value: true})
			items = append(items, h.Tables.UpdatePart(key, update, condition, c))
		case row[state.Listed] != nil:
			items = append(items, h.Tables.UpdatePart(key, "REMOVE "+c.Name(state.Listed), condition, c))
		case bytes <= plan.TransactBytesMax:
			items = append(items, h.Tables.CheckPart(key, condition, c))
		}
	}
	doing := "listing " + g.Group + " for its number of values"
	err := h.Tables.Transact(ctx, doing, []string{g.ID}, items)
	if noted > 0 && table.Refusal(err) != "" { // the accumulator is full: it has no room for one attribute more
		key, c := groups.Accumulators(nil, g)[noted-1], table.NewExpression()
		items[noted] = h.Tables.CheckPart(key, table.Whole(c.SameAs(t.Rows[key], "ops")), c)
		err = h.Tables.Transact(ctx, doing, []string{g.ID}, items)
	}
	if table.LostRace(err) {
		return nil
	}
	if err == nil && crowded {
		h.NoteParked(ctx, g.ID, item, why)
	}
	return err
}
