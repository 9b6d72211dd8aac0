package projections

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// totalRules show a count and a sum, each in both ways.
const totalRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comments:       { count: Comment, as: Post.comments }
  stars:          { sum: stars, of: Comment, as: Post.stars, write_shards: 2 }
  shown-comments: { count: Comment, as: Post.shownComments, if_none: absent }
  shown-stars:    { sum: stars, of: Comment, as: Post.shownStars, if_none: absent }
`

var post2 = change.Key{Partition: "POST#p2", Sort: "METADATA"}

// TestTargetShowsZeroWhateverItsHistory has targets with members, without, and with members no more.
func TestTargetShowsZeroWhateverItsHistory(t *testing.T) {
	w := newWorld(t, totalRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	e := w.seeded()
	var none change.Value
	n := 0
	for _, step := range []struct {
		name                                       string
		do                                         func()
		comments, stars, shownComments, shownStars change.Value
	}{
		{"seeding", func() {}, number("0"), number("0"), none, none},
		{"a member", func() { w.put(starred("c1", number("4"))) }, number("1"), number("4"), number("1"), number("4")},
		{"members that cancel each other", func() { w.put(starred("c2", number("-4"))) }, number("2"), number("0"), number("2"), none},
		{"no member any more", func() {
			w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"})
			w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c2"})
		}, number("0"), number("0"), none, none},
		{"the target put again", func() { w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")}) }, number("0"), number("0"), none, none},
		{"the target deleted, and inserted", func() {
			w.delete(post1)
			w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA"), "shownStars": number("0"), "stars": number("7")})
		}, number("0"), number("0"), none, none},
		{"another program writes 0 and nothing", func() {
			w.update(post1, change.Item{"comments": none, "shownComments": number("0")})
		}, number("0"), number("0"), none, none},
	} {
		step.do()
		n = w.drain(e, n)
		for name, want := range map[string]change.Value{
			"comments": step.comments, "stars": step.stars, "shownComments": step.shownComments, "shownStars": step.shownStars,
		} {
			if got := w.get(post1)[name]; !got.Equal(want) {
				t.Errorf("%s: %s is %q, want %q", step.name, name, got.Text(), want.Text())
			}
		}
		w.expectRight()
	}
}

// TestNewTargetIsWrittenOnceForAllTotals counts what docs/performance.md says.
func TestNewTargetIsWrittenOnceForAllTotals(t *testing.T) {
	w := newWorld(t, totalRules)
	e := w.seeded()
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	records := w.records()
	before := w.sim.Usage()
	if done, err := e.Process(w.ctx, records); err != nil || done != 1 {
		t.Fatalf("%d done, %v", done, err)
	}
	if units := w.sim.Usage().Sub(before).WriteUnits; units != 1 {
		t.Errorf("a new target costs %v write units, want 1 for the two totals that show 0", units)
	}
}

// TestRuleThatHidesZeroAndShowsItAgain changes what stands on targets that have no member: one that lost it, and one that never had one.
func TestRuleThatHidesZeroAndShowsItAgain(t *testing.T) {
	shown := strings.Replace(totalRules, ", if_none: absent", "", 2)
	hidden := strings.NewReplacer("Post.comments", "Post.comments, if_none: absent", "Post.stars", "Post.stars, if_none: absent").
		Replace(shown)
	w := newWorld(t, shown)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(change.Item{"pk": s("POST#p2"), "sk": s("METADATA")})
	w.put(starred("c1", number("1")))
	e := w.seeded()
	n := w.drain(e, 0)
	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"})
	n = w.drain(e, n)
	for _, step := range []struct {
		rules string
		want  change.Value
	}{{hidden, change.Value{}}, {shown, number("0")}, {hidden, change.Value{}}} {
		e := w.changing(step.rules, nil)
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		n = w.drain(e, n)
		for _, post := range []change.Key{post1, post2} {
			w.expect(post, "comments", step.want)
			w.expect(post, "stars", step.want)
		}
		w.expectRight()
	}
}

func number(text string) change.Value { return change.Number(text) }
