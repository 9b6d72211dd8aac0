package histories

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/proof/mutants/switches"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

// judge compares what is in the tables with what a computation from scratch says.
func (l *life) judge() error { return l.judgeBut(oracle.FormerRows) }

// judgeBut lets some rows pass that a state table may hold although nothing asks for them.
func (l *life) judgeBut(except ...oracle.Exception) error {
	present, err := l.app.present()
	if err != nil {
		return err
	}
	state, err := items(l.crew.Sim, stateTableName)
	if err != nil {
		return err
	}
	switches.InForce(func() { l.compare(present, state, except...) })
	if len(l.outcome.Problems) > 0 && l.outcome.Trace != nil {
		for _, line := range append(l.rows(tableName), l.rows(stateTableName)...) {
			l.log("%s%s", inTheEnd, line)
		}
	}
	return nil
}

func (l *life) compare(present, state []change.Item, except ...oracle.Exception) {
	set, named := l.Population.Set, l.named(present)
	for _, d := range oracle.Drift(set, named, l.expired()) {
		l.problem("drift: %v", d)
	}
	l.outliving(present)
	l.leftBehind(named)
	except = append(except, oracle.DanglingReferences, oracle.ExpiringPositions, oracle.SeededDueMarks)
	if l.hasLarge() || l.overflowed && oracle.Delicate(set, named) {
		except = append(except, oracle.RejectedWrites)
	}
	for _, d := range oracle.Audit(set, present, state, time.Now().Add(slices.Max(append(l.Skews, 0))), except...) {
		if d.Attribute == "due" && l.isEarly(state, d.Key) {
			continue
		}
		l.problem("state table: %v", d)
	}
	base := make([]change.Item, 0, len(l.app.base))
	for _, it := range l.app.base {
		base = append(base, it)
	}
	for _, d := range oracle.Foreign(set, l.named(base), named, l.former...) {
		l.problem("foreign: %v", d)
	}
}

// goneLive notes which due marks stand when their rules go live. What they ask
// for is shown from then on by seeding, not by the worker that left them.
func (l *life) goneLive(call *adversary.Call) {
	text := call.String()
	l.single = call.Op == "DeleteItem"
	if !strings.Contains(text, " SET state = live") {
		return
	}
	state, err := items(l.crew.Sim, stateTableName)
	if err != nil {
		l.problem("%v", err)
	}
	for _, row := range state {
		due := row["due"].List()
		if len(due) > 0 && !slices.ContainsFunc(due, func(v change.Value) bool {
			rule, _, _ := strings.Cut(v.Text(), " ")
			return !strings.Contains(text, "(registry/rule/"+rule+")")
		}) {
			l.early[change.Key{Partition: row["pk"].Text(), Sort: row["sk"].Text()}] = versionOf(row)
		}
	}
}

// versionOf is an entry's version.
func versionOf(row change.Item) string { return row["a"].Text() + row["rederived"].Text() }

// isEarly reports whether a due mark is one that stood when its rules went live.
func (l *life) isEarly(state []change.Item, key change.Key) bool {
	return slices.ContainsFunc(state, func(row change.Item) bool {
		return row["pk"].Text() == key.Partition && row["sk"].Text() == key.Sort && versionOf(row) == l.early[key]
	})
}

// leftBehind says where an item still carries the stamp of a rule that does not
// write on items of its entity, though it could on items with such a key.
func (l *life) leftBehind(present []change.Item) {
	for _, it := range present {
		key := l.Population.Key(it)
		m, _ := l.Population.Set.Identify(key, it)
		for _, r := range l.Population.Set.Rules {
			stamp := stampPrefix + r.Name
			if !r.MakesItems() && r.Target != m.Entity && r.Target.HasKey(key) && !it.Lookup(stamp).Missing() {
				l.problem("left behind: %s carries %s: %s", key, stamp, told(it))
			}
		}
	}
}

// expired tells of the mirror items whose time to live has passed: no worker has to write them again.
func (l *life) expired() oracle.Option {
	return oracle.Expired(slices.Collect(maps.Keys(l.app.expired))...)
}

// inTheEnd begins the lines of a trace that show the tables.
const inTheEnd = "in the end: "

// judgeParking says what must not be parked: only where an item is large, or a total without one of its amounts is too long for a number,
// is there a write that DynamoDB refuses for good, and only where the bound is low does a writer fight long enough. Whether a total can be
// too long is judged in the end.
func (l *life) judgeParking(p inspect.Parked) {
	if p.Code == "write.rejected" && strings.Contains(p.Reason, "Number overflow") {
		l.overflowed = true
		return
	}
	if p.Code == "write.rejected" && !l.hasLarge() || p.Code == "heal.contested" && l.HealsMax == 0 {
		l.problem("parked without need: %s, %s: %s", p.ID, p.Code, p.Reason)
	}
}
