package aggregates

import (
	"context"
	"maps"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Bounds of values that no source has any more.
const (
	emptyPartsMax   = 8  // they stay in the accumulators of one aggregate
	removedPartsMax = 50 // one transaction removes: DynamoDB bounds the length of a condition
)

// tidied is a total whose accumulators hold few values that no source has any more.
func (r run) tidied(ctx context.Context, g plan.GroupRef, t Total) (Total, error) {
	removed, err := r.removeEmptyParts(ctx, g, t)
	if removed && err == nil {
		var rows map[table.Key]table.Row
		rows, err = r.Tables.ReadState(ctx, "reading accumulators", totalKeys(g))
		t = AddUp(g, rows)
	}
	if err == nil {
		err = r.updateCrowdedList(ctx, g, t)
	}
	return t, err
}

// tidyItem removes values that no source has any more from the accumulators of a derived item, and reads these again. An
// item that expired comes back with one more operation, so its accumulators stay as they are.
func (r run) tidyItem(ctx context.Context, it *derivedItem, rows *map[table.Key]table.Row) error {
	s, again := addUpItem(it, *rows), false
	for i, g := range it.parts() {
		removed, err := false, error(nil)
		if !s.expired {
			removed, err = r.removeEmptyParts(ctx, g, s.totals[i])
		}
		if err != nil {
			return err
		}
		again = again || removed
	}
	if !again {
		return nil
	}
	fresh, err := r.Tables.ReadState(ctx, "reading accumulators", it.rows())
	if err == nil {
		*rows = fresh
	}
	return err
}

// removeEmptyParts removes values that no source has any more, if there are many. What goes is as it was read, and adds up
// to nothing: the sum stays the same. It counts as an operation, because a reader could see one accumulator before it and
// another after it. The caller shows the sum that follows.
func (r run) removeEmptyParts(ctx context.Context, g plan.GroupRef, t Total) (bool, error) {
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
	for _, key := range accumulators(nil, g) {
		row, c := t.rows[key], table.NewExpression()
		var names []string
		for _, per := range empty[:min(len(empty), removedPartsMax)] {
			for _, name := range []string{audit.PartValue + per, audit.PartMembers + per} {
				if row[name] != nil {
					names = append(names, name)
				}
			}
		}
		if len(names) == 0 {
			continue
		}
		condition := table.Whole(c.SameAs(row, names...))
		update := "REMOVE " + c.List(names) + c.Format(" ADD %n %v", "ops", table.Number(1))
		items = append(items, r.Tables.UpdatePart(key, update, condition, c))
	}
	err := r.Tables.Transact(ctx, "removing empty values of "+g.Group, []string{g.ID}, items)
	if table.LostRace(err) {
		return false, nil
	}
	return err == nil, err
}

// updateCrowdedList lists an aggregate among the parked records if it has too many values, or takes it off the list. One
// transaction does so, and checks that every accumulator has the operations that were read: if one has more, the worker that
// counted them updates the list.
func (r run) updateCrowdedList(ctx context.Context, g plan.GroupRef, t Total) error {
	crowded := Of(g.Rule).isCrowded(t.Amount)
	if crowded == t.listed || t.Err != nil {
		return nil
	}
	item, why := change.Key{}, Of(g.Rule).tooMany()
	if len(t.Targets) > 0 {
		item = t.Targets[0]
	}
	list := r.Tables.DeletePart(crowdedKey(g), "", table.NewExpression())
	if crowded {
		p := state.Parked{ID: audit.CrowdedID(g.ID, g.Group), Rule: g.ID, Item: item, Code: why.Code, Reason: why.Reason, At: r.Now(),
			Parking: state.NewID()}
		if g.Rule.ByUnique {
			p.Value = g.Group
		}
		list = r.Tables.PutPart(p.Row(), "", table.NewExpression())
	}
	items, noted := []ddb.TransactWriteItem{list}, 0
	for _, key := range accumulators(nil, g) {
		row, c := t.rows[key], table.NewExpression()
		condition := table.Whole(c.SameAs(row, "ops")) // absent: no operation was ever counted there
		switch {
		case crowded && row != nil && noted == 0:
			noted = len(items)
			update := c.Format("SET %n = %v", state.Listed, &ddb.AttributeValueMemberBOOL{Value: true})
			items = append(items, r.Tables.UpdatePart(key, update, condition, c))
		case row[state.Listed] != nil:
			items = append(items, r.Tables.UpdatePart(key, "REMOVE "+c.Name(state.Listed), condition, c))
		default:
			items = append(items, r.Tables.CheckPart(key, condition, c))
		}
	}
	doing := "listing " + g.Group + " for its number of values"
	err := r.Tables.Transact(ctx, doing, []string{g.ID}, items)
	if noted > 0 && table.Refusal(err) != "" { // the accumulator is full: it has no room for one attribute more
		key, c := accumulators(nil, g)[noted-1], table.NewExpression()
		items[noted] = r.Tables.CheckPart(key, table.Whole(c.SameAs(t.rows[key], "ops")), c)
		err = r.Tables.Transact(ctx, doing, []string{g.ID}, items)
	}
	if table.LostRace(err) {
		return nil
	}
	if err == nil && crowded {
		r.NoteParked(ctx, g.ID, item, why)
	}
	return err
}

// crowdedKey is the parked row of an aggregate with too many values.
func crowdedKey(g plan.GroupRef) table.Key { return state.ParkedKey(audit.CrowdedID(g.ID, g.Group)) }

// putAccumulator puts an accumulator in the place of the one that was read, if that has not changed since.
func putAccumulator(rd *table.Reader, key table.Key, read table.Row, a audit.Amount) ddb.TransactWriteItem {
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(read, "value", "members", "ops", state.ExpiredAt, state.Listed))
	return rd.PutPart(state.AccumulatorRow(key, read, a), condition, c)
}

