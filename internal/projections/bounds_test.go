package projections

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// TestAnyNumberOfRulesRegisters starts with as many rules as a file may have.
func TestAnyNumberOfRulesRegisters(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\ntable: { keys: [pk, sk] }\nentities:\n")
	const each = 40 // counts of one entity
	for i := range (rules.RulesMax + each - 1) / each {
		fmt.Fprintf(&b, "  P%d: { key: { pk: \"P%d#${x}\", sk: T } }\n  S%d: { key: { pk: \"S%d#${x}\", sk: T } }\n", i, i, i, i)
	}
	b.WriteString("rules:\n")
	for i := range rules.RulesMax {
		fmt.Fprintf(&b, "  r%d: { count: S%d, as: P%d.c%d }\n", i, i/each, i/each, i)
	}
	w := newWorld(t, b.String())
	w.put(change.Item{"pk": s("P12#1"), "sk": s("T")})
	w.put(change.Item{"pk": s("S12#1"), "sk": s("T")})
	w.drain(w.seeded(), 0)
	w.expect(change.Key{Partition: "P12#1", Sort: "T"}, "c499", change.Number("1"))
	w.expectNoDrift()
}

// TestAParentWithAKeyThatNoChildCanHaveHoldsUpNothing renames a parent whose children's
// sort keys would begin with more bytes than DynamoDB stores.
func TestAParentWithAKeyThatNoChildCanHaveHoldsUpNothing(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Folder: { key: { pk: "SITE#${site}", sk: "F#${path}" } }
  Page:   { key: { pk: "SITE#${site}", sk: "PAGE#${path}#${page}" } }
  Team:   { key: { pk: "T#${team}", sk: META } }
  Member: { key: { pk: "TEAM-MEMBERS#${team}", sk: "${user}" } }
rules:
  title:  { copy: title, from: Folder, to: Page }
  team:   { copy: title as team, from: Team, to: Member }
  pages:  { count: Page, as: Folder.pages }
`)
	e := w.seeded()
	long := strings.Repeat("p", table.SortBytesMax-2)
	wide := strings.Repeat("t", table.PartitionBytesMax-2)
	w.put(change.Item{"pk": s("SITE#1"), "sk": s("F#" + long), "title": s("A")})
	w.put(change.Item{"pk": s("T#" + wide), "sk": s("META"), "title": s("A")})
	w.put(change.Item{"pk": s("SITE#1"), "sk": s("F#x"), "title": s("X")})
	w.put(change.Item{"pk": s("SITE#1"), "sk": s("PAGE#x#1")})
	from := w.drain(e, 0)
	w.update(change.Key{Partition: "SITE#1", Sort: "F#" + long}, change.Item{"title": s("B")})
	w.update(change.Key{Partition: "T#" + wide, Sort: "META"}, change.Item{"title": s("B")})
	w.drain(e, from)
	page := change.Key{Partition: "SITE#1", Sort: "PAGE#x#1"}
	w.expect(page, "title", s("X"))
	w.expect(change.Key{Partition: "SITE#1", Sort: "F#x"}, "pages", change.Number("1"))
	if err := e.Rederive(w.ctx, []change.Key{{Partition: "SITE#1", Sort: "F#" + long}, {Partition: "T#" + wide, Sort: "META"}}); err != nil {
		t.Error(err)
	}
	w.expectParked(e)
}

// full is an item of exactly as many bytes as DynamoDB stores.
func full(it change.Item) change.Item {
	size := 0
	for name, v := range it {
		size += len(name) + v.Size()
	}
	it["blob"] = s(strings.Repeat("x", 400<<10-size-len("blob")))
	return it
}

// likeRules count likes on posts that are found by their unique value.
const likeRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "USER#${user}", sk: "POST#${at}" }, unique: postId }
  Like: { key: { pk: "LIKE#${user}", sk: "POST#${postId}" } }
rules:
  likes: { count: Like, as: Post.likes, by: postId }
`

// TestAFullItemThatLosesItsUniqueValueIsParked has no room for the stamp that hides a count.
func TestAFullItemThatLosesItsUniqueValueIsParked(t *testing.T) {
	ruleFile := likeRules + "  posts: { count: Post, as: User.posts }\n"
	w := newWorld(t, strings.Replace(ruleFile, "  Like:", "  User: { key: { pk: \"USER#${user}\", sk: PROFILE } }\n  Like:", 1))
	w.put(change.Item{"pk": s("USER#1"), "sk": s("PROFILE")})
	loser := change.Key{Partition: "USER#2", Sort: "POST#1"}
	w.put(full(change.Item{"pk": s(loser.Partition), "sk": s(loser.Sort), "postId": s("p")}))
	w.put(change.Item{"pk": s("USER#1"), "sk": s("POST#1"), "postId": s("p")})
	e := w.seeded() // the first scan comes by, too
	w.put(change.Item{"pk": s("LIKE#1"), "sk": s("POST#p")})
	from := w.drain(e, 0)
	w.put(full(change.Item{"pk": s(loser.Partition), "sk": s(loser.Sort), "postId": s("p"), "again": s("x")}))
	w.drain(e, from)
	w.expect(change.Key{Partition: "USER#1", Sort: "POST#1"}, "likes", change.Number("1"))
	w.expect(change.Key{Partition: "USER#1", Sort: "PROFILE"}, "posts", change.Number("1"))
	if got := w.parkedWith(e, "write.rejected"); len(got) != 1 || got[0] != "display:likes/"+loser.String() {
		t.Errorf("parked are %q", got)
	}
	if err := e.Rederive(w.ctx, []change.Key{loser}); err != nil {
		t.Error(err)
	}
}

// TestAnItemWithoutAUniqueValueIsCorrectedOnceARecord has another program write a count on an item that displays none.
func TestAnItemWithoutAUniqueValueIsCorrectedOnceARecord(t *testing.T) {
	w := newWorld(t, likeRules)
	e := w.seeded()
	post := change.Key{Partition: "USER#1", Sort: "POST#1"}
	w.put(change.Item{"pk": s(post.Partition), "sk": s(post.Sort)})
	from := w.drain(e, 0)
	for i := range 3 {
		w.update(post, change.Item{"likes": change.Number("99")})
		from = w.drain(e, from)
		w.expect(post, "likes", change.Value{})
		if heals := e.Stats().Heals; heals != int64(i+1) {
			t.Errorf("%d corrections after %d records", heals, i+1)
		}
	}
}

// TestAMoveLargerThanATransactionGoesInSteps mirrors an item of 390 KB 24 times.
func TestAMoveLargerThanATransactionGoesInSteps(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\ntable: { keys: [pk] }\nentities:\n  A: { key: { pk: \"A#${x}\" } }\n  N: { key: { pk: \"N#${x}\" } }\n")
	for i := range 24 {
		fmt.Fprintf(&b, "  M%d: { key: { pk: \"M%d#${x}\" } }\n", i, i)
	}
	b.WriteString("rules:\n  n: { count: A, as: N.n }\n")
	for i := range 24 {
		fmt.Fprintf(&b, "  m%d: { mirror: A, as: M%d, attributes: [blob] }\n", i, i)
	}
	w := newWorld(t, b.String())
	e := w.seeded()
	w.put(change.Item{"pk": s("N#1")})
	from := 0
	for _, letter := range []string{"a", "b"} {
		w.put(change.Item{"pk": s("A#1"), "blob": s(strings.Repeat(letter, 390<<10))})
		from = w.drain(e, from)
		for i := range 24 {
			w.expect(change.Key{Partition: fmt.Sprintf("M%d#1", i)}, "blob", s(strings.Repeat(letter, 390<<10)))
		}
		w.expect(change.Key{Partition: "N#1"}, "n", change.Number("1"))
	}
	w.expectTrue()
	for i := range 24 {
		w.delete(change.Key{Partition: fmt.Sprintf("M%d#1", i)})
	}
	if err := e.Rederive(w.ctx, []change.Key{{Partition: "A#1"}}); err != nil {
		t.Fatal(err)
	}
	w.expectTrue()
	w.delete(change.Key{Partition: "A#1"})
	w.drain(e, from)
	w.expectTrue()
}

// TestAnAmountWhoseDifferenceDoesNotFitIsCorrected takes two steps, through no contribution at all.
func TestAnAmountWhoseDifferenceDoesNotFitIsCorrected(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk] }
entities:
  Line:  { key: { pk: "LINE#${order}#${line}" } }
  Order: { key: { pk: "ORDER#${order}" } }
rules:
  total: { sum: price, of: Line, as: Order.total }
`)
	e := w.seeded()
	order := change.Key{Partition: "ORDER#1"}
	w.put(change.Item{"pk": s("ORDER#1")})
	from := 0
	for _, price := range []string{"1e40", "2.5", "1e-125", "-1e125", "12345678901234567890123456789012345678", "0", "7"} {
		w.put(change.Item{"pk": s("LINE#1#1"), "price": change.Number(price)})
		from = w.drain(e, from)
		got, err := decimal.Parse(w.get(order)["total"].Text())
		if want, _ := decimal.Parse(price); err != nil || got.String() != want.String() {
			t.Errorf("the total is %v, want %v (%v)", got, want, err)
		}
		w.expectParked(e)
		w.expectTrue()
	}
}

// TestALikeWritesOneOfManyWithTheSameUniqueValue counts the writes that a like, and
// another item with the value, cost where many items have it.
func TestALikeWritesOneOfManyWithTheSameUniqueValue(t *testing.T) {
	const losers = 300
	w := newWorld(t, likeRules)
	e := w.seeded()
	putPost := func(user string) change.Key {
		key := change.Key{Partition: "USER#" + user, Sort: "POST#1"}
		w.put(change.Item{"pk": s(key.Partition), "sk": s(key.Sort), "postId": s("p")})
		return key
	}
	from := 0
	for i := range losers {
		putPost(fmt.Sprintf("b%03d", i))
		from = w.drain(e, from)
	}
	writes := func(do func()) int64 {
		before := e.Stats().Writes
		do()
		from = w.drain(e, from)
		return e.Stats().Writes - before
	}
	for i := range 3 {
		if n := writes(func() { w.put(change.Item{"pk": s(fmt.Sprintf("LIKE#%d", i)), "sk": s("POST#p")}) }); n > 3 {
			t.Errorf("like %d takes %d writes", i, n)
		}
	}
	w.expect(change.Key{Partition: "USER#b000", Sort: "POST#1"}, "likes", change.Number("3"))
	var first change.Key
	if n := writes(func() { first = putPost("a") }); n > 6 { // it takes the count over from b000
		t.Errorf("an item that comes before all others takes %d writes", n)
	}
	w.expect(first, "likes", change.Number("3"))
	w.expect(change.Key{Partition: "USER#b000", Sort: "POST#1"}, "likes", change.Value{})
	w.expectTrue()
}

// TestAccumulatorsThatCancelEachOtherLeaveRoom has one worker count an amount, and another,
// with another write suffix, take it off: both accumulators hold digits, their sum none.
func TestAccumulatorsThatCancelEachOtherLeaveRoom(t *testing.T) {
	const ruleFile = `
version: 1
table: { keys: [pk] }
entities:
  Line:  { key: { pk: "LINE#${order}#${line}" } }
  Order: { key: { pk: "ORDER#${order}" } }
rules:
  total: { sum: price, of: Line, as: Order.total, write_shards: 2 }
`
	w := newWorld(t, ruleFile)
	var workers [2]*Engine
	for i := 0; workers[0] == nil || workers[1] == nil; i++ {
		name := fmt.Sprint("worker-", i)
		e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, ruleFile), Worker: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		workers[workerSuffix(name)%2] = e
	}
	w.put(change.Item{"pk": s("ORDER#1")})
	w.put(change.Item{"pk": s("LINE#1#1"), "price": change.Number("2.5")})
	from := w.drain(workers[0], 0)
	w.delete(change.Key{Partition: "LINE#1#1"})
	from = w.drain(workers[1], from)
	w.put(change.Item{"pk": s("LINE#1#2"), "price": change.Number("1e40")})
	w.drain(workers[0], from)
	w.expectParked(workers[0])
	w.expectTrue()
}
