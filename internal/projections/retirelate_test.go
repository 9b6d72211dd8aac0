package projections

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var comment1 = change.Key{Partition: "POST#p1", Sort: "COMMENT#cu1"}

// late has a worker of older rules apply records, which it reports as not done.
func (w *world) late(e *Engine, records []change.Record) {
	w.t.Helper()
	if _, err := e.Process(w.ctx, records); !errors.Is(err, registry.ErrEpochMoved) {
		w.t.Fatalf("a worker of older rules: %v, want %v", err, registry.ErrEpochMoved)
	}
}

// TestALateCopyOverTheApplicationsAttributeIsPutBack has the application take over an attribute whose rule is gone.
func TestALateCopyOverTheApplicationsAttributeIsPutBack(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	old := w.seeded()
	from := w.drain(old, 0)
	e := w.changing(withRule(t, socialRules, "comment-author", ""), nil)
	w.replay(e)
	from = w.drain(e, from)
	w.expect(comment1, "userName", change.Value{})
	w.update(comment1, change.Item{"userName": s("the application's own")})
	from = w.drain(e, from)
	w.put(change.Item{"pk": s("USER#zed"), "sk": s("PROFILE"), "name": s("Zed"), "avatar": s("zed.png")})
	w.update(comment1, change.Item{"userId": s("zed")})
	w.late(old, w.records()[from:])
	w.expect(comment1, "userName", s("Zed"))
	w.drain(e, from)
	w.expect(comment1, "userName", s("the application's own"))
	w.expectNone("userAvatar", "_dm_comment-author")
}

// notUpdating crashes instead of updating one item.
type notUpdating struct {
	table.Client
	item change.Key
}

func (c notUpdating) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if (change.Key{Partition: table.TextOf(in.Key["pk"]), Sort: table.TextOf(in.Key["sk"])}) == c.item {
		return nil, errCrash
	}
	return c.Client.UpdateItem(ctx, in, opts...)
}

// TestALateWriteIsPutBackThoughTheBatchThatTellsOfItFailed has the late write and a later change of the item in one
// batch, whose taking back fails: what is to be put back is told by the first record alone.
func TestALateWriteIsPutBackThoughTheBatchThatTellsOfItFailed(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	old := w.seeded()
	from := w.drain(old, 0)
	next := withRule(t, socialRules, "comment-author", "")
	e := w.changing(next, nil)
	w.replay(e)
	from = w.drain(e, from)
	w.update(comment1, change.Item{"userName": s("the application's own")})
	from = w.drain(e, from)
	w.update(change.Key{Partition: "USER#u1", Sort: "PROFILE"}, change.Item{"name": s("Zed")})
	w.update(comment1, change.Item{"userId": s("u2")})
	w.late(old, w.records()[from:])
	w.expect(comment1, "userName", s("Name u2"))
	w.update(comment1, change.Item{"text": s("edited")})
	done, err := w.changing(next, notUpdating{w.sim, comment1}).Process(w.ctx, w.records()[from:])
	if !errors.Is(err, errCrash) {
		t.Fatalf("%d records done, %v", done, err)
	}
	w.drain(e, from+done)
	w.expect(comment1, "userName", s("the application's own"))
	w.expectNone("userAvatar", "_dm_comment-author")
}

func TestALateSumOverTheApplicationsAttributeIsPutBack(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	old := w.seeded()
	from := w.drain(old, 0)
	e := w.changing(withRule(t, socialRules, "comment-score", ""), nil)
	w.replay(e)
	from = w.drain(e, from)
	w.expect(post1, "score", change.Value{})
	w.update(post1, change.Item{"score": change.Number("77")})
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("COMMENT#new"), "userId": s("u1"), "score": change.Number("2")})
	w.late(old, w.records()[from:])
	w.drain(e, from)
	w.expect(post1, "score", change.Number("77"))
	w.expectNone("_dm_comment-score")
}

const listRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
rules:
  list: { mirror: Membership, as: Member, attributes: [role] }
  n: { count: Member, as: Group.n }
