package projections

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

// TestAnItemThatBecomesAnotherEntityLosesWhatTheFormerOnesRulesWrote changes an item in place.
func TestAnItemThatBecomesAnotherEntityLosesWhatTheFormerOnesRulesWrote(t *testing.T) {
	doc := change.Key{Partition: "DOC#d1"}
	for name, step := range map[string]struct {
		with                  change.Item
		ownerName, authorName change.Value
	}{
		"to one with a rule of its own":     {change.Item{"kind": s("note")}, change.Value{}, s("Ann")},
		"to none":                           {change.Item{"kind": s("other")}, change.Value{}, change.Value{}},
		"after its owner became unreadable": {change.Item{"kind": s("note"), "ownerId": s("a#b")}, change.Value{}, change.Value{}},
		"with a value of its own":           {change.Item{"kind": s("other"), "ownerName": s("Zoe")}, s("Zoe"), change.Value{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, oddRules)
			w.put(change.Item{"pk": s("OWNER#o1"), "name": s("Ann")})
			w.put(change.Item{"pk": s("DOC#d1"), "kind": s("doc"), "ownerId": s("o1")})
			e := w.seeded()
			from := w.drain(e, 0)
			w.expect(doc, "ownerName", s("Ann"))
			w.update(doc, step.with)
			w.drain(e, from)
			w.expect(doc, "ownerName", step.ownerName)
			w.expect(doc, "authorName", step.authorName)
			w.expect(doc, stampOf("owner-name"), change.Value{})
			w.expectNoDrift()
			w.drain(e, 0) // once more
			w.expect(doc, "authorName", step.authorName)
			w.expect(doc, stampOf("owner-name"), change.Value{})
		})
	}
}

// TestWhatTheApplicationWritesOnAnItemThatChangedItsEntityIsLeft writes there before the first record is applied.
func TestWhatTheApplicationWritesOnAnItemThatChangedItsEntityIsLeft(t *testing.T) {
	doc := change.Key{Partition: "DOC#d1"}
	w := newWorld(t, oddRules)
	w.put(change.Item{"pk": s("OWNER#o1"), "name": s("Ann")})
	w.put(change.Item{"pk": s("DOC#d1"), "kind": s("doc"), "ownerId": s("o1")})
	e := w.seeded()
	from := w.drain(e, 0)
	w.update(doc, change.Item{"kind": s("other")})
	w.update(doc, change.Item{"ownerName": s("Zoe")})
	w.drain(e, from)
	w.expect(doc, "ownerName", s("Zoe"))
	w.expect(doc, stampOf("owner-name"), change.Value{})
}
