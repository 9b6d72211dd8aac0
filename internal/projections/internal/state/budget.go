package state

import (
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

// BudgetPartition holds a row for each process whose background work waits for its budget; sort: the process.
const BudgetPartition = "budget"

const (
	budgetRowTTL   = 24 * time.Hour
	budgetRowFresh = time.Minute // while work waits, its process writes the row every 10 s, or with each piece
)

// RecordedBudget is what a process has said of its budget.
type RecordedBudget struct {
	projections.BudgetStats
	Process string
	At      time.Time
}

// BudgetRow is what a process says of its budget.
func BudgetRow(process string, b projections.BudgetStats, now time.Time) table.Row {
	r := table.Key{Partition: BudgetPartition, Sort: process}.Attributes()
	waits := map[string]ddb.AttributeValue{}
	for work, since := range b.Waits {
		waits[work] = table.Number(since.Unix())
	}
	r["at"], r["ttl"] = table.Number(now.Unix()), table.Number(now.Add(budgetRowTTL).Unix())
	r["perSecond"], r["spending"] = table.Number(int64(b.UnitsPerSecond)), table.Number(int64(b.Spending+0.5))
	r["waits"] = &ddb.AttributeValueMemberM{Value: waits}
	return r
}

// ReadBudget reads what BudgetRow wrote. It reports false if that is old: then nothing waits any more.
func ReadBudget(r table.Row, now time.Time) (RecordedBudget, bool) {
	b := RecordedBudget{Process: table.TextOf(r[table.SK]), At: time.Unix(table.NumberOf(r["at"]), 0).UTC()}
	b.UnitsPerSecond, b.Spending = int(CountOf(r["perSecond"])), float64(CountOf(r["spending"]))
	b.Waits = map[string]time.Time{}
	if waits, ok := r["waits"].(*ddb.AttributeValueMemberM); ok {
		for work, since := range waits.Value {
			b.Waits[work] = time.Unix(table.NumberOf(since), 0).UTC()
		}
	}
	return b, now.Sub(b.At) <= budgetRowFresh
}
