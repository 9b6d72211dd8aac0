package projections

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// tagRules make a tag's item from its posts, and read it: a name is copied from it, and it is mirrored.
const tagRules = `
version: 1
table: { keys: [pk, sk], type: kind }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true }
rules:
  posts: { count: Post, as: Tag.posts, by: tag }
  likes: { sum: likes, of: Post, as: Tag.likes, by: tag, write_shards: 2 }
  mean:  { average: likes, of: Post, as: Tag.mean, by: tag }
  label: { set: { label: "${tag}:${posts}" }, of: Tag }
  back:  { copy: [posts as tagPosts], from: Tag, to: Post, by: tag }
`

var tagA = change.Key{Partition: "TAG#a", Sort: "METADATA"}

func taggedPost(id, tag string, likes change.Value) change.Item {
	it := change.Item{"pk": s("POST#" + id), "sk": s("METADATA"), "kind": s("Post")}
	if tag != "" {
		it["tag"] = s(tag)
	}
	if likes.Kind() != change.KindAbsent {
		it["likes"] = likes
	}
	return it
}

// TestDerivedItemExistsWhileItemsContribute has posts come and go.
func TestDerivedItemExistsWhileItemsContribute(t *testing.T) {
	w := newWorld(t, tagRules)
	w.put(taggedPost("p0", "b", number("0")))
	e := w.seeded()
	n := 0
	var none change.Value
	for _, step := range []struct {
		name  string
		do    func()
		posts change.Value
	}{
		{"nothing", func() {}, none},
		{"a post without likes", func() { w.put(taggedPost("p1", "a", none)) }, number("1")},
		{"a post of 0 likes", func() { w.put(taggedPost("p2", "a", number("0"))) }, number("2")},
		{"the application overwrites it", func() {
			w.put(change.Item{"pk": s("TAG#a"), "sk": s("METADATA"), "kind": s("Tag"), "posts": number("9"), "colour": s("red")})
		}, number("2")},
		{"the application makes it another", func() {
			w.put(change.Item{"pk": s("TAG#a"), "sk": s("METADATA"), "kind": s("Other")})
		}, number("2")},
		{"the application deletes it", func() { w.delete(tagA) }, number("2")},
		{"the application changes an attribute", func() { w.update(tagA, change.Item{"posts": none, "colour": s("blue")}) }, number("2")},
		{"the posts go", func() {
			w.delete(change.Key{Partition: "POST#p1", Sort: "METADATA"})
			w.put(taggedPost("p2", "", number("0")))
		}, none},
		{"the application puts one", func() { w.put(change.Item{"pk": s("TAG#a"), "sk": s("METADATA"), "kind": s("Tag")}) }, none},
		{"a post comes again", func() { w.put(taggedPost("p1", "a", number("3"))) }, number("1")},
	} {
		step.do()
		n = w.drain(e, n)
		if got := w.get(tagA)["posts"]; !got.Equal(step.posts) {
			t.Errorf("%s: posts is %q, want %q", step.name, got.Text(), step.posts.Text())
		}
		w.expectRight()
		if t.Failed() {
			t.Fatal("after ", step.name)
		}
	}
}

// derivedElementRules make an item for each tag of a post.
const derivedElementRules = `
version: 1
table: { keys: [pk, sk], type: kind }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true }
rules:
  posts: { count: Post, each: tags as tag, as: Tag.postCount }
  likes: { sum: likes, of: Post, each: tags as tag, as: Tag.likes, where: tag != "c", write_shards: 2 }
  label: { set: { label: "${tag}:${postCount}" }, of: Tag }
`

