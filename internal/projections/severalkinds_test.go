package projections

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
)

// severalKindsRules make a tag's item by rules of two families.
const severalKindsRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true, expire: 1d, expire_attribute: ttl }
rules:
  best:      { first: [title as best], of: Post, to: Tag, each: tags as tag, order: rank }
  published: { count: Post, as: Tag.published, each: tags as tag, where: status == "published" }
`

func (w *world) taggedPost(id, rank, status string) {
	w.put(change.Item{"pk": s("POST#" + id), "sk": s("METADATA"), "tags": tagged("red"), "title": s(id), "rank": s(rank), "status": s(status)})
}

// TestDerivedItemOfSeveralKindsIsWrittenOnce has one record change what two families show on one item.
func TestDerivedItemOfSeveralKindsIsWrittenOnce(t *testing.T) {
	w := newWorld(t, severalKindsRules)
	read := w.drain(w.seeded(), 0)
	w.taggedPost("a", "2", "published")
	writes := 0
	e := w.engine(&faulty{Client: w.sim, around: func(_ string, pass func() error) error { return pass() }, before: func(_ string, in any) {
		switch in := in.(type) {
		case *dynamodb.UpdateItemInput:
			if *in.TableName == "app" {
				writes++
			}
		case *dynamodb.BatchExecuteStatementInput:
			for _, st := range in.Statements {
				if strings.HasPrefix(*st.Statement, "UPDATE") {
					writes++
				}
			}
		}
	}})
	read = w.drain(e, read)
	w.taggedPost("b", "1", "published")
	writes = 0
	w.drain(e, read)
	if writes != 1 {
		t.Errorf("the item is written %d times, want once", writes)
	}
	w.expect(tagRed, "best", s("b"))
	w.expect(tagRed, "published", number("2"))
	w.expectRight()
}

// TestExpiredItemOfSeveralKindsComesBack has an item expire. A contribution under the rule of either family brings it back, also in one
// batch with the record that tells of the deletion.
func TestExpiredItemOfSeveralKindsComesBack(t *testing.T) {
	for name, contribute := range map[string]func(*world){
		"under the one":   func(w *world) { w.taggedPost("a", "1", "draft") },
		"under the other": func(w *world) { w.taggedPost("a", "2", "published") },
		"under both":      func(w *world) { w.taggedPost("b", "1", "published") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, severalKindsRules)
			e := w.seeded()
			w.taggedPost("a", "2", "draft")
			read := w.drain(e, 0)
			w.expire(tagRed)
			contribute(w)
			w.drain(e, read)
			if w.get(tagRed) == nil {
				t.Error("the item stays away")
			}
			w.expectRight()
		})
	}
}

// TestPutOffContributionBringsBackExpiredItem has an item expire after a contribution whose roll-up was put off.
func TestPutOffContributionBringsBackExpiredItem(t *testing.T) {
	w := newWorld(t, severalKindsRules)
	now := time.Now()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, w.file), DisplayEvery: time.Second,
		Now: func() time.Time { return now }})
	if err == nil {
		err = e.Seed(w.ctx, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, rank := range []string{"3", "2", "1"} { // the first makes the item, the second is rolled up, and the third put off
		w.taggedPost(rank, rank, "draft")
		read = w.drain(e, read)
	}
	if rows := w.under("tasks"); len(rows) != 1 {
		t.Fatalf("put off are %v, want one roll-up", rows)
	}
	w.expire(tagRed)
	read = w.drain(e, read)
	now = now.Add(time.Minute)
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.drain(e, read)
	w.expect(tagRed, "best", s("1"))
	w.expectRight()
}
