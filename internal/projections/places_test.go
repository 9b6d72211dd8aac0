package projections

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
)

// Each rule set mirrors posts into Cards: by a key that determines the post, and by one that does not.
const (
	oneCardRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${id}", sk: META } }
  Card: { key: { pk: "CARD#${id}", sk: META }, match: { kind: card } }
rules:
  cards: { mirror: Post, as: Card, attributes: [title, text, expiresAt], where: hidden != true }
`
	sharedCardRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${id}", sk: META } }
  Card: { key: { pk: "CARD#${slug}", sk: META }, match: { kind: card } }
rules:
  cards: { mirror: Post, as: Card, by: slug, attributes: [title, text, expiresAt], where: hidden != true }
`
)

var (
	post = change.Key{Partition: "POST#1", Sort: "META"}
	card = change.Key{Partition: "CARD#1", Sort: "META"}
)

// eachCard runs a test under both rule sets.
func eachCard(t *testing.T, do func(t *testing.T, w *world, e *Engine)) {
	for name, ruleFile := range map[string]string{"one source": oneCardRules, "claims": sharedCardRules} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ruleFile)
			do(t, w, w.seeded())
		})
	}
}

func (w *world) putPost(title string, more change.Item) {
	it := change.Item{"pk": s(post.Partition), "sk": s(post.Sort), "slug": s("1"), "title": s(title), "text": s("from the post")}
	for name, v := range more {
		it[name] = v
	}
	w.put(it)
}

// expectOnly checks a whole item, stamps aside.
func (w *world) expectOnly(key change.Key, want change.Item) {
	w.t.Helper()
	got := w.get(key)
	for name := range got {
		if _, ok := want[name]; !ok && name != "pk" && name != "sk" && !strings.HasPrefix(name, StampPrefix) {
			w.t.Errorf("%s holds %s: %v", key, name, got[name])
		}
	}
	for name, v := range want {
		if !got[name].Equal(v) {
			w.t.Errorf("%s of %s is %v, want %v", name, key, got[name], v)
		}
	}
	if want == nil && got != nil {
		w.t.Errorf("%s is there: %v", key, got)
	}
}

func (w *world) expectUnstamped(key change.Key) {
	w.t.Helper()
	for name := range w.get(key) {
		if strings.HasPrefix(name, "_dm") {
			w.t.Errorf("%s carries %s", key, name)
		}
	}
}

const occupiedID = "cards/CARD#1/META"

func TestOccupiedPlaceIsLeftAloneAndParked(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		own := change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("credit"), "title": s("own"), "number": s("4242")}
		w.put(own)
		w.putPost("A", nil)
		from := w.drain(e, 0)
		check := func() {
			t.Helper()
			w.expectOnly(card, change.Item{"kind": s("credit"), "title": s("own"), "number": s("4242")})
			w.expectUnstamped(card)
			parked := w.expectParked(e, occupiedID)
			if len(parked) == 1 && parked[0].Code != "mirror.occupied" {
				t.Errorf("parked as %+v", parked)
			}
		}
		check()
		w.putPost("B", nil)
		w.update(card, change.Item{"title": s("mine"), "text": s("mine")})
		w.update(card, change.Item{"title": s("own"), "text": {}})
		from = w.drain(e, from)
		check()
		if err := e.Rederive(w.ctx, []change.Key{post, card}); err != nil {
			t.Fatal(err)
		}
		if err := e.RetryParked(w.ctx, parkedID(occupiedID)); err != nil {
			t.Fatal(err)
		}
		check()
		w.expectTrue()

		w.delete(post) // the source goes: nothing is parked any more, and the item stands
		from = w.drain(e, from)
		w.expectParked(e)
		w.expectOnly(card, change.Item{"kind": s("credit"), "title": s("own"), "number": s("4242")})
		w.expectTrue()
		w.putPost("C", nil)
		from = w.drain(e, from)
		check()

		w.expire(card) // the place becomes free, by time to live this time
		w.drain(e, from)
		w.expectParked(e)
		w.expectOnly(card, change.Item{"kind": s("card"), "title": s("C"), "text": s("from the post"), "_dm": w.get(card)["_dm"]})
		w.expectTrue()
	})
}

func TestPlaceThatBecomesTheTargetsEntityIsAdopted(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("credit"), "number": s("4242")})
		w.putPost("A", nil)
		from := w.drain(e, 0)
		w.expectParked(e, occupiedID)
		w.update(card, change.Item{"kind": s("card")})
		from = w.drain(e, from)
		w.expectParked(e)
		w.expectOnly(card, change.Item{"kind": s("card"), "title": s("A"), "text": s("from the post"), "number": s("4242")})
		w.expectTrue()
		w.update(card, change.Item{"kind": s("credit")}) // and back: only the rule's own goes
		from = w.drain(e, from)
		w.expectParked(e, occupiedID)
		w.expectOnly(card, change.Item{"kind": s("credit"), "number": s("4242")})
		w.expectUnstamped(card)
		w.expectTrue()
		w.delete(card)
		w.drain(e, from)
		w.expectTrue()
	})
}

