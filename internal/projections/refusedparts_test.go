package projections

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// Several elements of one item add to one accumulator, in one write. What DynamoDB refuses of them is one element, or several.

const partRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Reaction: { key: { pk: "POST#${postId}", sk: "BY#${userId}" } }
  Album:    { key: { pk: "ALBUM#${albumId}", sk: "METADATA" } }
rules:
  length:   { sum: part, of: Reaction, each: parts as part, as: Album.length, by: { albumId: album } }
`

// longTagRules count tags of up to 256 bytes: an accumulator holds about 700 of them.
const longTagRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Reaction: { key: { pk: "POST#${postId}", sk: "BY#${userId}" } }
  Album:    { key: { pk: "ALBUM#${albumId}", sk: "METADATA" } }
rules:
  by-tag:   { count: Reaction, each: tags as tag, as: Album.tags, by: { albumId: album }, per: tag, write_shards: 1 }
`

func numbers(texts ...string) change.Value {
	var all []change.Value
	for _, text := range texts {
		all = append(all, change.Number(text))
	}
	return change.List(all)
}

// longTags are 100 tags of 255 bytes, others for each n.
func longTags(n int) (tags []string) {
	for i := range 100 {
		tags = append(tags, fmt.Sprintf("%05d", n*100+i)+strings.Repeat("x", 250))
	}
	return tags
}

