package oracle

import (
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

// positionDigits is how long a position in the stream is, with zeros before it.
const positionDigits = 40

// folds compares what the rows of rules that count by stream position add up to with the items, for the generation that targets show.
// The rows of generations before it may stay, as after a crash. Those that a sleeper wrote for a former state table stay for good.
func (a *audit) folds() {
	want, got := map[string]*total{}, map[string]*total{}
	at := func(of map[string]*total, id, group string) *total {
		t := of[id+"/"+group]
		if t == nil {
			t = &total{}
			of[id+"/"+group] = t
		}
		return t
	}
	generations, torn := map[string]int64{}, map[string]bool{}
	for _, rule := range a.set.Rules {
		if !rule.Folds() {
			continue
		}
		id := a.names[rule]
		generations[id] = a.generation(id)
		a.items.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
			all, err := shares(rule, m, item)
			if err != nil {
				return
			}
			for _, c := range all {
				if !c.Amount.IsZero() || tallyOf(rule).zeroCounts {
					at(want, id, c.Group).add(c.Amount, 1)
				}
			}
		})
	}
	for _, key := range a.under("fold/") {
		group, current := a.folded(key, generations)
		if !current {
			continue
		}
		id, row := idIn(key.Partition), a.rows[key]
		if row["refused"].Kind() != change.KindAbsent {
			torn[id+"/"+group] = true
		}
		value, members := row["value"].Text(), row["members"].Text()
		d, err := decimal.Parse(value)
		n, notCount := strconv.ParseInt(members, 10, 64)
		if (value != "" || members != "") && (err != nil || notCount != nil) {
			a.differs(id, key, "value", change.Number("0"), row["value"])
		}
		at(got, id, group).add(d, n)
		at(want, id, group)
	}
	for name, w := range want {
		g, _, _ := strings.Cut(name, "/")
		sum := got[name]
		if sum == nil {
			sum = &total{}
		}
		if torn[name] || w.span.delicate() {
			continue
		}
		if sum.sum.Cmp(&w.sum) != 0 {
			a.differs(g, change.Key{Partition: "fold/" + name}, "value", w.value(), sum.value())
		}
		if sum.members != w.members {
			a.differs(g, change.Key{Partition: "fold/" + name}, "members", count(w.members), count(sum.members))
		}
	}
	a.lanes(generations)
}

// generation is the one that targets show of a rule. It is the newest, and all of it has begun.
func (a *audit) generation(id string) int64 {
	key := change.Key{Partition: "registry", Sort: "rule/" + id}
	newest := a.rows[key]["generation"]
	n, err := strconv.ParseInt(newest.Text(), 10, 64)
	if err != nil || n <= 0 || n > a.epoch {
		a.differs(id, key, "generation", count(a.epoch), newest)
	}
	for _, name := range []string{"begun", "counted"} {
		if is := a.rows[key][name]; !is.Equal(newest) {
			a.differs(id, key, name, newest, is)
		}
	}
	if row := a.rows[key]; row["locator"].Text() != "" && row["located"].Text() == "" {
		a.differs(id, key, "located", count(1), row["located"])
	}
	return n
}

// folded checks a row of a group by itself, and returns the group, and whether targets show the row.
func (a *audit) folded(key change.Key, generations map[string]int64) (group string, shown bool) {
	id, row := idIn(key.Partition), a.rows[key]
	generation, current := a.inGeneration(key, generations)
	if !current {
		return "", false
	}
	group = row["group"].Text()
	if want := stateKey(a.inGenerationOf("fold", id, generation)+"/"+inner(group), ""); key.Partition != want.Partition {
		a.differs(id, key, "group", change.Value{}, row["group"])
	}
	if operations, err := strconv.ParseInt(row["ops"].Text(), 10, 64); err != nil || operations <= 0 {
		a.differs(id, key, "ops", count(1), row["ops"])
	}
	if lane, ok := strings.CutPrefix(key.Sort, "lane/"); ok {
		if len(row["hw"].Text()) != positionDigits {
			a.differs(id, key, "hw", change.String("(a position)"), row["hw"])
		}
		if first := stateKey(a.inGenerationOf("lane", id, generation), lane); a.rows[first]["lane"].Text() != lane {
			a.differs(id, first, "lane", change.String(lane), a.rows[first]["lane"])
		}
	}
	return group, true
}

// inGenerationOf begins the partition keys of a generation's rows.
func (a *audit) inGenerationOf(word, id string, generation int64) string {
	return word + "/" + id + "/" + strconv.FormatInt(generation, 10) + "/" + a.incarnation()
}

// incarnation names the state table.
func (a *audit) incarnation() string {
	return a.rows[change.Key{Partition: "registry", Sort: "table"}]["incarnation"].Text()
}

// inGeneration returns the generation that a row names, and whether targets show it. One that is yet to come is wrong.
func (a *audit) inGeneration(key change.Key, generations map[string]int64) (n int64, current bool) {
	fields := strings.SplitN(key.Partition, "/", 5)
	id := idIn(key.Partition)
	if len(fields) > 3 && fields[3] != a.incarnation() {
		return 0, false
	}
	shown, known := generations[id]
	n, err := strconv.ParseInt(fields[min(2, len(fields)-1)], 10, 64)
	if !known || err != nil || n > shown {
		a.differs("", key, "", change.Value{}, change.Map(a.rows[key]))
		return 0, false
	}
	return n, n == shown
}

// lanes checks the rows of shards: each begins a lane, or goes on with that of the shard of which it is the heir.
func (a *audit) lanes(generations map[string]int64) {
	heirOf := map[change.Key]change.Item{}
	for _, key := range a.under("lane/") {
		if _, current := a.inGeneration(key, generations); !current {
			continue
		}
		if heir := a.rows[key]["heir"].Text(); heir != "" {
			heirOf[change.Key{Partition: key.Partition, Sort: heir}] = a.rows[key]
		}
	}
	for _, key := range a.under("lane/") {
		if _, current := a.inGeneration(key, generations); !current {
			continue
		}
		row, want := a.rows[key], change.String(key.Sort)
		if row["shard"].Text() != key.Sort {
			a.differs(idIn(key.Partition), key, "shard", want, row["shard"])
		}
		if parent, inherits := heirOf[key]; inherits && row["lane"].Text() != key.Sort {
			want = parent["lane"]
		}
		if !row["lane"].Equal(want) {
			a.differs(idIn(key.Partition), key, "lane", want, row["lane"])
		}
	}
	for _, key := range a.under("counted/") {
		a.inGeneration(key, generations)
	}
}
