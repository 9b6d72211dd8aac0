package groupaudit

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/tally"
)

// memberProcedure is that of a member row, which the ledger entry of its source goes with.
var memberProcedure = &auditing.Procedure{
	Rows: auditing.Rows{memberRows}, Judge: judgeMemberRow, Mend: mendMemberRow, Stage: drift.StageSets,
}

// memberKey is the key of the row that a suspect is about.
func memberKey(e *auditing.Evidence, sus drift.Suspect) table.Key {
	return table.Key{Partition: state.MembersOf(groupOf(e.Table, sus)), Sort: sus.Sort}
}

func memberRows(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	return append(groups.TotalKeys(groupOf(e.Table, sus)), memberKey(e, sus), state.EntryKey(sus.Item))
}

// memberIn is the member among effects to which the row of a suspect belongs; nil if none has it.
func memberIn(fs effects.ByKey, sus drift.Suspect) *effects.Member {
	for k, f := range fs {
		if k.ID == sus.Rule && f.Member != nil && f.Group == sus.Group &&
			state.MemberSort(f.Member.Order, sus.Item, k.For) == sus.Sort {
			return f.Member
		}
	}
	return nil
}

// heldEffects are those that the ledger entry of a suspect's item has in force; none if it is torn.
func heldEffects(e *auditing.Evidence, sus drift.Suspect) effects.ByKey {
	ent, err := e.ReadEntry(attributes.ItemFromTable(e.Rows[state.EntryKey(sus.Item)]))
	if err != nil || ent == nil {
		return nil
	}
	return ent.Effects
}

// judgeMemberRow judges a row by the ledger entry of its source. Where the source asks for something else than the entry holds, the
// entry is judged first, and moves the row.
func judgeMemberRow(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	row := e.Rows[memberKey(e, sus)]
	held, asked := memberIn(heldEffects(e, sus), sus), memberIn(e.Asked(sus.Item), sus)
	reading := drift.ReadingOf(sus, change.Digest(auditing.RowValue(row), auditing.RowValue(e.Rows[state.EntryKey(sus.Item)])))
	reading.Concerns = append(reading.Concerns, audit.SumToken(sus.Rule, sus.Group))
	reading.Fix.Keys = append(reading.Fix.Keys, groups.AddUp(groupOf(e.Table, sus), e.Rows).Targets...)
	reading.Fix.Way = drift.MendFirst
	f := e.Finding(sus, drift.Wrong)
	f.WriteUnits = 3 * table.TransactionUnitsMin
	shown, _ := state.ReadMember(row)
	f.Found = audit.Text(change.Map(shown))
	switch {
	case held == nil && asked == nil && row != nil:
		f.What = drift.Surplus
	case held == nil || asked == nil || held.Digest != asked.Digest || row != nil && digestOf(row) == held.Digest:
		return reading
	case row == nil:
		f.What, f.Expected, f.Found = drift.Missing, audit.Text(change.Map(asked.Shown)), ""
	default:
		f.Expected = audit.Text(change.Map(asked.Shown))
	}
	reading.Findings = []drift.Finding{f}
	return reading
}

// mendMemberRow puts or deletes a row, if row and ledger entry are as they were read. If the reading has no finding any more, it writes
// nothing and reports true: the item is rederived. A write counts as an operation: what is shown of the group before is earlier.
func mendMemberRow(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	if len(r.Findings) == 0 {
		return true, nil
	}
	g, key := groupOf(e.Table, r.Suspect), memberKey(e, r.Suspect)
	row, c := e.Rows[key], table.NewExpression()
	condition := c.Format("attribute_not_exists(%n)", table.PK)
	if row != nil {
		condition = c.Format("attribute_exists(%n)", table.PK) + c.SameAs(row, "shown")
	}
	var items []ddb.TransactWriteItem
	if member := memberIn(e.Asked(r.Suspect.Item), r.Suspect); member != nil {
		items = append(items, e.Tables.PutPart(state.MemberRow(key, r.Suspect.Item, member.Shown), condition, c))
	} else {
		items = append(items, e.Tables.DeletePart(key, condition, c))
	}
	ent, err := e.ReadEntry(attributes.ItemFromTable(e.Rows[state.EntryKey(r.Suspect.Item)]))
	if err != nil {
		return false, nil // the entry is mended first
	}
	counted := table.NewExpression()
	items = append(items, e.CheckEntry(r.Suspect.Item, ent), e.Tables.UpdatePart(state.AccumulatorKey(g, 0),
		state.AddAmount(counted, tally.Amount{}, 1), "", counted))
	return e.Transact(ctx, "mending a member row of "+r.Suspect.Group, g.ID, items)
}
