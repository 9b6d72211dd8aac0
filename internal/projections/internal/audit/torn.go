package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// A row is torn if the engine cannot work with it: another program has written
// there. The engine cannot take it for what it was, and DynamoDB refuses to add to it.

// TornEntry reports whether a ledger entry is torn.
func (a *Auditor) TornEntry(row change.Item) bool {
	_, err := a.ReadEntry(row)
	return err != nil
}

// TornSum reports whether an accumulator of a rule is torn.
func TornSum(b *plan.Binding, row change.Item) bool {
	_, readable := plan.ReadMembers(row["members"])
	if b.Rule.HasPer() && readable {
		_, readable = ReadParts(row)
	}
	return row["value"].Kind() != change.KindNumber || !readable || !isCount(row["ops"])
}

// TornSet reports whether a locator, or the claims of a mirror item, are torn. No row
// holds 0 changes: a condition asks for the absence of them.
func TornSet(row change.Item) bool {
	n, ok := plan.ReadCount(row["changes"])
	return !ok || n == 0 && row["changes"].Kind() != change.KindAbsent
}

// TornPosition reports whether a parent's position is torn: no fan-out would ever be higher.
func TornPosition(row change.Item) bool {
	_, readable := stamp.ReadVersion(row["a"])
	changes := row["changes"] // in the place of a position, where a unique value is the parent
	return row["a"].Kind() != change.KindAbsent && !readable || changes.Kind() != change.KindAbsent && !isCount(changes)
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
	if first, rest, _ := strings.Cut(name, "/"); first+"/" == refillPrefix || strings.HasPrefix(first, rangePrefix) {
		name = rest
	}
	id, text, _ := strings.Cut(name, "/")
	return id, change.ParseKey(text)
}

const (
	refillPrefix = "refill/" // begins the keys of tasks that fill children anew
	rangePrefix  = "range#"  // begins those of ranges, with a character that no rule id has
)

// RollupPrefix begins the sort keys of roll-ups that workers have put off, among the tasks. No rule id has such a character.
const RollupPrefix = "rollup#/"

// RangePrefix begins the key of a range, given by its number.
func RangePrefix(number string) string { return rangePrefix + number + "/" }

// isKeyOf reports whether a key is this text, cut or whole.
func isKeyOf(key, text string) bool {
	sum := sha256.Sum256([]byte(text))
	begin, cut := strings.CutSuffix(key, "~"+hex.EncodeToString(sum[:]))
	return key == text || cut && strings.HasPrefix(text, begin)
}

// TornTask reports whether a task is torn: no write of its place would meet the
// condition, or the table cannot hold its parent.
func TornTask(p *plan.Planner, row change.Item) bool {
	id, parent := TaskOf(row)
	b := p.AnyByID(id)
	if byUnique := b != nil && b.Rule.ByUnique; p.CanExist != nil && !byUnique && !p.CanExist(parent) {
		return true
	}
	name, prefix := row["sk"].Text(), ""
	if row["refill"].Bool() {
		prefix = refillPrefix
	} else if number := row["range"]; number.Kind() != change.KindAbsent {
		prefix = RangePrefix(number.Text())
		if !isCount(number) || number.Text() == "0" {
			return true
		}
	}
	keyed := isKeyOf(name, prefix+row["rule"].Text()+"/"+row["parent"].Text())
	_, readable := stamp.ReadVersion(row["a"])
	none := row["a"].Equal(change.String("")) && row["refill"].Bool() // the parent had no position
	_, err := strconv.ParseInt(row["changes"].Text(), 10, 64)
	counted := isCount(row["rangesEnded"]) && isCount(row["rangesChildren"]) && isCount(row["rangesReferring"])
	return !keyed || !readable && !none || err != nil || row["changes"].Kind() != change.KindNumber || !counted
}
