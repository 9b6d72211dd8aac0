package projections

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

const shownTogetherRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comments: { count: Comment, as: Post.comments }
  likes:    { sum: likes, of: Comment, as: Post.likes }
  newest:   { last: [text as newest], of: Comment, to: Post, order: at }
  most:     { max: likes, of: Comment, as: Post.mostLikes }
`

// TestDisplaysOfOneTargetAreOneWrite counts the units of a comment under four rules.
func TestDisplaysOfOneTargetAreOneWrite(t *testing.T) {
	w := newWorld(t, shownTogetherRules)
	e := w.seeded()
	w.put(change.Item{"pk": s("POST#1"), "sk": s("METADATA")})
	from := w.drain(e, 0)
	w.put(change.Item{"pk": s("POST#1"), "sk": s("COMMENT#1"), "at": s("2026"), "likes": number("3"), "text": s("Hi")})
	records := w.records()[from:]
	before := w.sim.Usage()
	if done, err := e.Process(w.ctx, records); err != nil || done != len(records) {
		t.Fatalf("%d done, %v", done, err)
	}
	const (
		entry        = 2
		accumulators = 4 * 2
		members      = 2 * 2
		display      = 1
	)
	if units := w.sim.Usage().Sub(before).WriteUnits; units != entry+accumulators+members+display {
		t.Errorf("a comment costs %v write units, want %d", units, entry+accumulators+members+display)
	}
	post := w.get(change.Key{Partition: "POST#1", Sort: "METADATA"})
	for name, want := range map[string]change.Value{"comments": number("1"), "likes": number("3"), "newest": s("Hi"), "mostLikes": number("3")} {
		if !post[name].Equal(want) {
			t.Errorf("the post shows %s: %q, want %q", name, post[name].Text(), want.Text())
		}
	}
	w.drain(e, from)
	w.expectRight()
}
