package projections

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

// A number key drops the zeros that a string key keeps: 0001 and 1 are two strings and one
// number, so a number does not determine the string that it is joined with.

func TestAPaddedNumberIsMirroredToANumberKey(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, n] }
entities:
  Line:    { key: { pk: "ORDER#${orderId}#${seq}", n: "${zero}" } }
  ByOrder: { key: { pk: "BYORDER#${orderId}#${zero}", n: "${seq}" } }
rules:
  lines: { mirror: Line, as: ByOrder, attributes: [text] }
`)
	e := w.seeded()
	mirror := change.Key{Partition: "BYORDER#o1#0", Sort: "1"}
	w.put(change.Item{"pk": s("ORDER#o1#0001"), "n": change.Number("0"), "text": s("x")})
	from := w.drain(e, 0)
	w.expect(mirror, "text", s("x"))
	w.put(change.Item{"pk": s("ORDER#o1#1"), "n": change.Number("0"), "text": s("y")}) // asks for the same mirror item
	from = w.drain(e, from)
	w.expect(mirror, "text", s("x"))
	w.delete(change.Key{Partition: "ORDER#o1#0001", Sort: "0"})
	w.drain(e, from)
	w.expect(mirror, "text", s("y"))
	w.expectParked(e)
	w.expectNoDrift()
}

func TestACopyReachesAChildThatPadsItsParentsNumber(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, n] }
entities:
  Post: { key: { pk: "FORUM#${f}", n: "${seq}" } }
  Line: { key: { pk: "POST#${seq}#${f}", n: "${line}" } }
rules:
  linet: { copy: title as t, from: Post, to: Line }
`)
	e := w.seeded()
	child := change.Key{Partition: "POST#0001#a", Sort: "7"}
	w.put(change.Item{"pk": s(child.Partition), "n": change.Number("7")})
	w.put(change.Item{"pk": s("FORUM#a"), "n": change.Number("1"), "title": s("A")})
	from := w.drain(e, 0)
	w.expect(child, "t", s("A"))
	w.put(change.Item{"pk": s("FORUM#a"), "n": change.Number("1"), "title": s("B")})
	w.drain(e, from)
	w.expect(child, "t", s("B"))
	w.expectNoDrift()
}