// judgeListing judges whether an aggregate is listed as one with too many values. Without a target it may be.
func judgeListing(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, sum audit.Amount) {
	g := groupOf(e.Table, reading.Suspect)
	crowded, listed := Of(b.Rule).isCrowded(sum), e.Rows[crowdedKey(g)] != nil
	if !b.Rule.HasPer() || crowded == listed || crowded && reading.Suspect.Item == (change.Key{}) {
		return
	}
	reading.State += change.Digest(change.Bool(listed))
	f := drift.Finding{Rule: b.Rule.Name, Kind: drift.Parked, What: drift.Missing, Item: reading.Suspect.Item, Group: reading.Suspect.Group,
		Expected: audit.PerTooMany, WriteUnits: table.TransactionUnitsMin}
	if listed {
		f.What, f.Expected, f.Found = drift.Surplus, "", audit.PerTooMany
	}
	reading.Findings, reading.Fix.Way = []drift.Finding{f}, drift.MendFirst
}

// mendParts is mendSum for an aggregate of many values. It takes the aggregate off the list of those with too many values: the roll-up
// that follows lists it again if it belongs there. Rows are put whole, because no expression could name all values.
func mendParts(ctx context.Context, e *auditing.Evidence, r drift.Reading, total auditedTotal, ahead int64,
	stuck []ddb.TransactWriteItem) (bool, error) {
	g := groupOf(e.Table, r.Suspect)
	items := []ddb.TransactWriteItem{e.Tables.DeletePart(crowdedKey(g), "", table.NewExpression())}
	for i, key := range accumulators(nil, g) {
		row, torn := e.Rows[key], slices.Contains(total.torn, key)
		if i > 0 && !torn && row[state.Listed] == nil {
			continue
		}
		held := audit.Amount{Value: decimal.New(0), Operations: state.CountOf(row["ops"])}
		if a, err := state.ReadAccumulator(row); !torn && err == nil {
			held.Value, held.Members = a.Value, a.Members
			held.Parts, _ = audit.ReadParts(attributes.ItemFromTable(row))
		}
		if i == 0 {
			operations := held.Operations + max(1, ahead-total.Operations)
			held = held.Add(audit.ParseAmount(r.Fix.Lacks))
			held.Operations = operations
		}
		put := putAccumulator(e.Tables.Reader, key, row, held)
		delete(put.Put.Item, state.Listed)
		items = append(items, put)
	}
	items = append(items, stuck[:min(len(stuck), plan.TransactActionsMax-len(items))]...)
	return e.Transact(ctx, "mending the sum of "+r.Suspect.Group, g.ID, items)
}