`

// TestALateMirrorRuleDoesNotTakeTheApplicationsItemWithIt has a worker of the former rule stamp an item
// that the application made, once or twice before the first record of it is applied.
func TestALateMirrorRuleDoesNotTakeTheApplicationsItemWithIt(t *testing.T) {
	source, mirror := change.Key{Partition: "USER#u1", Sort: "GROUP#g"}, change.Key{Partition: "GROUP#g", Sort: "USER#u1"}
	for name, test := range map[string]struct {
		again bool                                // the late worker writes twice
		drain func(w *world, e *Engine, from int) // how the records come
		edit  change.Item                         // by the application, after the late writes
		role  string
	}{
		"once":                        {false, func(w *world, e *Engine, from int) { w.drain(e, from) }, nil, "mine"},
		"twice, in one batch":         {true, func(w *world, e *Engine, from int) { w.drain(e, from) }, nil, "mine"},
		"twice, in batches of one":    {true, drainOneByOne, nil, "mine"},
		"before the application does": {true, drainOneByOne, change.Item{"role": s("edited")}, "edited"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, listRules)
			w.put(change.Item{"pk": s("USER#u0"), "sk": s("GROUP#g"), "role": s("x")})
			old := w.seeded()
			from := w.drain(old, 0)
			e := w.changing(withRule(t, listRules, "list", ""), nil)
			w.replay(e)
			from = w.drain(e, from)
			w.put(change.Item{"pk": s("USER#u1"), "sk": s("GROUP#g"), "role": s("x")})
			w.put(change.Item{"pk": s("GROUP#g"), "sk": s("USER#u1"), "role": s("mine"), "note": s("precious")})
			w.late(old, w.records()[from:])
			w.expect(mirror, "role", s("x"))
			if test.again {
				last := len(w.records())
				w.update(source, change.Item{"role": s("y")})
				w.late(old, w.records()[last:])
				w.expect(mirror, "role", s("y"))
			}
			if test.edit != nil {
				w.update(mirror, test.edit)
			}
			test.drain(w, e, from)
			w.expect(mirror, "note", s("precious"))
			w.expect(mirror, "role", s(test.role))
			w.expectNone("_dm_list")
		})
	}
}

// drainOneByOne applies records in batches of one, until there are no more.
func drainOneByOne(w *world, e *Engine, from int) {
	w.t.Helper()
	for ; from < len(w.records()); from++ {
		if _, err := e.Process(w.ctx, w.records()[from:from+1]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestALateSumIsTakenOffThoughTheRuleToCorrectItIsReplacedMeanwhile has cleaning meet a late write over the
// value of the rule in force, and that rule retire before the record of the write comes.
func TestALateSumIsTakenOffThoughTheRuleToCorrectItIsReplacedMeanwhile(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	from := w.drain(w.seeded(), 0)
	sleeper := w.engine(nil)
	e := w.changing(withRule(t, socialRules, "comment-score", `comment-score: { sum: score * 2, of: Comment, as: Post.score }`), nil)
	for pass := ""; pass != "clean/2"; {
		var err error
		if pass, _, err = e.NextPass(w.ctx); err != nil || pass == "" {
			t.Fatalf("aimed at %q, %v", pass, err)
		}
		if pass == "clean/2" {
			w.put(change.Item{"pk": s("POST#p1"), "sk": s("COMMENT#late"), "score": change.Number("5")})
			w.late(sleeper, w.records()[from:])
		}
		if err := errors.Join(w.work(e, pass), e.Complete(w.ctx, pass)); err != nil {
			t.Fatal(err)
		}
	}
	e = w.changing(withRule(t, socialRules, "comment-score", ""), nil)
	w.replay(e)
	w.drain(e, from)
	w.expect(post1, "score", change.Value{})
	w.expectNone("_dm_comment-score", "_dm_comment-score-2")
}

// TestAMirrorItemStaysWhileTheRuleThatHasItIsRetiring has a mirror rule change to another source and change again,
// while the stamp of the first former rule is still on its item.
func TestAMirrorItemStaysWhileTheRuleThatHasItIsRetiring(t *testing.T) {
	w := newWorld(t, lastRules)
	last := change.Key{Partition: "LAST#a", Sort: "THING"}
	w.put(change.Item{"pk": s("CUSTOMER#a"), "sk": s("ORDER#1"), "total": change.Number("5")})
	w.put(change.Item{"pk": s("CUSTOMER#a"), "sk": s("TICKET#1"), "title": s("help"), "urgent": s("yes")})
	w.drain(w.seeded(), 0)
	e := w.changing(withRule(t, lastRules, "last", "last: { mirror: Ticket, as: Last, attributes: [title] }"), nil)
	for pass := ""; pass != "clean/2"; {
		var err error
		if pass, _, err = e.NextPass(w.ctx); err != nil || pass == "" {
			t.Fatalf("aimed at %q, %v", pass, err)
		}
		if pass == "clean/2" {
			break // all that the first change wrote is there, and nothing is cleaned
		}
		if err := errors.Join(w.work(e, pass), e.Complete(w.ctx, pass)); err != nil {
			t.Fatal(err)
		}
	}
	from := len(w.records())
	e = w.changing(withRule(t, lastRules, "last", "last: { mirror: Ticket, as: Last, attributes: [title, urgent] }"), nil)
	w.update(last, change.Item{"note": s("the application's")})
	from = w.drain(e, from)
	w.expect(last, "title", s("help"))
	w.expect(last, "note", s("the application's"))
	w.replay(e)
	w.drain(e, from)
	w.expect(last, "note", s("the application's"))
	w.expect(last, "urgent", s("yes"))
	if item := w.get(last); item.Lookup("total").Kind() != change.KindAbsent {
		t.Errorf("what the first rule wrote is still there: %v", item)
	}
	w.expectNone("_dm_last", "_dm_last-2")
	w.expectTrue()
}