// TestEachElementDerivesAnItem has tags come and go.
func TestEachElementDerivesAnItem(t *testing.T) {
	w := newWorld(t, derivedElementRules)
	p0, p1 := change.Key{Partition: "POST#p0", Sort: "METADATA"}, change.Key{Partition: "POST#p1", Sort: "METADATA"}
	post := func(id string, tags change.Value) change.Item {
		it := taggedPost(id, "", number("0")) // an amount of 0 makes an item, too
		it["tags"] = tags
		return it
	}
	expect := func(name string, want map[string]string) {
		t.Helper()
		for _, tag := range []string{"a", "b", "c", "d"} {
			it := w.get(change.Key{Partition: "TAG#" + tag, Sort: "METADATA"})
			if got := it["postCount"].Text(); got != want[tag] || (it == nil) != (want[tag] == "") {
				t.Errorf("%s: TAG#%s has postCount %q, want %q: %v", name, tag, got, want[tag], it)
			}
		}
		w.expectRight()
		if t.Failed() {
			t.Fatal("after ", name)
		}
	}
	w.put(post("p0", tagged("a", "b")))
	e := w.seeded()
	expect("a post from before", map[string]string{"a": "1", "b": "1"})
	n := 0
	for _, step := range []struct {
		name string
		do   func()
		want map[string]string
	}{
		{"a post with one tag twice", func() { w.put(post("p1", tagged("b", "c", "b"))) }, map[string]string{"a": "1", "b": "2", "c": "1"}},
		{"another tag instead", func() { w.put(post("p1", tagged("b", "d"))) }, map[string]string{"a": "1", "b": "2", "d": "1"}},
		{"tags that are no list", func() { w.put(post("p1", s("b"))) }, map[string]string{"a": "1", "b": "1"}},
		{"one element that is no tag", func() { w.put(post("p1", listOf(s("a"), listOf(s("b"))))) }, map[string]string{"a": "1", "b": "1"}},
		{"tags again", func() { w.put(post("p1", tagged("a", "c"))) }, map[string]string{"a": "2", "b": "1", "c": "1"}},
		{"the application deletes an item", func() { w.delete(tagA) }, map[string]string{"a": "2", "b": "1", "c": "1"}},
		{"a post goes", func() { w.delete(p0) }, map[string]string{"a": "1", "c": "1"}},
	} {
		step.do()
		n = w.drain(e, n)
		expect(step.name, step.want)
	}
	w.delete(change.Key{Partition: "TAG#c", Sort: "METADATA"}) // its record is never seen
	n = len(w.records())
	if err := e.Rederive(w.ctx, []change.Key{p1}); err != nil {
		t.Fatal(err)
	}
	n = w.drain(e, n)
	expect("an item is lost, and its post is derived again", map[string]string{"a": "1", "c": "1"})
	w.delete(p1)
	w.drain(e, n)
	expect("the last post goes", nil)
}

// TestExpiredItemStaysAwayUntilItsNextContribution has DynamoDB's time to live delete a derived item.
func TestExpiredItemStaysAwayUntilItsNextContribution(t *testing.T) {
	w := newWorld(t, strings.Replace(tagRules, "derived: true", "derived: true, expire: 90d, expire_attribute: until", 1))
	e := w.seeded()
	w.put(taggedPost("p1", "a", number("3")))
	n := w.drain(e, 0)
	until := w.get(tagA)["until"]
	want := time.Now().Add(90 * 24 * time.Hour).Unix()
	if at, err := strconv.ParseInt(until.Text(), 10, 64); err != nil || at > want || at < want-60 {
		t.Errorf("until is %q, want about %d", until.Text(), want)
	}
	w.delete(tagA)
	records := w.records()
	records[len(records)-1].Expired = true
	n = w.drain(e, n)
	replay := func(why string) {
		t.Helper()
		if err := e.Rederive(w.ctx, []change.Key{{Partition: "POST#p1", Sort: "METADATA"}}); err != nil {
			t.Fatal(err)
		}
		if w.get(tagA) != nil {
			t.Errorf("the item is back: %s", why)
		}
	}
	if _, err := e.Process(w.ctx, records); err != nil { // all of it once more
		t.Fatal(err)
	}
	n = w.drain(e, n)
	w.put(taggedPost("p1", "a", number("3")))
	n = w.drain(e, n)
	replay("its source was rederived")
	w.put(taggedPost("p2", "a", number("0")))
	n = w.drain(e, n)
	w.expect(tagA, "posts", number("2"))
	w.expect(tagA, "likes", number("3"))
	w.expectRight()
	w.delete(tagA) // and that was the application
	w.drain(e, n)
	w.expect(tagA, "posts", number("2"))
}

