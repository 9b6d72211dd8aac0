package projections

import (
	"testing"
	"testing/synctest"

	"github.com/dynamill/dynamill/change"
)

// expectNoHeals checks that no write of the engine's own counted as a correction.
func (w *world) expectNoHeals(e *Engine) {
	w.t.Helper()
	if n := e.Stats().Heals; n > 0 {
		w.t.Errorf("%d corrections were counted", n)
	}
}

func TestOwnReleaseIsNoCorrection(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("card"), "number": s("4242")})
		from := w.togglePost(e, 0)
		w.putPost("A", nil)
		w.drain(e, from)
		w.expectNoHeals(e)
		w.expectParked(e)
	})
}

// togglePost shows and hides the post more often than corrections are allowed.
func (w *world) togglePost(e *Engine, from int) int {
	for range 30 {
		w.putPost("A", nil)
		from = w.drain(e, from)
		w.putPost("A", change.Item{"hidden": change.Bool(true)})
		from = w.drain(e, from)
	}
	return from
}

// The engine makes the mirror item and deletes it, again and again.
func TestOwnDeletionIsNoCorrection(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		w.togglePost(e, 0)
		w.expectNoHeals(e)
		w.expectParked(e)
	})
}

// Each second batch holds the deletion of the source and its insertion.
func TestSourceToggledInOneBatch(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		from := 0
		for range 30 {
			w.putPost("A", nil)
			from = w.drain(e, from)
			w.delete(post)
			w.putPost("B", nil)
			from = w.drain(e, from)
			w.delete(post)
			from = w.drain(e, from)
		}
		w.expectNoHeals(e)
		w.expectParked(e)
	})
}

// occupied flapping
func TestOccupiedPlaceThatComesAndGoes(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		from := 0
		w.putPost("A", nil)
		for range 30 {
			w.put(change.Item{"pk": s(card.Partition), "sk": s(card.Sort), "kind": s("credit")})
			from = w.drain(e, from)
			w.delete(card)
			from = w.drain(e, from)
		}
		all, _ := e.Parked(w.ctx)
		for _, p := range all {
			t.Log(p.ID, p.Code)
		}
	})
}

// expiry: the mirror item expires again and again as its source changes
func TestExpiryIsNoCorrection(t *testing.T) {
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		from := 0
		for i := range 30 {
			w.putPost(string(rune('A'+i)), change.Item{"expiresAt": change.Number("1700000000")})
			from = w.drain(e, from)
			w.expire(card)
			from = w.drain(e, from)
		}
		w.expectNoHeals(e)
		w.expectParked(e)
		w.putPost("zz", change.Item{"expiresAt": change.Number("1700000000")})
		from = w.drain(e, from)
		w.expect(card, "title", s("zz"))
		w.expire(card)
		w.drain(e, from)
		if err := e.Rederive(w.ctx, []change.Key{post}); err != nil {
			t.Fatal(err)
		}
		if w.get(card) != nil {
			t.Error("an expired item came back")
		}
	})
}

func TestDuplicateOfAWholeRefusalIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${id}", sk: META } }
  Card: { key: { pk: "CARD#${slug}", sk: META } }
  User: { key: { pk: "USER#${user}", sk: META } }
rules:
  n:     { count: Post, as: User.n, by: user }
  cards: { mirror: Post, as: Card, by: slug, attributes: [title] }
`)
		n := 0
		e := w.engine(wholly{w.sim, "CARD#bad", &n})
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		w.put(change.Item{"pk": s("POST#1"), "sk": s("META"), "user": s("u"), "slug": s("bad"), "title": s("t")})
		w.drain(e, 0)
		w.expectParked(e, "cards/POST#1/META")
		for i := range 2 {
			done, err := e.Process(w.ctx, w.records()[:1])
			if err != nil {
				t.Error(i, done, err)
			}
		}
	})
}
