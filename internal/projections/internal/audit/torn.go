package audit

import (
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// A row is torn if the engine cannot work with it: another program has written
// there. The engine cannot take it for what it was, and DynamoDB refuses to add to it.

// TornEntry reports whether a ledger entry is torn.
func (a *Auditor) TornEntry(row change.Item) bool {
	_, err := a.ReadEntry(row)
	return err != nil
}

// TornSum reports whether an accumulator is torn.
func TornSum(row change.Item) bool {
	_, readable := plan.ReadMembers(row["members"])
	return row["value"].Kind() != change.KindNumber || !readable || !isCount(row["operations"])
}

// TornSet reports whether a locator, or the claims of a mirror item, are torn. No row
// holds 0 changes: a condition asks for the absence of them.
func TornSet(row change.Item) bool {
	n, ok := plan.ReadCount(row["changes"])
	return !ok || n == 0 && row["changes"].Kind() != change.KindAbsent
}

// TornPosition reports whether a parent's position is torn: no fan-out would ever be higher.
func TornPosition(row change.Item) bool {
	_, readable := plan.ReadVersion(row["at"])
	return row["at"].Kind() != change.KindAbsent && !readable
}

func isCount(v change.Value) bool {
	_, ok := plan.ReadCount(v)
	return ok
}

// TaskOf is the rule id and the parent of a task. Its key tells them, unless it was cut.
func TaskOf(row change.Item) (id string, parent change.Key) {
	name := row["sk"].Text()
	if cutForm.MatchString(name) {
		return row["rule"].Text(), change.ParseKey(row["parent"].Text())
	}
	id, text, _ := strings.Cut(strings.TrimPrefix(name, refillPrefix), "/")
	return id, change.ParseKey(text)
}

// refillPrefix begins the keys of tasks that fill children anew.
const refillPrefix = "refill/"

// TornTask reports whether a task is torn: no write of its place would meet the
// condition, or the table cannot hold its parent.
func TornTask(p *plan.Planner, row change.Item) bool {
	if _, parent := TaskOf(row); p.CanExist != nil && !p.CanExist(parent) {
		return true
	}
	name, prefix := row["sk"].Text(), ""
	if row["refill"].Bool() {
		prefix = refillPrefix
	}
	keyed := name == prefix+row["rule"].Text()+"/"+row["parent"].Text() || cutForm.MatchString(name)
	_, readable := plan.ReadVersion(row["at"])
	none := row["at"].Equal(change.String("")) && row["refill"].Bool() // the parent had no position
	_, err := strconv.ParseInt(row["changes"].Text(), 10, 64)
	return !keyed || !readable && !none || err != nil || row["changes"].Kind() != change.KindNumber
}
