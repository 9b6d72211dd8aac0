package projections

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const ratingRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  rating: { average: stars, of: Comment, as: Post.rating }
`

func starred(id string, stars change.Value) change.Item {
	return comment(id, change.Item{"stars": stars})
}

// expectRight compares both tables with a computation from scratch.
func (w *world) expectRight() {
	w.t.Helper()
	w.expectNoDrift()
	for _, d := range oracle.Audit(w.set, w.items(), w.scan("app-dynamill"), time.Now()) {
		w.t.Error(d)
	}
}

// TestAverageFollowsItsMembers has comments come, change and go, with one accumulator and with several.
func TestAverageFollowsItsMembers(t *testing.T) {
	for name, rules := range map[string]string{
		"one accumulator":      ratingRules,
		"several accumulators": strings.Replace(ratingRules, "Post.rating", "Post.rating, write_shards: 3", 1),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules)
			w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA"), "rating": change.Number("5")})
			w.seeded()
			var none change.Value
			n := 0
			for _, step := range []struct {
				name string
				do   func()
				want change.Value
			}{
				{"a rating kept by hand, and no comment", func() {}, none},
				{"0 alone", func() { w.put(starred("c1", change.Number("0"))) }, change.Number("0")},
				{"a third", func() {
					w.put(starred("c2", change.Number("1")))
					w.put(starred("c3", change.Number("0")))
				}, change.Number("0.33333333333333333333333333333333333333")},
				{"two thirds are rounded up", func() { w.put(starred("c3", change.Number("1"))) },
					change.Number("0.66666666666666666666666666666666666667")},
				{"a comment without stars takes no part", func() { w.put(comment("c4", nil)) },
					change.Number("0.66666666666666666666666666666666666667")},
				{"a comment loses its stars", func() { w.put(comment("c1", nil)) }, change.Number("1")},
				{"another program writes there", func() { w.update(post1, change.Item{"rating": change.Number("7")}) }, change.Number("1")},
				{"members that cancel each other", func() {
					w.put(starred("c2", change.Number("-2")))
					w.put(starred("c3", change.Number("2")))
				}, change.Number("0")},
				{"a tie goes to the even digit", func() {
					w.put(starred("c2", change.Number("20000000000000000000000000000000000001")))
					w.put(starred("c3", change.Number("0")))
				}, change.Number("10000000000000000000000000000000000000")},
				{"nothing is left", func() {
					for i := range 4 {
						w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c" + strconv.Itoa(i+1)})
					}
				}, none},
				{"another program writes where nothing is", func() { w.update(post1, change.Item{"rating": change.Number("0")}) }, none},
			} {
				step.do()
				// Each step is another worker's, which keeps to a write suffix of its own.
				n = w.drain(w.engine(nil), n)
				if got := w.get(post1)["rating"]; !got.Equal(step.want) {
					t.Fatalf("%s: the rating is %s %q, want %q", step.name, got.Kind(), got.Text(), step.want.Text())
				}
				w.expectRight()
			}
		})
	}
}

// TestSumBecomesAverage changes what a rule shows on one attribute, back and forth.
func TestSumBecomesAverage(t *testing.T) {
	sum := strings.Replace(ratingRules, "average:", "sum:", 1)
	w := newWorld(t, sum)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(change.Item{"pk": s("POST#p2"), "sk": s("METADATA")})
	w.put(starred("c1", change.Number("5")))
	w.put(starred("c2", change.Number("0")))
	n := w.drain(w.seeded(), 0)
	w.expect(post1, "rating", change.Number("5"))
	for _, step := range []struct {
		rules string
		want  change.Value
	}{
		{ratingRules, change.Number("2.5")},
		{sum, change.Number("5")},
		{strings.Replace(ratingRules, "as: Post.rating", "as: Post.rating, where: stars > 0", 1), change.Number("5")},
	} {
		e := w.changing(step.rules, nil)
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		n = w.drain(e, n)
		w.expect(post1, "rating", step.want)
		w.expectRight()
	}
}

// TestAverageOfTextParksTheItem has a value that is no number, which is corrected.
func TestAverageOfTextParksTheItem(t *testing.T) {
	w := newWorld(t, ratingRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	e := w.seeded()
	w.put(starred("c1", change.Number("3")))
	w.put(starred("c2", s("many")))
	n := w.drain(e, 0)
	w.expect(post1, "rating", change.Number("3"))
	w.expectParked(e, "rating/POST#p1/COMMENT#c2")
	w.put(starred("c2", change.Number("4")))
	w.drain(e, n)
	w.expect(post1, "rating", change.Number("3.5"))
	w.expectParked(e)
	w.expectRight()
}
