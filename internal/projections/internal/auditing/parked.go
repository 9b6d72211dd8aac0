package auditing

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// parkedKey is the key of the parked record that a suspect is about. If a display is parked, the suspect's Rule begins with "display:".
func parkedKey(sus drift.Suspect) table.Key {
	return state.ParkedItemKey(sus.Rule, sus.Item)
}

// ParkedRows are the rows that a parked record is judged by: its own, and the item's ledger entry.
func ParkedRows(_ *Evidence, sus drift.Suspect) []table.Key {
	return []table.Key{parkedKey(sus), state.EntryKey(sus.Item)}
}

func judgeParked(e *Evidence, sus drift.Suspect) drift.Reading {
	return e.JudgeParked(sus, e.ParkedEffect(sus))
}

// ParkedEffect is the code under which the item's effect asks for being parked; "" for none.
func (e *Evidence) ParkedEffect(sus drift.Suspect) string {
	if f := e.Asked(sus.Item).ParkedUnder(sus.Rule); f.Kind == effects.Parked {
		return f.Parked.Code
	}
	return ""
}

// JudgeParked compares what is parked of an (item, rule) with the code under which
// it has to be; "" for none.
func (e *Evidence) JudgeParked(sus drift.Suspect, want string) drift.Reading {
	r := attributes.ItemFromTable(e.Rows[parkedKey(sus)])
	reading := drift.ReadingOf(sus, change.Digest(itemValue(r), change.String(want)))
	reading.Concerns = append(reading.Concerns, audit.MadeToken(sus.Item))
	reading.Findings = e.CompareParked(drift.Finding{Rule: e.NameOf(audit.RuleOf(sus.Rule)), Item: sus.Item}, want, r)
	if reading.Found(drift.Surplus) {
		reading.Fix.Way = drift.MendAlone
	}
	return reading
}

// ClearParked deletes a parked record that its item does not ask for. The same
// transaction checks that no process has parked it anew, and that the item's ledger
// entry is as it was read.
func ClearParked(ctx context.Context, e *Evidence, r drift.Reading) (bool, error) {
	item := r.Suspect.Item
	ent, err := state.ReadEntry(e.Planner, e.Rows[state.EntryKey(item)])
	if err != nil || ent != nil && ent.Effects.ParkedUnder(r.Suspect.Rule).Kind == effects.Parked {
		return false, err // the entry comes first
	}
	return e.DeleteParked(ctx, r.Suspect, e.CheckEntry(item, ent))
}

// DeleteParked deletes a parked record as it was read, in one transaction with further checks.
func (e *Evidence) DeleteParked(ctx context.Context, sus drift.Suspect, checks ...ddb.TransactWriteItem) (bool, error) {
	key, c := parkedKey(sus), table.NewExpression()
	items := append([]ddb.TransactWriteItem{e.Tables.DeletePart(key, table.Whole(c.SameAs(e.Rows[key], "parking", "code")), c)}, checks...)
	return e.Transact(ctx, "clearing what is parked of "+sus.Item.String(), audit.RuleOf(sus.Rule), items)
}