// An adopted item becomes one of another entity. In the same write or before, the application overwrites
// or removes one mirrored attribute: that one is the application's, the other is still the rule's.
func TestOverwrittenAttributeStaysOnBecomingAnotherEntity(t *testing.T) {
	for name, writes := range map[string][]change.Item{
		"in one write":    {{"kind": s("credit"), "title": s("own")}},
		"before":          {{"title": s("own")}, {"kind": s("credit")}},
		"removed with it": {{"kind": s("credit"), "title": {}}},
	} {
		for _, byScan := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by a scan: %v", name, byScan), func(t *testing.T) {
				eachCard(t, func(t *testing.T, w *world, e *Engine) {
					w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("card"), "number": s("4242")})
					w.putPost("A", nil)
					from := w.drain(e, 0)
					own := change.Item{"kind": s("credit"), "number": s("4242")}
					for _, write := range writes {
						w.update(card, write)
						if title := write["title"]; title.Kind() != change.KindAbsent {
							own["title"] = title
						}
					}
					if byScan { // before the record comes
						if err := e.Rederive(w.ctx, []change.Key{post, card}); err != nil {
							t.Fatal(err)
						}
					}
					w.drain(e, from)
					w.expectOnly(card, own)
					w.expectUnstamped(card)
					w.expectParked(e, occupiedID)
					w.expectTrue()
				})
			})
		}
	}
}

func TestAdoptedItemIsNeverDeleted(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("card"), "number": s("4242"), "title": s("mine")})
		w.putPost("A", nil)
		from := w.drain(e, 0)
		w.expectOnly(card, change.Item{"kind": s("card"), "title": s("A"), "text": s("from the post"), "number": s("4242")})
		w.putPost("B", nil)
		from = w.drain(e, from)
		w.expectOnly(card, change.Item{"kind": s("card"), "title": s("B"), "text": s("from the post"), "number": s("4242")})
		w.expectTrue()
		w.putPost("B", change.Item{"hidden": change.Bool(true)})
		from = w.drain(e, from)
		w.expectOnly(card, change.Item{"kind": s("card"), "number": s("4242")})
		w.expectUnstamped(card)
		w.expectTrue()
		w.putPost("C", nil)
		from = w.drain(e, from)
		w.delete(post)
		w.drain(e, from)
		w.expectOnly(card, change.Item{"kind": s("card"), "number": s("4242")})
		w.expectUnstamped(card)
		w.expectTrue()
	})
}

// TestItemPutOverAMirrorItemIsTheApplications replaces a mirror item that the engine made.
func TestItemPutOverAMirrorItemIsTheApplications(t *testing.T) {
	for _, kind := range []string{"card", "credit"} {
		t.Run(kind, func(t *testing.T) {
			eachCard(t, func(t *testing.T, w *world, e *Engine) {
				w.putPost("A", nil)
				from := w.drain(e, 0)
				w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s(kind), "number": s("4242")})
				from = w.drain(e, from)
				w.expectTrue()
				w.delete(post)
				w.drain(e, from)
				w.expectOnly(card, change.Item{"kind": s(kind), "number": s("4242")})
				w.expectUnstamped(card)
				w.expectParked(e)
				w.expectTrue()
			})
		})
	}
}

func TestMirrorItemIsMadeAgainAfterTheStateTableWasLost(t *testing.T) {
	w := newWorld(t, oneCardRules)
	w.putPost("A", nil)
	from := w.drain(w.seeded(), 0)
	e := w.loseState(oneCardRules)
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.delete(post)
	w.drain(e, from)
	if got := w.get(card); got != nil {
		t.Errorf("the item that the engine made under the lost state table stays: %v", got)
	}
}

