package projections

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// fought is a world with one post of tag a, its engine, which corrects another program so often, and the count of records that are applied.
func fought(t *testing.T, rules string, healsMax int) (w *world, e *Engine, n int) {
	t.Helper()
	w = newWorld(t, rules)
	w.put(taggedPost("p1", "a", number("3")))
	w.seeded()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: w.set, HealsMax: healsMax})
	if err != nil {
		t.Fatal(err)
	}
	return w, e, w.drain(e, 0)
}

// TestFightOverOneRuleLeavesOtherRulesOfItem has another program overwrite one attribute again and again, at last right before
// a change of what the item's other rule shows.
func TestFightOverOneRuleLeavesOtherRulesOfItem(t *testing.T) {
	w, e, n := fought(t, tagRules, 2)
	expect := func(posts, likes string) {
		t.Helper()
		if it := w.get(tagA); it["posts"].Text() != posts || it["likes"].Text() != likes {
			t.Fatalf("posts is %q and likes is %q, want %s and %s", it["posts"].Text(), it["likes"].Text(), posts, likes)
		}
	}
	for i := range 4 {
		w.update(tagA, change.Item{"posts": number("77")})
		n = w.drain(e, n)
		expect(map[bool]string{true: "1", false: "77"}[i < 2], "3")
	}
	w.put(taggedPost("p1", "a", number("8")))
	w.update(tagA, change.Item{"posts": number("78")})
	n = w.drain(e, n)
	expect("78", "8")
	if got := w.parkedWith(e, "heal.contested"); len(got) != 1 || got[0] != "display:posts/"+tagA.String() {
		t.Errorf("parked: %q", got)
	}
	w.put(change.Item{"pk": s("TAG#a"), "sk": s("METADATA"), "kind": s("Other")})
	n = w.drain(e, n)
	expect("1", "8") // the other rules have their own bounds
	w.update(tagA, change.Item{"posts": number("79")})
	w.delete(change.Key{Partition: "POST#p1", Sort: "METADATA"})
	w.drain(e, n)
	if it := w.get(tagA); it != nil {
		t.Errorf("the item has no members, and is still there: %v", it)
	}
}

// TestExpiredItemStaysAwayAfterAFight has DynamoDB's time to live delete an item right after another program overwrote it once too often.
func TestExpiredItemStaysAwayAfterAFight(t *testing.T) {
	w, e, n := fought(t, strings.Replace(tagRules, "derived: true", "derived: true, expire: 90d, expire_attribute: until", 1), 1)
	w.update(tagA, change.Item{"posts": number("77")})
	n = w.drain(e, n)
	w.update(tagA, change.Item{"posts": number("78")})
	w.delete(tagA)
	records := w.records()
	records[len(records)-1].Expired = true
	if _, err := e.Process(w.ctx, records[n:]); err != nil {
		t.Fatal(err)
	}
	if err := e.Rederive(w.ctx, []change.Key{{Partition: "POST#p1", Sort: "METADATA"}}); err != nil {
		t.Fatal(err)
	}
	if it := w.get(tagA); it != nil {
		t.Errorf("the expired item is back: %v", it)
	}
}

// TestItemThatComesAndGoesIsNoFight has a post leave its tag and come back. The worker reads of the post's return before it reads that it
// has deleted the tag's item itself.
func TestItemThatComesAndGoesIsNoFight(t *testing.T) {
	w, e, n := fought(t, tagRules, 2)
	process := func(from, to int) {
		t.Helper()
		if _, err := e.Process(w.ctx, w.records()[from:to]); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		w.put(taggedPost("p1", "", number("3")))
		process(n, n+1)
		own := len(w.records())
		if last := w.records()[own-1]; last.Key != tagA || last.New != nil {
			t.Fatalf("the last record is of %s", last.Key)
		}
		w.put(taggedPost("p1", "a", number("3")))
		process(own, own+1)
		together := len(w.records())
		w.put(taggedPost("p1", "", number("3"))) // and once in the batch of the record that it was deleted
		process(together, together+1)
		w.put(taggedPost("p1", "a", number("3")))
		n = w.drain(e, n+1)
		w.expect(tagA, "posts", number("1"))
	}
	for range 4 { // deletion and return of the item in one batch, with a change of its source that was applied before
		w.put(taggedPost("p1", "", number("3")))
		process(n, n+1)
		gone := len(w.records())
		w.put(taggedPost("p1", "a", number("3")))
		process(gone, gone+1)
		back := len(w.records())
		w.put(taggedPost("p2", "a", number("3")))
		process(back, back+1)
		process(gone-1, back)
		w.put(taggedPost("p2", "", number("3")))
		n = w.drain(e, back)
	}
	w.expectParked(e)
	w.expectRight()
}