// TestAContributionThatIsStillToBeShownBringsAnExpiredItemBack has a worker crash between the count of a contribution that came behind the
// expiry and its roll-up, and another one come to the expiry before the contribution comes again.
func TestAContributionThatIsStillToBeShownBringsAnExpiredItemBack(t *testing.T) {
	w := newWorld(t, strings.Replace(tagRules, "derived: true", "derived: true, expire: 90d, expire_attribute: until", 1))
	e := w.seeded()
	w.put(taggedPost("p1", "a", number("3")))
	n := w.drain(e, 0)
	w.delete(tagA)
	w.put(taggedPost("p2", "a", number("4")))
	records := w.records()
	expiry, contribution := records[n:n+1], records[n+1:n+2]
	expiry[0].Expired = true
	crashes := w.engine(&faulty{Client: w.sim, around: func(op string, pass func() error) error {
		if op == "UpdateItem" {
			return errCrash
		}
		return pass()
	}})
	if _, err := crashes.Process(w.ctx, contribution); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	for _, some := range [][]change.Record{expiry, contribution} {
		if _, err := e.Process(w.ctx, some); err != nil {
			t.Fatal(err)
		}
	}
	w.drain(e, n+2)
	w.expect(tagA, "posts", number("2"))
	w.expect(tagA, "likes", number("7"))
	w.expectRight()
}

// TestADeletionTellsNothingOfAnItemThatCameBack has a worker apply, once more, the deletion of a derived item together with the end of its
// last source. The item was made again in between, and the record of that cannot be read.
func TestADeletionTellsNothingOfAnItemThatCameBack(t *testing.T) {
	w := newWorld(t, tagRules)
	e := w.seeded()
	w.put(taggedPost("p1", "a", number("3")))
	n := w.drain(e, 0)
	w.delete(tagA)
	deletion := w.records()[len(w.records())-1:]
	from := len(w.records())
	w.drain(e, n)
	insertion := slices.IndexFunc(w.records()[from:], func(r change.Record) bool { return r.Key == tagA && r.Old == nil })
	if insertion < 0 {
		t.Fatal("the item was not made again")
	}
	unreadable := slices.Clone(w.records()[from+insertion : from+insertion+1])
	unreadable[0].Old, unreadable[0].New = nil, nil
	at := len(w.records())
	w.delete(change.Key{Partition: "POST#p1", Sort: "METADATA"})
	last := w.records()[at : at+1]
	if err := e.RederiveRecords(w.ctx, unreadable); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Process(w.ctx, slices.Concat(deletion, last)); err != nil {
		t.Fatal(err)
	}
	if it := w.get(tagA); it != nil {
		t.Errorf("without a source there is %v", it)
	}
}

// TestAnExpiredItemStaysAwayWithManyEmptyValues has an item expire whose accumulator has more values without a source than one transaction
// removes.
func TestAnExpiredItemStaysAwayWithManyEmptyValues(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true, expire: 90d, expire_attribute: until }
rules:
  kinds: { count: Post, each: tags as tag, as: Tag.kinds, per: kind }
