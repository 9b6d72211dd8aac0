package verify_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// corruptor spoils derived data by hand, each place once.
type corruptor struct {
	*world
	done map[string]string // place: what was done there
	wild bool              // also where it spoils what other rules derive from it
	rows []change.Item
	all  []change.Item
}

// spoil does n corruptions, or fewer if the table offers no more.
func (w *world) spoil(n int) map[string]string {
	return w.spoilBy(&corruptor{world: w}, n)
}

// spoilBy does n corruptions of a corruptor.
func (w *world) spoilBy(c *corruptor, n int) map[string]string {
	c.done, c.rows, c.all = map[string]string{}, w.scan("app-dynamill"), w.scan("app")
	ways := []func(*rand.Rand) (string, string){c.entry, c.accumulator, c.set, c.reference, c.display, c.copied, c.mirror, c.orphanEntry,
		c.parked, c.leftover}
	for tries := 0; len(c.done) < n && tries < 60*n; tries++ {
		if where, what := ways[w.r.IntN(len(ways))](w.r); where != "" {
			c.done[where] = what
		}
	}
	return c.done
}

func (c *corruptor) row(r *rand.Rand, prefix string) change.Item {
	var some []change.Item
	for _, row := range c.rows {
		if strings.HasPrefix(row["pk"].Text(), prefix) {
			some = append(some, row)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return maps.Clone(some[r.IntN(len(some))])
}

func (c *corruptor) free(where string) bool { _, taken := c.done[where]; return !taken }

func (c *corruptor) entry(r *rand.Rand) (string, string) {
	row := c.row(r, "i/")
	if row == nil || len(oracle.EffectsIn(row)) == 0 {
		return "", ""
	}
	where := "item " + strings.TrimPrefix(row["pk"].Text(), "i/")
	if !c.free(where) {
		return "", ""
	}
	if r.IntN(2) == 0 {
		c.delete("app-dynamill", row)
		return where, "entry deleted"
	}
	effects := oracle.EffectsIn(row)
	ids := slices.Sorted(maps.Keys(effects))
	id, what := ids[r.IntN(len(ids))], "effect removed"
	_, group, _ := strings.Cut(effects[id], " ")
	group = cmp.Or(group, effects[id][1:])
	switch contribution := strings.IndexByte("+*", effects[id][0]) >= 0; {
	case contribution && r.IntN(3) == 0:
		effects[id], what = "+7 "+group, "effect of another amount"
	case r.IntN(4) == 0:
		effects[id], what = "?", "effect made unreadable"
	default:
		delete(effects, id)
	}
	hasEffects(row, effects)
	c.put("app-dynamill", row)
	return where, what
}

func (c *corruptor) orphanEntry(r *rand.Rand) (string, string) {
	row := c.row(r, "i/")
	if row == nil || len(oracle.EffectsIn(row)) == 0 {
		return "", ""
	}
	for id, effect := range oracle.EffectsIn(row) {
		if strings.IndexByte("+*", effect[0]) < 0 || strings.HasPrefix(id, "@") {
			return "", ""
		}
	}
	key := change.Key{Partition: "GONE#" + strconv.Itoa(r.IntN(1e6)), Sort: "x"}
	if len(c.names("app")) == 1 {
		key.Sort = ""
	}
	if c.p.PartitionKind == change.KindNumber || c.p.SortKind == change.KindNumber {
		return "", ""
	}
	row["pk"] = change.String("i/" + key.String())
	c.put("app-dynamill", row)
	return "item " + key.String(), "orphan entry made"
}

// ruleOf is the name of a rule by its id; a locator's id is its name.
func (c *corruptor) ruleOf(id string) string {
	for _, rule := range c.p.Set.Rules {
		if oracle.RuleID(rule.Name) == id {
			return rule.Name
		}
	}
	return id
}

func (c *corruptor) accumulator(r *rand.Rand) (string, string) {
	row := c.row(r, "sum/")
	if row == nil {
		return "", ""
	}
	parts := strings.SplitN(row["pk"].Text(), "/", 3)
	group := change.ParseKey(parts[2][:strings.LastIndex(parts[2], "/")]).Partition
	where := "sum " + c.ruleOf(parts[1]) + " " + group
	n, err := strconv.Atoi(row["value"].Text())
	if err != nil || !c.free(where) {
		return "", ""
	}
	if r.IntN(3) == 0 && n != 0 {
		c.delete("app-dynamill", row)
		return where, "accumulator deleted"
	}
	what := "accumulator raised"
	if members, err := strconv.Atoi(row["members"].Text()); err == nil && r.IntN(4) == 0 {
		row["members"] = change.Number(strconv.Itoa(members - 1 - r.IntN(3)))
		c.put("app-dynamill", row)
		return where, "members of an accumulator lowered"
	}
	if row["value"] = change.Number(strconv.Itoa(n + 1 + r.IntN(3))); r.IntN(3) == 0 {
		row["value"], what = change.String(strconv.Itoa(n)), "accumulator made a text"
	}
	c.put("app-dynamill", row)
	return where, what
}

func (c *corruptor) set(r *rand.Rand) (string, string) {
	prefix, attribute := "claims/", "sources"
	if r.IntN(2) == 0 {
		prefix, attribute = "locator/", "items"
	}
	row := c.row(r, prefix)
	if row == nil {
		return "", ""
	}
	parts := strings.SplitN(row["pk"].Text(), "/", 3)
	where := "claims " + c.ruleOf(parts[1]) + " " + parts[2]
	if attribute == "items" {
		where = "locator unique " + parts[1] + " " + change.ParseKey(parts[2]).Partition
	}
	if !c.free(where) {
		return "", ""
	}
	var members []string
	for _, m := range row[attribute].List() {
		members = append(members, m.Text())
	}
	if len(members) > 0 && r.IntN(2) == 0 {
		members = members[1:]
	} else if c.p.PartitionKind == change.KindNumber || c.p.SortKind == change.KindNumber {
		return "", ""
	} else {
		members = append(members, "ZZZ"+strings.Repeat("/x", len(c.names("app"))-1))
	}
	if delete(row, attribute); len(members) > 0 {
		row[attribute] = change.Set(change.KindStringSet, members)
	}
	c.put("app-dynamill", row)
	return where, "set changed to " + fmt.Sprint(members)
}

func (c *corruptor) reference(r *rand.Rand) (string, string) {
	row := c.row(r, "ref/")
	if row == nil {
		return "", ""
	}
	where := "item " + row["sk"].Text()
	if !c.free(where) {
		return "", ""
	}
	if r.IntN(2) == 0 {
		c.delete("app-dynamill", row)
		return where, "reference deleted"
	}
	key := change.Key{Partition: "GONE#" + strconv.Itoa(r.IntN(1e6)), Sort: "x"}
	if len(c.names("app")) == 1 {
		key.Sort = ""
	}
	if c.p.PartitionKind == change.KindNumber || c.p.SortKind == change.KindNumber {
		return "", ""
	}
	row["sk"] = change.String(key.String())
	c.put("app-dynamill", row)
	return "item " + key.String(), "orphan reference made"
}

// parked deletes what is parked, gives it another code, or parks a good item.
func (c *corruptor) parked(r *rand.Rand) (string, string) {
	row := c.row(r, "parked")
	if row == nil || slices.Contains([]string{"write.rejected", "heal.contested", "number.overflow"}, row["code"].Text()) {
		return "", ""
	}
	item := row["item"].Text()
	at := func() string {
		name, locator := strings.CutPrefix(c.ruleOf(row["rule"].Text()), "@")
		if locator {
			name = "unique " + name
		}
		return "parked " + name + " " + item
	}
	if !c.free(at()) {
		return "", ""
	}
	switch r.IntN(3) {
	case 0:
		c.delete("app-dynamill", row)
		return at(), "parked record deleted"
	case 1:
		row["code"] = change.String("other")
		c.put("app-dynamill", row)
		return at(), "parked record of another code"
	}
	item = change.Key{Partition: "GONE#" + strconv.Itoa(r.IntN(1e6)), Sort: "x"}.String()
	id := row["rule"].Text() + "/" + item
	row["sk"], row["id"], row["item"] = change.String(id), change.String(id), change.String(item)
	c.put("app-dynamill", row)
	return at(), "parked record made"
}

// leftover has an item carry what a rule writes on items of another entity.
func (c *corruptor) leftover(r *rand.Rand) (string, string) {
	it := maps.Clone(c.all[r.IntN(len(c.all))])
	key := c.p.Key(it)
	m, ok := c.p.Set.Identify(key, it)
	if !ok || !c.free("item "+key.String()) {
		return "", ""
	}
	for _, rule := range c.p.Set.Rules {
		if rule.MakesItems() || rule.Deletes() || rule.Target == m.Entity || !rule.Target.HasKey(key) || !c.plain(m.Entity, rule.Writes[0]) {
			continue
		}
		if writes := slices.ContainsFunc(c.p.Set.Rules, func(o *rules.Rule) bool {
			return o.Target == m.Entity &&
				slices.Contains(o.Writes, rule.Writes[0])
		}); writes {
			continue
		}
		it[rule.Writes[0]] = change.Number("7")
		it[stampName(rule.Name)] = stampOver(change.Number("7"))
		c.put("app", it)
		return "item " + key.String(), "left over by " + rule.Name
	}
	return "", ""
}

// plain reports whether no rule reads an attribute of an entity: what is
// spoiled there spoils nothing else.
func (c *corruptor) plain(e *rules.Entity, attribute string) bool {
	if c.wild {
		return true
	}
	if e.Unique == attribute || slices.ContainsFunc(e.Equals, func(eq rules.Equals) bool { return eq.Attribute == attribute }) {
		return false
	}
	for _, r := range c.p.Set.Rules {
		if r.Source == e && slices.Contains(r.Reads, attribute) || r.Target == e && slices.Contains(r.JoinReads, attribute) {
			return false
		}
	}
	return true
}

// target draws an item on which a rule of a kind writes.
func (c *corruptor) target(r *rand.Rand, of func(*rules.Entity) []*rules.Rule) (change.Item, *rules.Match, *rules.Rule) {
	it := c.all[r.IntN(len(c.all))]
	m, ok := c.p.Set.Identify(c.p.Key(it), it)
	if !ok || len(of(m.Entity)) == 0 || !c.free("item "+c.p.Key(it).String()) {
		return nil, nil, nil
	}
	rule := of(m.Entity)[r.IntN(len(of(m.Entity)))]
	return maps.Clone(it), &m, rule
}

func (c *corruptor) display(r *rand.Rand) (string, string) {
	it, m, rule := c.target(r, func(e *rules.Entity) []*rules.Rule { return e.Displays })
	if it == nil || !c.plain(m.Entity, rule.Writes[0]) {
		return "", ""
	}
	if group, ok, err := rule.GroupOf(m, it); err != nil || !ok || !c.free("sum "+rule.Name+" "+group) {
		return "", ""
	}
	n, _ := strconv.Atoi(it[rule.Writes[0]].Text())
	what := "display raised"
	if it[rule.Writes[0]] = change.Number(strconv.Itoa(n + 5)); n != 0 && r.IntN(2) == 0 {
		delete(it, rule.Writes[0])
		what = "display removed"
	} else if r.IntN(3) == 0 {
		it[rule.Writes[0]], what = change.String(strconv.Itoa(n)), "display made a text"
	}
	c.put("app", it)
	return "item " + c.p.Key(it).String(), what
}

func (c *corruptor) copied(r *rand.Rand) (string, string) {
	it, m, rule := c.target(r, func(e *rules.Entity) []*rules.Rule { return e.Children })
	if it == nil || rule.Deletes() {
		return "", ""
	}
	attribute := rule.Writes[r.IntN(len(rule.Writes))]
	if _, _, err := rule.JoinedKey(m, it); err != nil || !c.plain(m.Entity, attribute) {
		return "", ""
	}
	what := "copy overwritten"
	if it[attribute].Kind() != change.KindAbsent && r.IntN(2) == 0 {
		delete(it, attribute)
		what = "copy removed"
	} else if it[attribute] = change.String("stale"); r.IntN(3) == 0 {
		it[attribute], what = change.Null(), "copy made null"
	}
	c.put("app", it)
	return "item " + c.p.Key(it).String(), what
}

func (c *corruptor) mirror(r *rand.Rand) (string, string) {
	it, m, rule := c.target(r, func(e *rules.Entity) []*rules.Rule { return e.Makers })
	if it == nil || it[stampName(rule.Name)].Kind() == change.KindAbsent {
		return "", ""
	}
	feeds := len(m.Entity.Sources) > 0 || m.Entity.Located || len(m.Entity.Parents) > 0
	if (c.wild || !feeds) && r.IntN(2) == 0 {
		c.delete("app", it)
		return "item " + c.p.Key(it).String(), "mirror item deleted"
	}
	attribute := rule.Writes[r.IntN(len(rule.Writes))]
	if !c.plain(m.Entity, attribute) {
		return "", ""
	}
	it[attribute] = change.String("spoiled")
	c.put("app", it)
	return "item " + c.p.Key(it).String(), "mirror item overwritten"
}

// compare reports what was found elsewhere than it was spoiled, and what was not found.
func (w *world) compare(found []verify.Result, spoiled map[string]string) {
	w.t.Helper()
	seen := map[string]bool{}
	for _, f := range found {
		where := place(f.Finding)
		seen[where] = true
		if _, ok := spoiled[where]; !ok {
			w.t.Errorf("found where nothing was spoiled: %s", text(f))
		}
	}
	for where, what := range spoiled {
		if !seen[where] {
			w.t.Errorf("not found: %s at %s", what, where)
		}
	}
}

func TestExactlySpoiledDataIsFoundAndRepaired(t *testing.T) {
	var total atomic.Int64
	seeds := worldsize.Of(40, 4)
	if os.Getenv("DYNAMILL_SOAK") != "" {
		seeds = 300
	}
	t.Run("seeds", func(t *testing.T) { spoilAll(t, seeds, &total) })
	if wanted := int64(worldsize.Of(300, 30)); total.Load() < wanted {
		t.Errorf("%d corruptions were tried, %d are wanted", total.Load(), wanted)
	}
	t.Logf("%d corruptions", total.Load())
}

func spoilAll(t *testing.T, seeds int, total *atomic.Int64) {
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		p := population.Draw(r, projections.Kinds)
		if written := population.Written(projections.Kinds); seed < len(written) {
			p = written[seed]
		} else if seed%2 == 0 {
			p = p.Cascading(rand.New(rand.NewPCG(uint64(seed), 23)))
		}
		t.Run(fmt.Sprintf("%s-%d", p.Name, seed), inBubble(func(t *testing.T) {
			w := newWorld(t, p, uint64(seed))
			w.live(120)
			w.follow()
			w.expectRight("before")
			if t.Failed() {
				t.Fatalf("nothing was spoiled yet; the rules are\n%s", p.File)
			}
			spoiled := w.spoil(12)
			total.Add(int64(len(spoiled)))
			w.lose()
			found, _ := w.verify(false)
			w.compare(found, spoiled)
			if t.Failed() {
				t.Fatalf("spoiled: %v\n%s", spoiled, p.File)
			}
			for _, f := range func() []verify.Result { f, _ := w.verify(true); return f }() {
				if f.Status != verify.Repaired {
					t.Errorf("after the repair: %s", text(f))
				}
			}
			w.follow() // what mending has written is of other rules, too
			w.expectRight("after the repair")
			if t.Failed() {
				t.Fatalf("spoiled: %v\n%s", spoiled, p.File)
			}
		}))
	}
}

// What rules derive from derived data may be spoiled anywhere, too.
func TestSpoiledSourceOfOtherRulesIsMended(t *testing.T) {
	for seed := range worldsize.Of(12, 2) {
		p := population.Draw(rand.New(rand.NewPCG(uint64(seed), 17)), projections.Kinds)
		t.Run(fmt.Sprintf("%s-%d", p.Name, seed), inBubble(func(t *testing.T) {
			w := newWorld(t, p, uint64(seed))
			w.live(120)
			w.follow()
			spoiled := w.spoilBy(&corruptor{world: w, wild: true}, 12)
			w.lose()
			for range 3 { // what mending has written is of other rules, too
				w.verify(true)
				w.follow()
			}
			w.expectRight("after the repair")
			if t.Failed() {
				t.Fatalf("spoiled: %v\n%s", spoiled, p.File)
			}
		}))
	}
}
