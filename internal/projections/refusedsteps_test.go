package projections

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

const orderLines = `
version: 1
table: { keys: [pk] }
entities:
  Line:  { key: { pk: "LINE#${order}#${line}" } }
  Order: { key: { pk: "ORDER#${order}" } }
rules:
  total: { sum: price, of: Line, as: Order.total }
`

func TestStaleMoveBesideARefusedOneChangesNothing(t *testing.T) {
	w := newWorld(t, orderLines)
	e := w.seeded()
	w.put(change.Item{"pk": s("ORDER#1")})
	w.put(change.Item{"pk": s("ORDER#2")})
	w.put(change.Item{"pk": s("LINE#2#0"), "price": change.Number("1e40")})
	from := w.drain(e, 0)
	w.put(change.Item{"pk": s("LINE#1#1"), "price": change.Number("1")}) // A
	a := w.records()[from]
	w.drain(e, from)
	w.put(change.Item{"pk": s("LINE#2#1"), "price": change.Number("2.5")}) // O
	all := w.records()
	o := all[len(all)-1]
	w.put(change.Item{"pk": s("LINE#1#1"), "price": change.Number("5")}) // B
	all = w.records()
	b := all[len(all)-1]
	if _, err := e.Process(w.ctx, []change.Record{b}); err != nil {
		t.Fatal(err)
	}
	w.expect(change.Key{Partition: "ORDER#1"}, "total", change.Number("5"))
	// a sleeper with the batch A, O
	if n, err := e.Process(w.ctx, []change.Record{a, o}); err != nil {
		t.Fatal(n, err)
	}
	w.drain(e, len(w.records()))
	w.expect(change.Key{Partition: "ORDER#1"}, "total", change.Number("5"))
}

func manyMirrors() string {
	var b strings.Builder
	b.WriteString("version: 1\ntable: { keys: [pk] }\nentities:\n  A: { key: { pk: \"A#${x}\" } }\n")
	for i := range 24 {
		fmt.Fprintf(&b, "  M%d: { key: { pk: \"M%d#${x}\" } }\n", i, i)
	}
	b.WriteString("rules:\n")
	for i := range 24 {
		fmt.Fprintf(&b, "  m%d: { mirror: A, as: M%d, attributes: [blob] }\n", i, i)
	}
	return b.String()
}

// bySize refuses transactions whose request is over 4 MB before it looks at any condition.
type bySize struct{ table.Client }

func (c bySize) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	n := 0
	for _, it := range in.TransactItems {
		if it.Update != nil {
			for _, v := range it.Update.ExpressionAttributeValues {
				if s, ok := v.(*ddb.AttributeValueMemberS); ok {
					n += len(s.Value)
				}
			}
		}
	}
	if n > 4<<20 {
		return nil, &smithy.GenericAPIError{Code: "ValidationException", Message: "Transaction request size limit exceeded"}
	}
	return c.Client.TransactWriteItems(ctx, in, o...)
}

func TestDuplicateOfALargeMoveIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, manyMirrors())
		e := w.engine(bySize{w.sim})
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		w.put(change.Item{"pk": s("A#1"), "blob": s(strings.Repeat("a", 390<<10))})
		w.drain(e, 0)
		start := time.Now()
		n, err := e.Process(w.ctx, w.records()[:1])
		t.Log(time.Since(start), n, err)
		if err != nil {
			t.Error(err)
		}
	})
}

func TestContentThatExpiredOnceComesBack(t *testing.T) {
	past := change.Item{"expiresAt": change.Number("1700000000")}
	eachCard(t, func(t *testing.T, w *world, e *Engine) {
		w.putPost("A", past)
		from := w.drain(e, 0)
		w.expire(card)
		from = w.drain(e, from)
		w.putPost("B", past)
		from = w.drain(e, from)
		w.putPost("A", past)
		w.drain(e, from)
		w.expect(card, "title", s("A"))
		w.delete(card) // by a user; the record is lost
		if err := e.Rederive(w.ctx, []change.Key{post}); err != nil {
			t.Fatal(err)
		}
		w.expect(card, "title", s("A"))
	})
}

// wholly refuses transactions that write under a partition key, without a reason for each action.
type wholly struct {
	table.Client
	partition string
	n         *int
}

func (c wholly) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	*c.n++
	for _, it := range in.TransactItems {
		if it.Update != nil {
			if k, ok := it.Update.Key["pk"].(*ddb.AttributeValueMemberS); ok && k.Value == c.partition {
				return nil, &smithy.GenericAPIError{Code: "ValidationException", Message: "no"}
			}
		}
	}
	return c.Client.TransactWriteItems(ctx, in, o...)
}