`)
	e := w.seeded()
	post := func(i int) change.Item {
		return change.Item{"pk": s(fmt.Sprint("POST#", i)), "sk": s("METADATA"), "kind": s(fmt.Sprint(i)),
			"tags": change.List([]change.Value{s("a")})}
	}
	for i := range 71 {
		w.put(post(i))
	}
	n := w.drain(e, 0)
	for i := range 70 {
		w.delete(change.Key{Partition: fmt.Sprint("POST#", i), Sort: "METADATA"})
	}
	n = w.drain(e, n)
	if got := len(w.get(tagA)["kinds"].Map()); got != 1 {
		t.Fatalf("%d kinds are shown", got)
	}
	w.delete(tagA)
	records := w.records()
	records[len(records)-1].Expired = true
	n = w.drain(e, n)
	if w.get(tagA) != nil {
		t.Error("the item is back")
	}
	w.put(post(100))
	w.drain(e, n)
	if got := len(w.get(tagA)["kinds"].Map()); got != 2 {
		t.Errorf("behind another post, %d kinds are shown", got)
	}
	w.expectRight()
}

// TestDerivedItemsAreMadeByAReplayAndGoWithTheirRules has a full table, a lost item, and rules that come and go.
func TestDerivedItemsAreMadeByAReplayAndGoWithTheirRules(t *testing.T) {
	w := newWorld(t, tagRules)
	w.put(taggedPost("p1", "a", number("3")))
	w.put(taggedPost("p2", "b", number("3")))
	w.put(change.Item{"pk": s("TAG#c"), "sk": s("METADATA"), "kind": s("Tag")})
	e := w.seeded()
	w.expect(tagA, "posts", number("1"))
	w.expectRight()
	n := w.drain(e, 0)
	w.delete(tagA)
	n += len(w.records()) - n // the record is lost
	if err := e.Work(w.ctx, "rederive", []change.Key{{Partition: "POST#p1", Sort: "METADATA"}}); err != nil {
		t.Fatal(err)
	}
	w.expect(tagA, "posts", number("1"))
	n = w.drain(e, n)
	expiring := strings.Replace(tagRules, "derived: true", "derived: true, expire: 90d, expire_attribute: until", 1)
	for _, rules := range []string{
		strings.Replace(tagRules, "  likes:", "  others:", 1), expiring, tagRules,
		strings.Replace(tagRules, "by: tag }\n  label", "by: tag, where: likes > 5 }\n  label", 1), tagRules,
	} {
		e := w.changing(rules, nil)
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		n = w.drain(e, n)
		w.expect(tagA, "posts", number("1"))
		if until := w.get(tagA)["until"]; (until.Kind() == change.KindNumber) != (rules == expiring) {
			t.Errorf("until is %q", until.Text())
		}
		w.expectRight()
	}
	before, _, _ := strings.Cut(tagRules, "  posts:")
	e = w.changing(strings.Replace(before, ", derived: true", "", 1)+
		"  back: { copy: [name as tagName], from: Tag, to: Post, by: tag }\n", nil)
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(e, n)
	if w.get(tagA) != nil {
		t.Error("the item outlives the last rule that made it")
	}
}

// TestPriceOfDerivedItems counts what docs/performance.md says.
func TestPriceOfDerivedItems(t *testing.T) {
	totals, _, _ := strings.Cut(tagRules, "  label:")
	w := newWorld(t, totals)
	e := w.seeded()
	units := func(do func()) float64 {
		from := len(w.records())
		do()
		before := w.sim.Usage()
		records := w.records()[from:]
		if done, err := e.Process(w.ctx, records); err != nil || done != len(records) {
			t.Fatal(done, err)
		}
		used := w.sim.Usage().Sub(before).WriteUnits
		w.drain(e, from+len(records))
		return used
	}
	const (
		move = 2 + 3*2 // the entry, and an accumulator of each of three rules
		turn = 2 + 4*2 // an item that is made or deleted, and four rows, of which one rule has two
	)
	made := units(func() { w.put(taggedPost("p1", "a", number("3"))) })
	more := units(func() { w.put(taggedPost("p2", "a", number("3"))) })
	less := units(func() { w.delete(change.Key{Partition: "POST#p1", Sort: "METADATA"}) })
	gone := units(func() { w.delete(change.Key{Partition: "POST#p2", Sort: "METADATA"}) })
	if made != move+1+turn || more != move+1 || less != move+1 || gone != move+turn {
		t.Errorf("a first member costs %v units, want %d; a second one %v, want %d; its end %v, want %d; the last one's %v, want %d",
			made, move+1+turn, more, move+1, less, move+1, gone, move+turn)
	}
}

// TestDerivedItemOfManyRules has as many rules on one entity as a rule file may have.
func TestDerivedItemOfManyRules(t *testing.T) {
	rules, _, _ := strings.Cut(tagRules, "  posts:")
	for i := range 20 {
		rules += "  posts-" + strconv.Itoa(i) + ": { count: Post, as: Tag.posts" + strconv.Itoa(i) + ", by: tag, write_shards: 2 }\n"
	}
	w := newWorld(t, rules)
	e := w.seeded()
	n := 0
	for i := range 8 {
		for k := range 6 {
			w.put(taggedPost(strconv.Itoa(i)+"-"+strconv.Itoa(k), string(rune('a'+k)), number("1")))
		}
		n = w.drain(e, n)
	}
	w.expect(tagA, "posts19", number("8"))
	w.expectRight()
}

// TestRowsOfADerivedItemAreBounded raises and lowers write_shards rule by rule: one transaction checks the rows of former suffixes, too.
func TestRowsOfADerivedItemAreBounded(t *testing.T) {
	spread := func(posts, likes, mean string) string {
		return strings.NewReplacer("by: tag }\n  likes", "by: tag, write_shards: "+posts+" }\n  likes", "write_shards: 2", "write_shards: "+likes,
			"Tag.mean, by: tag", "Tag.mean, by: tag, write_shards: "+mean).Replace(tagRules)
	}
	w := newWorld(t, spread("47", "2", "1"))
	w.seeded()
	w.file = spread("2", "47", "1")
	w.engine(nil)
	w.file = spread("2", "2", "5") // 99 rows
	e := w.engine(nil)
	w.put(taggedPost("p1", "a", number("3")))
	at := w.drain(e, 0)
	w.expect(tagA, "mean", number("3"))
	w.delete(change.Key{Partition: "POST#p1", Sort: "METADATA"})
	w.drain(e, at)
	w.expectRight()
	set := loadRules(t, spread("2", "2", "6"))
	_, opened := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: set})
	_, compared := Compare(w.ctx, w.sim, "app-dynamill", set)
	for _, err := range []error{opened, compared} {
		const remedy = "lower `write_shards` of mean; or remove posts, "
		if refused := new(table.SetupError); !errors.As(err, &refused) || !strings.HasPrefix(refused.Remedy, remedy) ||
			!strings.Contains(refused.Problem, "over 100 rows") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestADerivedItemShowsTheOtherTotalsBesideOneThatNoNumberHolds has likes that add up to more than 38 digits.
func TestADerivedItemShowsTheOtherTotalsBesideOneThatNoNumberHolds(t *testing.T) {
	totals, _, _ := strings.Cut(tagRules, "  mean:")
	w := newWorld(t, totals)
	e := w.seeded()
	w.put(taggedPost("p1", "a", number("99999999999999999999999999999999999999")))
	n := w.drain(e, 0)
	w.put(taggedPost("p2", "a", number("0.5")))
	n = w.drain(e, n)
	w.expect(tagA, "posts", number("2"))
	parked, err := e.Parked(w.ctx)
	if err != nil || len(parked) == 0 {
		t.Fatalf("parked: %v, %v", parked, err)
	}
	w.delete(change.Key{Partition: "POST#p1", Sort: "METADATA"})
	w.drain(e, n)
	w.expect(tagA, "posts", number("1"))
	w.expect(tagA, "likes", number("0.5"))
}
