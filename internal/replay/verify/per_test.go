package verify_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

const perRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Day:    { key: { pk: "DAY#${day}", sk: "METADATA" } }
  Sample: { key: { pk: "DAY#${day}", sk: "SAMPLE#${time}" } }
  Kind:   { key: { pk: "KIND#${kind}", sk: "METADATA" }, derived: true }
rules:
  cpu:   { sum: cpu, of: Sample, as: Day.cpu, per: host, write_shards: 4 }
  hosts: { count: Sample, each: hosts as name, as: Day.hosts, per: name }
  kinds: { count: Sample, as: Kind.hosts, by: kind, per: host }
`

// hosts are so many names of hosts.
func hosts(n int) change.Value {
	var all []change.Value
	for i := range n {
		all = append(all, change.String(fmt.Sprint("h", i)))
	}
	return change.List(all)
}

func hostSample(day, time, host, cpu string) change.Item {
	it := sample(day, time, cpu)
	it["host"], it["kind"] = change.String(host), change.String("disk")
	return it
}

// TestWrongMapIsFoundAndMended spoils the rows of maps and what shows them: of a day with three samples of two hosts, of one
// with 120 hosts, and of one without samples.
func TestWrongMapIsFoundAndMended(t *testing.T) {
	number, str := change.Number, change.String
	cpu, many := "sum/"+oracle.RuleID("cpu")+"/DAY#3", "sum/"+oracle.RuleID("hosts")+"/DAY#2"
	list := "values:" + oracle.RuleID("hosts") + "/DAY#2%2FMETADATA"
	shown := change.Map
	for name, s := range map[string]spoilt{
		"another number": {app, "DAY#3", "METADATA", set("cpu", shown(map[string]change.Value{"a/b": number("1.5"), "z": number("7")}))},
		"a value less":   {app, "DAY#3", "METADATA", set("cpu", shown(map[string]change.Value{"a/b": number("1.5")}))},
		"a value more": {app, "DAY#3", "METADATA", set("cpu", shown(map[string]change.Value{"a/b": number("1.5"), "z": number("0"),
			"y": number("0")}))},
		"a text in the map":      {app, "DAY#3", "METADATA", set("cpu", shown(map[string]change.Value{"a/b": str("1.5"), "z": number("0")}))},
		"a number":               {app, "DAY#3", "METADATA", set("cpu", number("1.5"))},
		"no map":                 {app, "DAY#3", "METADATA", without("cpu")},
		"no empty map":           {app, "DAY#0", "METADATA", without("cpu")},
		"a map of too many":      {app, "DAY#2", "METADATA", set("hosts", shown(map[string]change.Value{"h1": number("1")}))},
		"a derived item's map":   {app, "KIND#disk", "METADATA", without("hosts")},
		"another part":           {state, cpu, "", set("v/a/b", number("3"))},
		"other members":          {state, cpu, "", set("m/a/b", number("3"))},
		"a part more":            {state, cpu, "", set("v/y", number("3"))},
		"a member more":          {state, cpu, "", set("m/y", number("1"))},
		"a part less":            {state, cpu, "", without("v/a/b")},
		"a total":                {state, cpu, "", set("value", number("3"))},
		"a part as text":         {state, cpu, "", set("v/a/b", str("1.5"))},
		"members as text":        {state, cpu, "", set("m/z", str("1"))},
		"no total":               {state, cpu, "", without("value")},
		"no accumulator":         {state, cpu, "", under("gone", "gone")},
		"no accumulator of many": {state, many, "", under("gone", "gone")},
		"a part of many":         {state, many, "", set("v/h7", number("7"))},
		"many, as text":          {state, many, "", set("v/h7", str("7"))},
		"no mark of the list":    {state, many, "", func(_ *world, row change.Item) { delete(row, "listed"); row["v/h7"] = number("7") }},
		"not on the list":        {state, "parked", list, under("gone", "gone")},
		"on the list":            {state, "parked", list, under("parked", strings.Replace(list, "DAY#2", "DAY#3", 1))},
		"an entry without the effect": {state, "i/DAY#3/SAMPLE#1", "", func(_ *world, row change.Item) {
			hasEffects(row, nil)
		}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "per", perRules)
			crowded := texts("pk", "DAY#2", "sk", "SAMPLE#1")
			crowded["hosts"] = hosts(120)
			for _, it := range []change.Item{
				texts("pk", "DAY#0", "sk", "METADATA"), texts("pk", "DAY#2", "sk", "METADATA"), texts("pk", "DAY#3", "sk", "METADATA"),
				hostSample("3", "1", "a/b", "1"), hostSample("3", "2", "a/b", "0.5"), hostSample("3", "3", "z", "0"), crowded,
			} {
				w.put("app", it)
			}
			w.follow()
			w.expectRight("before")
			w.damage(s)
			w.lose()
			found, _ := w.verify(false)
			if len(found) == 0 {
				t.Error("nothing was found")
			}
			for _, f := range found {
				t.Log(text(f))
			}
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
			w.put("app", hostSample("0", "1", "c", "2"))
			w.delete("app", sample("3", "1", ""))
			w.put("app", hostSample("3", "3", "a/b", "3"))
			crowded["hosts"] = hosts(3)
			w.put("app", crowded)
			w.follow()
			w.expectRight("after it has gone on")
		}))
	}
}

// TestBothMapsOfAFindingReadAlike has values that are no letters.
func TestBothMapsOfAFindingReadAlike(t *testing.T) {
	two := change.Map(map[string]change.Value{"❤️": change.Number("2")})
	for name, c := range map[string]struct {
		spoilt
		want []string
	}{
		"a display": {spoilt{app, "DAY#3", "METADATA", set("cpu", two)}, []string{"{a b: 0.5, ❤️: 1} {❤️: 2}"}},
		"an empty display": {spoilt{app, "DAY#3", "METADATA", set("cpu", change.Map(map[string]change.Value{}))},
			[]string{"{a b: 0.5, ❤️: 1} {}"}},
		"an accumulator": {spoilt{state, "sum/" + oracle.RuleID("cpu") + "/DAY#3", "", set("v/❤️", change.Number("3"))},
			[]string{"{a b: 0.5, ❤️: 1} {a b: 0.5, ❤️: 3}"}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "per", perRules)
			for _, it := range []change.Item{
				texts("pk", "DAY#3", "sk", "METADATA"), hostSample("3", "1", "❤️", "1"), hostSample("3", "2", "a b", "0.5"),
			} {
				w.put("app", it)
			}
			w.follow()
			w.damage(c.spoilt)
			w.lose()
			found, _ := w.verify(false)
			var got []string
			for _, f := range found {
				got = append(got, f.Expected+" "+f.Found)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		}))
	}
}

// countingAudit counts the bytes of the amounts that it adds up.
type countingAudit struct {
	*audits.Audit
	combinedMost atomic.Int64 // in one call of Combine
	contributed  atomic.Int64 // by the ledger
	added        atomic.Int64 // in all calls of AddAmounts
}

func (a *countingAudit) Combine(about string, tag byte, x, y string) (string, bool) {
	sum, ok := a.Audit.Combine(about, tag, x, y)
	if size := int64(len(x) + len(y)); ok && size > a.combinedMost.Load() {
		a.combinedMost.Store(size)
	}
	return sum, ok
}

func (a *countingAudit) Contributions(row change.Item, emit func(drift.Amount)) {
	a.Audit.Contributions(row, func(one drift.Amount) {
		a.contributed.Add(int64(len(one.Value)))
		emit(one)
	})
}

func (a *countingAudit) AddAmounts(sum string, more []string) string {
	a.added.Add(int64(len(sum) + len(strings.Join(more, ""))))
	return a.Audit.AddAmounts(sum, more)
}

// TestSourcesCostTheSameUnderManyValues has 400 samples of 80 hosts: to add one more up takes no look at all values.
func TestSourcesCostTheSameUnderManyValues(t *testing.T) {
	w := worldOf(t, "per", perRules)
	w.put("app", texts("pk", "DAY#3", "sk", "METADATA"))
	for i := range 400 {
		w.put("app", hostSample("3", fmt.Sprint(i), fmt.Sprintf("host-%02d", i%80), "0.5"))
	}
	w.follow()
	w.expectRight("before")
	w.damage(spoilt{state, "sum/" + oracle.RuleID("cpu") + "/DAY#3", "", set("v/host-07", change.Number("9"))})
	audit := &countingAudit{Audit: w.audit()}
	found, _ := w.verify(false, func(cfg *verify.Config) { cfg.Auditor = audit })
	if len(found) == 0 {
		t.Error("nothing was found")
	}
	if most := audit.combinedMost.Load(); most == 0 || most > 40 {
		t.Errorf("Combine got %d bytes at once: the size of a whole map", most)
	}
	if added, contributed := audit.added.Load(), audit.contributed.Load(); added == 0 || added > 4*contributed {
		t.Errorf("AddAmounts got %d bytes to add up %d", added, contributed)
	}
}