func TestRetryOfARefusedStepEnds(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${id}", sk: META } }
  Card: { key: { pk: "CARD#${slug}", sk: META } }
  User: { key: { pk: "USER#${user}", sk: META } }
rules:
  a-sum: { sum: price, of: Post, as: User.total, by: user }
  cards: { mirror: Post, as: Card, by: slug, attributes: [title] }
`)
	n := 0
	e := w.engine(wholly{w.sim, "CARD#bad", &n})
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.put(change.Item{"pk": s("POST#1"), "sk": s("META"), "user": s("u"), "price": s("wrong"), "slug": s("bad"), "title": s("t")})
	w.drain(e, 0)
	w.expectParked(e, "a-sum/POST#1/META", "cards/POST#1/META")
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	n = 0
	err := e.RetryParked(ctx, parkedID("cards/POST#1/META"))
	t.Log(err, n)
	if err != nil {
		t.Error("never ends")
	}
}

func TestStepsKeepTheAgreedEpoch(t *testing.T) {
	file := func(prefix string, n int, more string) string {
		var b strings.Builder
		b.WriteString("version: 1\ntable: { keys: [pk] }\nentities:\n")
		for i := range 5 {
			fmt.Fprintf(&b, "  A%d: { key: { pk: \"A%d#${x}\" } }\n  N%d: { key: { pk: \"N%d#${x}\" } }\n", i, i, i, i)
		}
		b.WriteString("rules:\n")
		for i := range n {
			fmt.Fprintf(&b, "  %s%d: { count: A%d, as: N%d.%s%d }\n", prefix, i, i/30, i/30, prefix, i)
		}
		return b.String() + more
	}
	old, new, newer := file("a", 1, ""), file("b", 120, ""), file("b", 120, "  zz: { count: A4, as: N4.zz }\n")
	w := newWorld(t, old)
	w.seeded()
	epoch := 1 // of the comparison
	open := func(c table.Client, text string, agreed int) error {
		_, err := OpenChanging(w.ctx, Config{Client: c, Table: "app", Rules: loadRules(t, text)}, agreed)
		return err
	}
	n := 0
	hook := &faulty{Client: w.sim}
	hook.around = func(op string, pass func() error) error {
		err := pass()
		if op == "TransactWriteItems" {
			if n++; n == 1 {
				// another process brings a newer file into force: it only adds a rule to this one
				t.Log("other:", open(w.sim, newer, epoch+1))
			}
		}
		return err
	}
	t.Log("mine:", open(hook, new, epoch))
	known := 0
	for _, r := range w.scan("app-dynamill") {
		if r["pk"].Text() == "registry" && r["name"].Text() == "zz" {
			known++
			t.Log(r["sk"].Text(), r["state"].Text())
			if r["state"].Text() != "seeding" {
				t.Error("a rule was retired to which nobody agreed")
			}
		}
	}
	if known == 0 {
		t.Error("not found")
	}
}

func TestReplayRaisesAHiddenStamp(t *testing.T) {
	w := newWorld(t, likeRules)
	e := w.seeded()
	a, b := change.Key{Partition: "USER#a", Sort: "POST#1"}, change.Key{Partition: "USER#b", Sort: "POST#1"}
	put := func(k change.Key) { w.put(change.Item{"pk": s(k.Partition), "sk": s(k.Sort), "postId": s("p")}) }
	put(b)
	w.put(change.Item{"pk": s("LIKE#1"), "sk": s("POST#p")})
	from := w.drain(e, 0)
	put(a)
	from = w.drain(e, from)
	w.expect(b, "likes", change.Value{})
	w.delete(a)
	recs := w.records()[from:]
	hook := &faulty{Client: w.sim}
	n := 0
	hook.around = func(op string, pass func() error) error {
		if op == "UpdateItem" {
			if n++; n == 1 {
				put(a) // its record is lost; a replay goes over the table
				if err := e.Rederive(w.ctx, []change.Key{a, b}); err != nil {
					t.Error(err)
				}
				w.expect(a, "likes", change.Number("1"))
				w.expect(b, "likes", change.Value{})
			}
		}
		return pass()
	}
	z := w.engine(hook)
	if _, err := z.Process(w.ctx, recs); err != nil {
		t.Fatal(err)
	}
	t.Log(n)
	w.expect(b, "likes", change.Value{})
	// and the stream after what is lost
	all := w.records()
	if _, err := e.Process(w.ctx, all[from+2:]); err != nil {
		t.Fatal(err)
	}
	w.expect(b, "likes", change.Value{})
}
