package projections

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

// price is what one change of an item costs, as docs/performance.md says.
type price struct {
	name   string
	rules  string // those of a file, without the rest
	before []change.Item
	at     change.Key  // of the item that changes
	with   change.Item // its new attributes; nil: it is deleted
	units  float64
}

const (
	pricedEntities = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Site:    { key: { pk: "SITE#${site}", sk: "METADATA" } }
  TagPost: { key: { pk: "TAG#${tag}", sk: "POST#${postId}" } }
  Tag:     { key: { pk: "TAG#${tag}", sk: "METADATA" } }
`
	dayEntity = `  Day:     { key: { pk: "DAY#${day}", sk: "POSTS" }, derived: true, expire: 90d, expire_attribute: ttl }
`
)

// file is the whole rule file. The derived entity is refused without rules.
func (p price) file() string {
	if strings.Contains(p.rules, "Day.") {
		return pricedEntities + dayEntity + "rules:\n" + p.rules + "\n"
	}
	return pricedEntities + "rules:\n" + p.rules + "\n"
}

// The two rules of derived items have three rows: one of the count, and two of the average.
const (
	setRules     = `  published: { set: { GSI1PK: "STATUS#${status}", GSI1SK: "${title}" }, of: Post, where: status != "draft" }`
	sumRules     = `  likes:     { sum: likes, of: Post, as: Site.likes, by: site }`
	averageRules = `  likes:     { average: likes, of: Post, as: Site.likes, by: site }`
	tagRule      = `  tag-index: { mirror: Post, each: tags as tag, as: TagPost, attributes: [title] }`
	tagCountRule = `  tag-count: { count: Post, each: tags as tag, as: Tag.posts }`
	perRule      = `  states:    { count: Post, as: Site.states, by: site, per: status }`
	claimRule    = `  tag-item:  { mirror: Post, each: tags as tag, as: Tag, attributes: [title] }`
	perTagRule   = `  tags:      { count: Post, each: tags as tag, as: Site.tags, by: site, per: tag }`
	partsRule    = `  parts:     { average: part, of: Post, each: parts as part, as: Site.parts, by: site }`
	lastRule     = `  newest:    { last: [title as newest, likes as newestLikes], of: Post, to: Site, by: site, order: likes }`
	maxRule      = `  most:      { max: likes, of: Post, as: Site.most, by: site }`
	bestRules    = `  best:      { first: 2, of: Post, as: Day.best, attributes: [title], order: likes, by: day }`
	dayRules     = `  posts:     { count: Post, as: Day.posts, by: day }
  day-likes: { average: likes, of: Post, as: Day.likes, by: day, write_shards: 2 }`
)

// An item that a transaction writes or checks costs 2 for each KB, any other write 1.
const (
	entryUnits  = 2       // a ledger entry
	sumUnits    = 2       // an accumulator
	memberUnits = 2       // a member row
	rollUpUnits = 1       // a target of up to 1 KB
	turnUnits   = 2 + 3*2 // a derived item that is made or deleted, and the check of each row
)

func prices() []price {
	key := change.Key{Partition: "POST#p1", Sort: "METADATA"}
	post := func(with change.Item) change.Item {
		it := change.Item{"pk": s("POST#p1"), "sk": s("METADATA"), "title": s("T"), "site": s("a"), "day": s("d1"), "status": s("draft")}
		for name, v := range with {
			it[name] = v
		}
		return it
	}
	liked := func(n string) change.Item { return post(change.Item{"likes": number(n)}) }
	other := func() change.Item {
		it := liked("5")
		it["pk"] = s("POST#p2")
		return it
	}
	tags := func(tags []string) change.Item { return post(change.Item{"tags": tagged(tags...)}) }
	site := change.Item{"pk": s("SITE#a"), "sk": s("METADATA")}
	var of60 []change.Item
	for _, tag := range many(0, 60) {
		of60 = append(of60, change.Item{"pk": s("TAG#" + tag), "sk": s("METADATA")})
	}
	of50 := slices.Concat(of60, []change.Item{tags(many(0, 50))})
	big := change.Item{"status": s("live"), "text": s(strings.Repeat("x", 2500))}
	all := []price{
		{"set: values come", setRules, []change.Item{post(nil)}, key, change.Item{"status": s("live")}, 1},
		{"set: values come with the item", setRules, nil, key, post(change.Item{"status": s("live")}), 1},
		{"set: an item of 2.5 KB", setRules, []change.Item{post(nil)}, key, big, 3},
		{"set: one value changes", setRules, []change.Item{post(change.Item{"status": s("live")})}, key, change.Item{"title": s("U")}, 1},
		{"set: values go", setRules, []change.Item{post(change.Item{"status": s("live")})}, key, change.Item{"status": s("draft")}, 1},
		{"set: nothing that it reads changes", setRules, []change.Item{post(change.Item{"status": s("live")})}, key, change.Item{"likes": number("1")}, 0},
		{"mirror: an element comes", tagRule, []change.Item{tags(many(0, 50))}, key, tags(many(0, 51)), entryUnits + 2},
		{"mirror: one element goes, another comes", tagRule, []change.Item{tags(many(0, 50))}, key, tags(many(1, 50)), entryUnits + 2*2},
		{"mirror: an item of 50 elements comes", tagRule, nil, key, tags(many(0, 50)), entryUnits + 50*2},
		{"mirror: two elements come whose items have claims", claimRule, []change.Item{tags(many(0, 3))}, key, tags(many(0, 5)),
			entryUnits + 2*(2+2)},
		{"count: an element comes", tagCountRule, of50, key, tags(many(0, 51)), entryUnits + sumUnits + rollUpUnits},
		{"count: one element goes, another comes", tagCountRule, of50, key, tags(many(1, 50)), entryUnits + 2*(sumUnits+rollUpUnits)},
		{"count: an item of 50 elements comes", tagCountRule, of60, key, tags(many(0, 50)), entryUnits + 50*(sumUnits+rollUpUnits)},
		{"per: a value comes", perRule, []change.Item{site, other()}, key, post(nil), entryUnits + sumUnits + rollUpUnits},
		{"per: a value changes", perRule, []change.Item{site, post(nil)}, key, change.Item{"status": s("live")},
			entryUnits + sumUnits + rollUpUnits},
		{"per: ten elements come", perTagRule, []change.Item{site, tags(many(0, 3))}, key, tags(many(0, 13)),
			entryUnits + sumUnits + rollUpUnits},
		{"average: an element comes", partsRule, []change.Item{site, post(change.Item{"parts": listOf(number("1"), number("2"))})}, key,
			change.Item{"parts": listOf(number("1"), number("2"), number("6"))}, entryUnits + sumUnits + rollUpUnits},
		{"derived: the item comes", dayRules, nil, key, liked("3"), entryUnits + 2*sumUnits + rollUpUnits + turnUnits},
		{"derived: its totals change", dayRules, []change.Item{liked("3")}, key, change.Item{"likes": number("4")},
			entryUnits + sumUnits + rollUpUnits},
		{"derived: a second source comes", dayRules, []change.Item{other()}, key, liked("3"), entryUnits + 2*sumUnits + rollUpUnits},
		{"derived: a source goes", dayRules, []change.Item{other(), liked("3")}, key, nil, entryUnits + 2*sumUnits + rollUpUnits},
		{"derived: the last source goes", dayRules, []change.Item{liked("3")}, key, nil, entryUnits + 2*sumUnits + turnUnits},
	}
	const placeUnits = entryUnits + memberUnits + sumUnits + rollUpUnits
	all = append(all,
		price{"last: a first item comes", lastRule, []change.Item{site}, key, liked("3"), placeUnits},
		price{"last: an item comes", lastRule, []change.Item{site, other()}, key, liked("8"), placeUnits},
		price{"last: what is shown changes", lastRule, []change.Item{site, liked("3")}, key, change.Item{"title": s("U")}, placeUnits},
		price{"last: the order changes", lastRule, []change.Item{site, other(), liked("3")}, key, liked("7"), placeUnits + memberUnits},
		price{"last: an item goes", lastRule, []change.Item{site, other(), liked("8")}, key, nil, placeUnits},
		price{"max: a value comes", maxRule, []change.Item{site, other()}, key, liked("8"), placeUnits},
		price{"max: a value changes", maxRule, []change.Item{site, liked("3")}, key, liked("7"), placeUnits + memberUnits},
		price{"derived: its first item comes", bestRules, nil, key, liked("3"), placeUnits + 2 + 2},
		price{"derived: its last item goes", bestRules, []change.Item{liked("3")}, key, nil, placeUnits - rollUpUnits + 2 + 2},
	)
	for kind, rules := range map[string]string{"sum": sumRules, "average": averageRules} {
		all = append(all,
			price{kind + ": a first value comes", rules, []change.Item{site}, key, liked("3"), entryUnits + sumUnits + rollUpUnits},
			price{kind + ": a value changes", rules, []change.Item{site, other(), liked("3")}, key, change.Item{"likes": number("7")},
				entryUnits + sumUnits + rollUpUnits},
			price{kind + ": a value goes", rules, []change.Item{site, other(), liked("3")}, key, nil, entryUnits + sumUnits + rollUpUnits},
			price{kind + ": the last value goes", rules, []change.Item{site, liked("3")}, key, nil, entryUnits + sumUnits + rollUpUnits},
		)
	}
	return all
}

// priced is a table with an engine that tells what it spends.
type priced interface {
	get(key change.Key) change.Item
	put(item change.Item)
	delete(key change.Key)
	// follow has the engine apply what was written since the last call, and returns the write units of that.
	follow() float64
}

// costs makes the change on a table and returns what the engine spends on it.
func (p price) costs(on priced) float64 {
	for _, item := range p.before {
		on.put(item)
	}
	on.follow()
	if p.with == nil {
		on.delete(p.at)
		return on.follow()
	}
	item := on.get(p.at)
	if item == nil {
		item = change.Item{}
	}
	for name, v := range p.with {
		item[name] = v
	}
	on.put(item)
	return on.follow()
}

// simulatedTable is a priced table at the simulator.
type simulatedTable struct {
	*world
	engine *Engine
	read   int // records
}

func (s *simulatedTable) follow() float64 {
	s.t.Helper()
	before := s.sim.Usage()
	records := s.records()[s.read:]
	if done, err := s.engine.Process(s.ctx, records); err != nil || done != len(records) {
		s.t.Fatalf("%d of %d records are done: %v", done, len(records), err)
	}
	spent := s.sim.Usage().Sub(before).WriteUnits
	s.read = s.drain(s.engine, s.read+len(records))
	return spent
}

// TestChangesCostWhatThePageSays counts what docs/performance.md says.
func TestChangesCostWhatThePageSays(t *testing.T) {
	for _, p := range prices() {
		t.Run(p.name, func(t *testing.T) {
			w := newWorld(t, p.file())
			on := &simulatedTable{world: w, engine: w.seeded()}
			if units := p.costs(on); units != p.units {
				t.Errorf("%v write units, want %v", units, p.units)
			}
			w.expectRight()
		})
	}
}

// TestCheckSaysWhatElementsCost holds what check says to the prices above: where all elements belong to one target, it names no price of
// an element.
func TestCheckSaysWhatElementsCost(t *testing.T) {
	const rollUp, perTarget = " + roll-up once per batch and target", "2 WU per change and 2 WU per element that changes"
	for rule, want := range map[string]string{
		tagCountRule: perTarget + rollUp + ", 1 WU per new Tag",
		perTagRule:   "2 WU per change" + rollUp + ", 1 WU per new Site, 2 WU more per change for each KB of values",
		partsRule:    "2 WU per change" + rollUp,
		tagRule:      perTarget,
		claimRule:    "2 WU per change and 2 + 2 WU per element that changes: for its item and its claim",
	} {
		if said := loadRules(t, price{rules: rule}.file()).Rules[0].Form.Cost().Text; said != want {
			t.Errorf("%s: check says %q", rule, said)
		}
	}
}

// exactTable is a priced table at an endpoint that reports capacity exactly. It has no stream: the table makes the records.
type exactTable struct {
	*metered
	t      *testing.T
	name   string
	engine *Engine
	next   []change.Record
	at     int // the last record's position
}

func (e *exactTable) get(key change.Key) change.Item {
	e.t.Helper()
	out, err := e.GetItem(e.t.Context(), &dynamodb.GetItemInput{TableName: &e.name, ConsistentRead: new(true),
		Key: attributes.ItemToTable(change.Item{"pk": s(key.Partition), "sk": s(key.Sort)})})
	if err != nil {
		e.t.Fatal(err)
	}
	return attributes.ItemFromTable(out.Item)
}

func (e *exactTable) put(item change.Item) {
	e.t.Helper()
	key := change.Key{Partition: item["pk"].Text(), Sort: item["sk"].Text()}
	e.record(key, item)
	if _, err := e.PutItem(e.t.Context(), &dynamodb.PutItemInput{TableName: &e.name, Item: attributes.ItemToTable(item)}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *exactTable) delete(key change.Key) {
	e.t.Helper()
	e.record(key, nil)
	if _, err := e.DeleteItem(e.t.Context(), &dynamodb.DeleteItemInput{TableName: &e.name,
		Key: attributes.ItemToTable(change.Item{"pk": s(key.Partition), "sk": s(key.Sort)})}); err != nil {
		e.t.Fatal(err)
	}
}

// record is that of a write that comes next.
func (e *exactTable) record(key change.Key, item change.Item) {
	e.at++
	position, err := change.NewPosition("2026-01-01T00:00:00.000", fmt.Sprint(e.at))
	if err != nil {
		e.t.Fatal(err)
	}
	rec := change.Record{Key: key, Position: position}
	if old := e.get(key); old != nil {
		rec.Old = old
	}
	if item != nil {
		rec.New = item
	}
	e.next = append(e.next, rec)
}

func (e *exactTable) follow() float64 {
	e.t.Helper()
	e.units = 0
	if done, err := e.engine.Process(e.t.Context(), e.next); err != nil || done != len(e.next) {
		e.t.Fatalf("%d of %d records are done: %v", done, len(e.next), err)
	}
	e.next = nil
	return e.units
}

// TestExactCapacityOfChanges confirms these figures against an endpoint that reports capacity exactly.
func TestExactCapacityOfChanges(t *testing.T) {
	for _, p := range prices() {
		e, m, name := exactEngine(t, p.file())
		if e == nil {
			return
		}
		units := p.costs(&exactTable{metered: m, t: t, name: name, engine: e})
		if units != p.units {
			t.Errorf("%s: %v write units at the endpoint, want %v", p.name, units, p.units)
		}
	}
}
