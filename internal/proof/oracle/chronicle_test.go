package oracle

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

const chronicledRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" }, match: { kind: post }, unique: slug }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Like:    { key: { pk: "USER#${userId}", sk: "LIKE#${likeId}" } }
rules:
  comments: { delete: Comment, with: Post }
  likes:    { delete: Like, with: Post, by: { slug: about } }
`

// TestChronicleJudgesDeletions has a post with a comment and a like go through what can happen to it.
func TestChronicleJudgesDeletions(t *testing.T) {
	item := func(pk, sk string, more ...string) change.Item {
		it := change.Item{"pk": change.String(pk), "sk": change.String(sk)}
		for i := 0; i < len(more); i += 2 {
			it[more[i]] = change.String(more[i+1])
		}
		return it
	}
	keyOf := func(it change.Item) change.Key { return change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()} }
	post, draft := item("POST#1", "METADATA", "kind", "post", "slug", "s"), item("POST#1", "METADATA", "kind", "draft", "slug", "s")
	other := item("POST#2", "METADATA", "kind", "post", "slug", "s")
	comment, like := item("POST#1", "COMMENT#1"), item("USER#1", "LIKE#1", "about", "s")
	type step struct {
		before, after change.Item
		unstreamed    bool
	}
	comes, goes := step{nil, post, false}, step{post, nil, false}
	type outcome struct{ comment, like, commentGone, likeGone bool } // it may be deleted, and must be gone
	both := outcome{true, true, true, true}
	for name, c := range map[string]struct {
		steps []step
		there []change.Item // beside comment and like
		want  outcome
	}{
		"nothing happened":           {},
		"the post is there":          {steps: []step{comes}, there: []change.Item{post}},
		"it is deleted":              {steps: []step{comes, goes}, want: both},
		"no stream tells of it":      {steps: []step{comes, {post, nil, true}}, want: outcome{comment: true, like: true}},
		"it is made again":           {steps: []step{comes, goes, comes}, there: []change.Item{post}},
		"it becomes a draft":         {steps: []step{comes, {post, draft, false}}, there: []change.Item{draft}},
		"a draft of it is deleted":   {steps: []step{comes, {post, draft, false}, {draft, nil, false}}},
		"it is deleted and a draft":  {steps: []step{comes, goes, {nil, draft, false}}, there: []change.Item{draft}, want: both},
		"another one takes its slug": {[]step{comes, {nil, other, false}, goes}, []change.Item{other}, outcome{true, false, true, false}},
	} {
		set := compile(t, chronicledRules)
		h := NewChronicle([2]change.Kind{change.KindString, change.KindString}, set)
		for _, s := range c.steps {
			key := keyOf(s.before)
			if s.before == nil {
				key = keyOf(s.after)
			}
			h.Changed(key, s.before, s.after, !s.unstreamed)
		}
		items := map[change.Key]change.Item{keyOf(comment): comment, keyOf(like): like}
		for _, it := range c.there {
			items[keyOf(it)] = it
		}
		known := func(*rules.Rule, string, change.Key) bool { return true }
		marked := func(is bool) func(*rules.Rule, string) bool { return func(*rules.Rule, string) bool { return is } }
		for it, want := range map[*change.Item]bool{&comment: c.want.comment, &like: c.want.like} {
			if why := h.MayDelete(keyOf(*it), *it, items, known, marked(true)); (why == "") != want {
				t.Errorf("%s: %s may go: %t (%s)", name, keyOf(*it), why == "", why)
			}
			if h.MayDelete(keyOf(*it), *it, items, known, marked(false)) == "" {
				t.Errorf("%s: %s may go without a mark", name, keyOf(*it))
			}
		}
		left := map[change.Key]bool{}
		for _, d := range h.Outliving(items, func(*rules.Rule) bool { return true }) {
			left[d.Key] = true
		}
		if left[keyOf(comment)] != c.want.commentGone || left[keyOf(like)] != c.want.likeGone {
			t.Errorf("%s: must be gone: %v", name, left)
		}
	}
}
