package groupaudit

import (
	"context"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// putAccumulator puts an accumulator in the place of the one that was read, if that has not changed since.
func putAccumulator(rd *table.Reader, key table.Key, read table.Row, a tally.Amount) ddb.TransactWriteItem {
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(read, "value", "members", "ops", state.ExpiredAt, state.Listed))
	return rd.PutPart(state.AccumulatorRow(key, read, a), condition, c)
}

// judgeListing judges whether an aggregate is listed as one with too many values. Without a target it may be.
func judgeListing(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, sum tally.Amount) {
	g := groupOf(e.Table, reading.Suspect)
	crowded, listed := isCrowded(b.Rule, sum), e.Rows[groups.CrowdedKey(g)] != nil
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
	reading.Lags = true // the roll-up lists it, after the transaction that the sums come from
}

// mendParts is mendTotal for an aggregate of many values. It takes the aggregate off the list of those with too many values: the roll-up
// that follows lists it again if it belongs there. Rows are put whole, because no expression could name all values.
func mendParts(ctx context.Context, e *auditing.Evidence, r drift.Reading, total auditedTotal, ahead int64,
	stuck []ddb.TransactWriteItem) (bool, error) {
	g := groupOf(e.Table, r.Suspect)
	items := []ddb.TransactWriteItem{e.Tables.DeletePart(groups.CrowdedKey(g), "", table.NewExpression())}
	for i, key := range groups.Accumulators(nil, g) {
		row, torn := e.Rows[key], slices.Contains(total.torn, key)
		if i > 0 && !torn && row[state.Listed] == nil {
			continue
		}
		held := tally.Amount{Operations: state.CountOf(row["ops"])}
		if a, err := state.ReadAccumulator(row); !torn && err == nil {
			held = a
			held.Parts, _ = audit.ReadParts(attributes.ItemFromTable(row))
		}
		if i == 0 {
			raised := tally.Amount{Operations: max(1, ahead-total.Operations)}
			held = tally.Sum(held, tally.Parse(r.Fix.Lacks), raised)
		}
		put := putAccumulator(e.Tables.Reader, key, row, held)
		delete(put.Put.Item, state.Listed)
		items = append(items, put)
	}
	items = append(items, stuck[:min(len(stuck), plan.TransactActionsMax-len(items))]...)
	return e.Transact(ctx, "mending the sum of "+r.Suspect.Group, g.ID, items)
}

// isCrowded reports whether a group with this total is among the parked records.
func isCrowded(r *rules.Rule, a tally.Amount) bool {
	tidier, ok := r.Form.(groups.Tidier)
	return ok && tidier.IsCrowded(a)
}
