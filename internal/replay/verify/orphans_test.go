package verify_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// belongingRules have comments go with their post, which they name by its id, and notes with the post of their slug.
const belongingRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" }, match: { kind: post }, unique: slug }
  Comment: { key: { pk: "COMMENT#${commentId}", sk: "METADATA" } }
  Note:    { key: { pk: "NOTE#${noteId}", sk: "METADATA" } }
rules:
  comments: { delete: Comment, with: Post, by: { postId: about } }
  notes:    { delete: Note, with: Post, by: { slug: about } }
`

func post(id, kind, slug string) change.Item {
	return texts("pk", "POST#"+id, "sk", "METADATA", "kind", kind, "slug", slug)
}

func belonging(pk, about string) change.Item {
	return texts("pk", pk, "sk", "METADATA", "about", about)
}

// before is a client that does something once, right before the first item is deleted in a transaction.
type before struct {
	*dynamosim.Sim
	act  func()
	once sync.Once
}

func (c *before) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (
	*dynamodb.TransactWriteItemsOutput, error) {
	if slices.ContainsFunc(in.TransactItems, func(part ddb.TransactWriteItem) bool { return part.Delete != nil }) {
		c.once.Do(c.act)
	}
	return c.Sim.TransactWriteItems(ctx, in, opts...)
}

// TestOrphanStaysIfItHasAParentByThen has something happen to an orphan, or to the parent that it lacks, after a verification has found
// the orphan, and right before it deletes it.
func TestOrphanStaysIfItHasAParentByThen(t *testing.T) {
	comment, note := belonging("COMMENT#1", "p"), belonging("NOTE#1", "s")
	for name, c := range map[string]struct {
		orphan change.Item
		act    func(*world)
		stays  bool
	}{
		"nothing":                          {comment, func(*world) {}, false},
		"its post is made":                 {comment, func(w *world) { w.put(app, post("p", "post", "x")) }, true},
		"a draft is made under its key":    {comment, func(w *world) { w.put(app, post("p", "draft", "x")) }, false},
		"it refers to another post":        {comment, func(w *world) { w.put(app, belonging("COMMENT#1", "q")) }, true},
		"it refers to none":                {comment, func(w *world) { w.put(app, texts("pk", "COMMENT#1", "sk", "METADATA")) }, true},
		"it is written again":              {comment, func(w *world) { w.put(app, belonging("COMMENT#1", "p")) }, false},
		"nothing happens to a note":        {note, func(*world) {}, false},
		"a post takes its slug":            {note, func(w *world) { w.put(app, post("p", "post", "s")); w.follow() }, true},
		"a draft takes its slug":           {note, func(w *world) { w.put(app, post("p", "draft", "s")); w.follow() }, false},
		"a post with another slug is made": {note, func(w *world) { w.put(app, post("p", "post", "x")); w.follow() }, false},
		"the note refers to another slug":  {note, func(w *world) { w.put(app, belonging("NOTE#1", "x")); w.follow() }, true},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "belonging", belongingRules)
			w.follow()
			w.put(app, c.orphan)
			w.follow()
			var status []verify.Status
			_, summary := w.verify(false, func(cfg *verify.Config) {
				client := &before{Sim: w.sim, act: func() { c.act(w) }}
				audit, err := audits.Open(w.ctx, audits.Config{Client: client, Table: app, Rules: loadSet(t, w.p)})
				w.must(err)
				cfg.Remover, cfg.Auditor = audit, audit
				cfg.Found = func(r verify.Result) error {
					status = append(status, r.Status)
					return nil
				}
			})
			want := []verify.Status{verify.Deleted}
			if c.stays {
				want = []verify.Status{verify.Listed}
			}
			if diff := cmp.Diff(want, status); diff != "" || (summary.Deleted == 0) != c.stays {
				t.Errorf("%+v\n%s", summary, diff)
			}
			there := slices.ContainsFunc(w.scan(app), func(it change.Item) bool { return it["pk"].Equal(c.orphan["pk"]) })
			if there != c.stays {
				t.Errorf("it is there: %v", there)
			}
		}))
	}
}