// TestDroppedRuleLeavesAdoptedItems removes the rule from the file, and then the entity, too.
func TestDroppedRuleLeavesAdoptedItems(t *testing.T) {
	const other = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${id}", sk: META } }
  Site: { key: { pk: "SITE#${site}", sk: META } }
rules:
  posts: { count: Post, as: Site.posts, by: site }
`
	withCard := strings.Replace(other, "  Site:", "  Card: { key: { pk: \"CARD#${id}\", sk: META }, match: { kind: card } }\n  Site:", 1)
	for _, file := range []string{other, withCard} {
		for _, rules := range []string{oneCardRules, sharedCardRules} {
			w := newWorld(t, rules)
			w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("card"), "number": s("4242")})
			w.putPost("A", nil)
			w.put(change.Item{"pk": s("POST#2"), "sk": s("META"), "slug": s("2"), "title": s("B")})
			from := w.drain(w.seeded(), 0)
			e := w.changing(file, nil)
			w.replay(e)
			w.drain(e, from)
			w.expectOnly(card, change.Item{"kind": s("card"), "number": s("4242")})
			w.expectUnstamped(card)
			w.expectOnly(change.Key{Partition: "CARD#2", Sort: "META"}, nil)
			w.expectTrue()
		}
	}
}

// expire has DynamoDB's time to live delete an item.
func (w *world) expire(key change.Key) {
	w.t.Helper()
	w.delete(key)
	all := w.records()
	all[len(all)-1].Expired = true
}

func TestExpiredMirrorItemStaysAwayUntilItsSourceChanges(t *testing.T) {
	past := change.Item{"expiresAt": change.Number("1700000000")}
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		w.putPost("A", past)
		from := w.drain(e, 0)
		w.expire(card) // its source would go later
		writes := e.Stats().Made
		from = w.drain(e, from)
		if got := w.get(card); got != nil || e.Stats().Made != writes {
			t.Fatalf("it was written back: %v", got)
		}
		if err := e.Rederive(w.ctx, []change.Key{post, card}); err != nil {
			t.Fatal(err)
		}
		all := w.records() // redelivered
		if _, err := e.Process(w.ctx, all[slices.IndexFunc(all, func(r change.Record) bool { return r.Expired }):]); err != nil {
			t.Fatal(err)
		}
		if got := w.get(card); got != nil {
			t.Fatalf("it was written back: %v", got)
		}
		w.putPost("B", past)
		from = w.drain(e, from)
		w.expect(card, "title", s("B"))
		w.delete(card) // by the application: that is healed, as ever
		from = w.drain(e, from)
		w.expect(card, "title", s("B"))
		w.expectTrue()
		w.delete(post)
		w.drain(e, from)
		if got := w.get(card); got != nil {
			t.Errorf("it outlives its source: %v", got)
		}
		w.expectTrue()
	})
}

// TestExpiryOfAnItemThatIsThereAgainIsOver delivers the record of an expiry alone, after the item's source has changed.
func TestExpiryOfAnItemThatIsThereAgainIsOver(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		w.putPost("A", nil)
		expiry := w.drain(e, 0)
		w.expire(card)
		from := w.drain(e, expiry)
		w.putPost("B", nil)
		w.drain(e, from)
		began := time.Now()
		done, err := e.Process(w.ctx, w.records()[expiry:expiry+1])
		if err != nil || done != 1 || time.Since(began) > time.Second {
			t.Errorf("%d records are done after %v: %v", done, time.Since(began), err)
		}
		w.expect(card, "title", s("B"))
		w.expectTrue()
	})
}

// TestExpiryIsNotedAlthoughTheEntryMovesMeanwhile has another worker apply a change of the source, for another rule, right before an
// expiry is noted.
func TestExpiryIsNotedAlthoughTheEntryMovesMeanwhile(t *testing.T) {
	w := newWorld(t, `version: 1
table: { keys: [pk, sk] }
entities:
  User: { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Page: { key: { pk: "PAGE#${postId}", sk: "METADATA" } }
rules:
  pages: { mirror: Post, as: Page, attributes: [title] }
  posts: { count: Post, as: User.posts, by: userId }
`)
	page := change.Key{Partition: "PAGE#p", Sort: "METADATA"}
	put := func(user string) {
		w.put(change.Item{"pk": s("POST#p"), "sk": s("METADATA"), "title": s("A"), "userId": s(user)})
	}
	put("ann")
	other := w.seeded()
	from := w.drain(other, 0)
	w.expire(page)
	f := &faulty{Client: w.sim, around: passAll}
	e := w.engine(f)
	moved := false
	f.around = func(op string, pass func() error) error {
		if op == "TransactWriteItems" && !moved {
			moved = true
			put("eve")
			all := w.records()
			if _, err := other.Process(w.ctx, all[len(all)-1:]); err != nil {
				t.Error(err)
			}
		}
		return pass()
	}
	if _, err := e.Process(w.ctx, w.records()[from:from+1]); err != nil || !moved {
		t.Fatalf("moved: %t, %v", moved, err)
	}
	w.drain(other, from+1)
	if err := other.Rederive(w.ctx, []change.Key{{Partition: "POST#p", Sort: "METADATA"}}); err != nil {
		t.Fatal(err)
	}
	if it := w.get(page); it != nil {
		t.Errorf("the item that expired is back: %v", it)
	}
}

// The application may put back the mirror item that it put another item over, with
// the engine's marks. What is parked on the place is cleared, by the record or by a replay.
func TestMirrorItemPutBackClearsTheOccupiedPlace(t *testing.T) {
	for _, lost := range []bool{false, true} {
		eachCard(t, func(t *testing.T, w *world, e *Engine) {
			w.putPost("A", nil)
			from := w.drain(e, 0)
			made := w.get(card)
			w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("credit")})
			from = w.drain(e, from)
			w.expectParked(e, occupiedID)
			w.put(made)
			if lost {
				if err := e.Rederive(w.ctx, []change.Key{post, card}); err != nil {
					t.Fatal(err)
				}
			} else {
				w.drain(e, from)
			}
			w.expectParked(e)
			w.expectOnly(card, change.Item{"kind": s("card"), "title": s("A"), "text": s("from the post"), "_dm": made["_dm"]})
		})
	}
}