// parkedCodes are the codes of what is parked, each once.
func (w *world) parkedCodes(e *Engine) (codes []string) {
	w.t.Helper()
	parked, err := e.Parked(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range parked {
		codes = append(codes, p.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func (w *world) expectCodes(e *Engine, codes ...string) {
	w.t.Helper()
	if got := w.parkedCodes(e); !slices.Equal(got, codes) {
		w.t.Errorf("parked are %q, want %q", got, codes)
	}
}

// fullAlbum has a sum of 38 digits: it takes whole numbers only.
func fullAlbum(t *testing.T) (w *world, e *Engine, at int) {
	w = newWorld(t, partRules)
	w.put(change.Item{"pk": s(album.Partition), "sk": s(album.Sort)})
	e = w.seeded()
	w.react("1", change.Item{"parts": numbers("12345678901234567890123456789012345000")})
	return w, e, w.drain(e, 0)
}

func TestOfSeveralElementsTheRefusedOneIsParked(t *testing.T) {
	w, e, n := fullAlbum(t)
	w.react("2", change.Item{"parts": numbers("1", "2.5")}) // the sum with 1 has 38 digits, that with 2.5 has 39
	w.drain(e, n)
	w.expect(album, "length", number("12345678901234567890123456789012345001"))
	w.expectCodes(e, "number.overflow")
}

func TestManyRefusedElementsDoNotStopTheStream(t *testing.T) {
	w, e, n := fullAlbum(t)
	var parts []string
	for i := range 45 {
		parts = append(parts, fmt.Sprintf("%d.01", i))
	}
	w.react("2", change.Item{"parts": numbers(parts...)})
	w.react("3", change.Item{"parts": numbers("7")})
	w.drain(e, n)
	w.expect(album, "length", number("12345678901234567890123456789012345007"))
	w.expectCodes(e, "number.overflow")
}

func TestFullAccumulatorsParkWhatTheyCannotHold(t *testing.T) {
	single := strings.Replace(longTagRules, "each: tags as tag, as: Album.tags, by: { albumId: album }, per: tag",
		"as: Album.tags, by: { albumId: album }, per: tag", 1)
	for _, test := range []struct{ name, rules string }{
		{"one value a source, two write suffixes", strings.Replace(single, "shards: 1", "shards: 2", 1)},
		{"elements", longTagRules},
	}[:worldsize.Of(2, 1)] {
		rules := test.rules
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rules)
			w.put(change.Item{"pk": s(album.Partition), "sk": s(album.Sort)})
			e := w.seeded()
			at := 0
			for i := range 18 {
				if rules == longTagRules && i > 8 {
					break
				}
				tags := longTags(i)
				if rules == longTagRules {
					w.react(fmt.Sprint(i), change.Item{"tags": tagged(tags...)})
				} else {
					for j, tag := range tags {
						w.react(fmt.Sprint(i, "-", j), change.Item{"tag": s(tag)})
					}
				}
				at = w.drain(e, at)
			}
			w.expectCodes(e, "per.too_many", "write.rejected")
		})
	}
}

func TestElementsThatNoLedgerEntryHoldsParkTheRule(t *testing.T) {
	w := newWorld(t, elementRules)
	e := w.seeded()
	post := change.Item{"pk": s("POST#p1"), "sk": s("METADATA"), "title": s("T")}
	var tags []string
	for i := range 190 {
		tags = append(tags, fmt.Sprintf("%03d", i)+strings.Repeat("x", 900))
	}
	post["tags"] = tagged(tags...)
	w.put(post)
	at := w.drain(e, 0)
	w.expectCodes(e, "each.too_large")
	post["tags"] = tagged("db")
	w.put(post)
	w.drain(e, at)
	w.expectCodes(e)
}

// TestARefusedElementCostsFewTransactions has one element of 180 refused: steps become small, and large again behind it.
func TestARefusedElementCostsFewTransactions(t *testing.T) {
	w, e, n := fullAlbum(t)
	parts := []string{"0.5"}
	for i := range 179 {
		parts = append(parts, fmt.Sprint(100+i))
	}
	w.react("2", change.Item{"parts": numbers(parts...)})
	before := w.sim.Usage()
	w.drain(e, n)
	if used := w.sim.Usage().Sub(before); used.Requests["TransactWriteItems"] > 40 {
		t.Errorf("%d transactions, %.0f write units", used.Requests["TransactWriteItems"], used.WriteUnits)
	}
	w.expectCodes(e, "number.overflow")
}

// TestAnElementThatFitsBecauseAnotherGoesIsNotParked has 500 take the place of 999. 2.5 fits nowhere.
func TestAnElementThatFitsBecauseAnotherGoesIsNotParked(t *testing.T) {
	w := newWorld(t, partRules)
	w.put(change.Item{"pk": s(album.Partition), "sk": s(album.Sort)})
	e := w.seeded()
	w.react("1", change.Item{"parts": numbers("99999999999999999999999999999999999000")})
	w.react("2", change.Item{"parts": numbers("999")})
	n := w.drain(e, 0)
	w.react("2", change.Item{"parts": numbers("500", "2.5")})
	w.drain(e, n)
	w.expect(album, "length", number("99999999999999999999999999999999999500"))
}

// TestBringingAccumulatorsTogetherMakesWholeRows has the sum under a value move to an accumulator that is not there yet.
func TestBringingAccumulatorsTogetherMakesWholeRows(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Reaction: { key: { pk: "POST#${postId}", sk: "BY#${userId}" } }
  Album:    { key: { pk: "ALBUM#${albumId}", sk: "METADATA" } }
rules:
  weights: { sum: weight, of: Reaction, as: Album.weights, by: { albumId: album }, per: emoji, write_shards: 2 }
`)
	w.perItems()
	e := w.seeded()
	e.suffix = 1
	w.react("huge", change.Item{"emoji": s("like"), "weight": number("12345678901234567890123456789012345678")})
	n := w.drain(e, 0)
	e.suffix = 0
	for i := range 99 { // they fill the first transaction, so that the next one begins with another suffix
		w.react(fmt.Sprint("n", i), change.Item{"album": s("0"), "emoji": s("like"), "weight": number("1")})
	}
	w.react("small", change.Item{"emoji": s("like"), "weight": number("2.5")})
	n = w.drain(e, n)
	e.suffix = 1
	w.delete(change.Key{Partition: "POST#p", Sort: "BY#small"})
	n = w.drain(e, n)
	w.react("heart", change.Item{"emoji": s("heart"), "weight": number("1")})
	w.drain(e, n)
	w.expect(album, "weights", mapped("like=12345678901234567890123456789012345678", "heart=1"))
}

func TestManyCopiesOfALongTargetKeyParkTheRule(t *testing.T) {
	w := newWorld(t, strings.Replace(longTagRules, ", write_shards: 1", "", 1))
	e := w.seeded()
	var tags []string
	for i := range 140 {
		tags = append(tags, fmt.Sprintf("%03d", i)+strings.Repeat("x", 200))
	}
	w.put(change.Item{"pk": s("POST#p"), "sk": s("BY#u"), "album": s(strings.Repeat("a", 1500)), "tags": tagged(tags...)})
	w.drain(e, 0)
	w.expectCodes(e, "each.too_large")
}

// TestARefusalToTakeBackStaysParked has a post that counts under one tag, and that no accumulator has room for under another. When it is
// deleted, the sum of the former cannot be told without it.
func TestARefusalToTakeBackStaysParked(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: METADATA } }
  Tag:  { key: { pk: "TAG#${tag}", sk: INFO } }
rules:
  weight: { sum: weight, of: Post, each: tags as tag, as: Tag.weight }
`)
	full, half := strings.Repeat("9", 38), "0.5"
	e, at := w.seeded(), 0
	put := func(id, weight string, tags ...string) {
		w.put(change.Item{"pk": s("POST#" + id), "sk": s("METADATA"), "weight": number(weight), "tags": tagged(tags...)})
		at = w.drain(e, at)
	}
	put("c", full, "y")
	put("a", half, "x")
	put("p", half, "x", "y")
	put("b", full, "x")
	w.expectCodes(e, "number.overflow")
	w.delete(change.Key{Partition: "POST#p", Sort: "METADATA"})
	w.drain(e, at)
	w.expectCodes(e, "write.rejected")
}
