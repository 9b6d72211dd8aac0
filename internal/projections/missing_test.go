package projections

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const missingRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: META } }
  Comment: { key: { pk: "COMMENT#${commentId}", sk: META } }
  Order:   { key: { pk: "CUSTOMER#${customer}", sk: "ORDER#${order}" }, unique: order }
  Line:    { key: { pk: "LINE#${line}", sk: META } }
rules:
  comments: { count: Comment, as: Post.comments, by: postId }
  likes:    { sum: likes, of: Comment, as: Post.likes, by: postId }
  title:    { copy: title, from: Post, to: Comment, by: postId }
  lines:    { count: Line, as: Order.lines, by: order }
`

func missingPost(id string) change.Item {
	return change.Item{"pk": s("POST#" + id), "sk": s("META"), "title": s("T")}
}

func missingComment(id, postID string) change.Item {
	return change.Item{"pk": s("COMMENT#" + id), "sk": s("META"), "postId": s(postID), "likes": change.Number("2")}
}

func keyIn(it change.Item) change.Key {
	return change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()}
}

// expectMissing compares what is missing, by rule, as "sources/targets".
func expectMissing(t *testing.T, got []MissingTargets, want map[string]string) {
	t.Helper()
	found := map[string]string{}
	for _, m := range got {
		found[m.Rule] = fmt.Sprintf("%d/%d", m.Sources, m.Targets)
	}
	if diff := cmp.Diff(want, found, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("missing targets, as sources/targets, want (-) and got (+):\n%s", diff)
	}
}

// TestMissingTargetsFollowRecords takes a target away beside the stream and brings it back. What is
// told follows, for a count, a sum, a copy and a rule that finds its target by a unique value.
func TestMissingTargetsFollowRecords(t *testing.T) {
	w := newWorld(t, missingRules)
	e := w.seeded()
	w.put(missingComment("c1", "p1")) // before its post
	w.put(missingComment("c2", "p1"))
	w.put(missingComment("c3", "p2"))
	w.put(change.Item{"pk": s("LINE#l1"), "sk": s("META"), "order": s("o1")})
	from := w.drain(e, 0)
	expectMissing(t, e.MissingTargets(), map[string]string{"comments": "3/2", "likes": "3/2", "title": "3/2", "lines": "1/1"})

	w.put(missingPost("p1"))
	w.put(change.Item{"pk": s("CUSTOMER#u"), "sk": s("ORDER#o1")})
	from = w.drain(e, from)
	expectMissing(t, e.MissingTargets(), map[string]string{"comments": "1/1", "likes": "1/1", "title": "1/1"})

	w.delete(keyIn(missingPost("p1")))
	w.delete(keyIn(missingComment("c3", "p2")))
	from = w.drain(e, from)
	w.put(missingComment("c4", "p1")) // the record of a deletion asks for no roll-up, a comment does
	from = w.drain(e, from)
	expectMissing(t, e.MissingTargets(), map[string]string{"comments": "3/1", "likes": "3/1", "title": "3/1"})

	w.delete(keyIn(missingComment("c1", "p1")))
	w.delete(keyIn(missingComment("c2", "p1")))
	w.delete(keyIn(missingComment("c4", "p1")))
	w.drain(e, from)
	expectMissing(t, e.MissingTargets(), nil)
	for _, m := range e.host.Missing {
		if !m.Found.Load() {
			t.Errorf("rule %s has found no target", m.Rule.Rule.Name)
		}
	}
}

// TestTargetThatComesLaterIsNotMissing has the source's record applied before the target is there, by an
// engine that never sees the target's record: the look at the end finds it.
func TestTargetThatComesLaterIsNotMissing(t *testing.T) {
	w := newWorld(t, missingRules)
	e := w.seeded()
	w.put(missingComment("c1", "p1"))
	w.drain(e, 0)
	w.put(missingPost("p1"))
	expectMissing(t, e.MissingTargets(), map[string]string{"comments": "1/1", "likes": "1/1", "title": "1/1"})
	got, err := e.LookForTargets(w.ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	expectMissing(t, got, nil)
}

// TestSeedingTellsMissingTargets seeds a table in which one of two posts is missing, and rederives it
// once more: sources are counted once.
func TestSeedingTellsMissingTargets(t *testing.T) {
	w := newWorld(t, missingRules)
	w.put(missingPost("p1"))
	w.put(change.Item{"pk": s("OTHER#1"), "sk": s("META")})
	for i := range 7 {
		w.put(missingComment(strconv.Itoa(i), "p"+strconv.Itoa(1+i%2)))
	}
	e := w.seeded()
	got, err := e.LookForTargets(w.ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	expectMissing(t, got, map[string]string{"comments": "3/1", "likes": "3/1", "title": "3/1"})
	for _, m := range got {
		if m.All || m.About || m.OtherCase != nil || !cmp.Equal(m.Examples, []string{"POST#p2/META"}) {
			t.Errorf("rule %s misses %+v", m.Rule, m)
		}
	}
	m := e.Matches()
	if !m.Whole || m.Items != 9 || m.UnmatchedItems != 1 || !cmp.Equal(m.Unmatched, []change.Key{{Partition: "OTHER#1", Sort: "META"}}) {
		t.Errorf("seeding has seen %+v", m)
	}
	for _, em := range m.Entities {
		if want := map[string]int64{"Post": 1, "Comment": 7}[em.Entity]; em.Items != want || em.Records != 0 {
			t.Errorf("seeding has seen %+v, want %d items", em, want)
		}
	}
	w.drain(e, 0)
	if m = e.Matches(); m.Records < 9 || m.UnmatchedRecords != 1 || m.Items != 9 {
		t.Errorf("with the records it has seen %+v", m)
	}
	if err := e.Work(w.ctx, "rederive", []change.Key{keyIn(missingComment("1", "")), keyIn(missingComment("3", ""))}); err != nil {
		t.Fatal(err)
	}
	if got, err = e.LookForTargets(w.ctx, true); err != nil {
		t.Fatal(err)
	}
	for _, m := range got {
		if m.Targets != 1 || m.Sources != 2 {
			t.Errorf("after another pass over two sources rule %s misses %+v", m.Rule, m)
		}
	}
}

// TestRollupOfMissingTargetAsksNothingMore compares the requests of a comment whose post is there with
// those of one whose post is missing.
func TestRollupOfMissingTargetAsksNothingMore(t *testing.T) {
	requests := func(before ...change.Item) map[string]int {
		w := newWorld(t, missingRules)
		counts := map[string]int{}
		f := &faulty{Client: w.sim, around: passAll}
		e := w.engine(f)
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		for _, it := range before {
			w.put(it)
		}
		from := w.drain(e, 0)
		var mu sync.Mutex // requests are made side by side
		f.around = func(op string, pass func() error) error {
			mu.Lock()
			counts[op]++
			mu.Unlock()
			return pass()
		}
		w.put(missingComment("c1", "p1"))
		all := w.records()
		if _, err := e.Process(w.ctx, all[from:]); err != nil {
			t.Fatal(err)
		}
		return counts
	}
	there, missing := requests(missingPost("p1")), requests()
	delete(there, "UpdateItem") // the copy is written on the comment
	delete(missing, "UpdateItem")
	if diff := cmp.Diff(there, missing); diff != "" {
		t.Errorf("requests with the post (-) and without (+):\n%s", diff)
	}
}

// TestRecordedMissingTargets has two engines write what they miss: one a minute, and the one that
// knows of less does not replace the row of the other, unless it looked at the whole table.
func TestRecordedMissingTargets(t *testing.T) {
	w := newWorld(t, missingRules)
	now := time.Unix(1_800_000_000, 0)
	open := func() *Engine {
		e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, missingRules), Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		return e
	}
	record := func(e *Engine, atOnce bool) {
		t.Helper()
		if err := e.RecordMissing(w.ctx, atOnce); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func() map[string]string {
		found := map[string]string{}
		for _, m := range w.inspect().Missing {
			found[m.Rule] = fmt.Sprintf("%d/%d %v %s", m.Sources, m.Targets, m.Whole, m.Examples[0])
		}
		return found
	}
	expect := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, recorded(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("recorded, want (-) and got (+):\n%s", diff)
		}
	}
	a, b := open(), open()
	w.put(change.Item{"pk": s("LINE#l1"), "sk": s("META"), "order": s("o1")})
	from := w.drain(a, 0)
	record(a, false)
	expect(map[string]string{"lines": "1/1 false o1"})
	w.put(change.Item{"pk": s("LINE#l2"), "sk": s("META"), "order": s("o2")})
	w.drain(a, from)
	record(a, false) // within the minute
	expect(map[string]string{"lines": "1/1 false o1"})
	now = now.Add(time.Minute)
	record(a, false)
	expect(map[string]string{"lines": "2/2 false o1"})

	if _, err := b.Process(w.ctx, w.records()[1:2]); err != nil {
		t.Fatal(err)
	}
	record(b, true)
	expect(map[string]string{"lines": "2/2 false o1"})
	for _, d := range oracle.Audit(w.set, w.items(), w.scan("app-dynamill"), now) {
		t.Error(d)
	}
	w.delete(change.Key{Partition: "LINE#l1", Sort: "META"})
	from = w.drain(b, 2)
	if err := b.Work(w.ctx, "rederive", []change.Key{{Partition: "LINE#l2", Sort: "META"}}); err != nil {
		t.Fatal(err)
	}
	for _, whole := range []bool{false, true} {
		if _, err := b.LookForTargets(w.ctx, whole); err != nil {
			t.Fatal(err)
		}
		record(b, true)
		if !whole {
			expect(map[string]string{"lines": "2/2 false o1"}) // what a saw, which saw more
			if err := b.Work(w.ctx, "rederive", []change.Key{{Partition: "LINE#l2", Sort: "META"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect(map[string]string{"lines": "1/1 true o2"})
	w.put(change.Item{"pk": s("CUSTOMER#u"), "sk": s("ORDER#o2")})
	w.drain(b, from)
	record(b, true)
	expect(nil)
}

// TestFormerRuleLeavesNoMissingTargets removes a rule of which the state table says that targets are missing.
func TestFormerRuleLeavesNoMissingTargets(t *testing.T) {
	w := newWorld(t, missingRules)
	e := w.seeded()
	w.put(missingComment("c1", "p1"))
	w.put(change.Item{"pk": s("LINE#l1"), "sk": s("META"), "order": s("o1")})
	w.drain(e, 0)
	if err := e.RecordMissing(w.ctx, true); err != nil {
		t.Fatal(err)
	}
	rows := func() (ids []string) {
		for _, row := range w.scan("app-dynamill") {
			if row["pk"].Text() == state.MissingPartition {
				ids = append(ids, row["sk"].Text())
			}
		}
		slices.Sort(ids)
		return ids
	}
	if diff := cmp.Diff([]string{"comments", "likes", "lines", "title"}, w.spelled(rows())); diff != "" {
		t.Fatalf("rows, want (-) and there (+):\n%s", diff)
	}
	without, _, _ := strings.Cut(missingRules, "  lines:")
	if err := w.changing(without, nil).Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"comments", "likes", "title"}, w.spelled(rows())); diff != "" {
		t.Errorf("rows after the rule is removed, want (-) and there (+):\n%s", diff)
	}
}

// TestWholeLookIsRecordedAfterAFailure has the state table refuse the first request that records
// what a look at the whole table told. The next one records it.
func TestWholeLookIsRecordedAfterAFailure(t *testing.T) {
	for _, refused := range []string{"Query", "DeleteItem"} {
		w := newWorld(t, missingRules)
		a := w.seeded()
		w.put(missingComment("c1", "p1"))
		w.drain(a, 0)
		if err := a.RecordMissing(w.ctx, true); err != nil {
			t.Fatal(err)
		}
		w.delete(keyIn(missingComment("c1", "p1")))
		f := &faulty{Client: w.sim, around: passAll}
		b := w.engine(f)
		w.drain(b, 1)
		if err := b.Work(w.ctx, "rederive", []change.Key{keyIn(missingComment("c1", "p1"))}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.LookForTargets(w.ctx, true); err != nil {
			t.Fatal(err)
		}
		f.around = func(op string, pass func() error) error {
			if op == refused {
				return errCrash
			}
			return pass()
		}
		if err := b.RecordMissing(w.ctx, true); !errors.Is(err, errCrash) {
			t.Fatalf("%s refused: %v, want the failure", refused, err)
		}
		f.around = passAll
		if err := b.RecordMissing(w.ctx, true); err != nil {
			t.Fatal(err)
		}
		if left := w.inspect().Missing; len(left) > 0 {
			t.Errorf("%s refused: recorded after a retry: %+v, want nothing", refused, left)
		}
	}
}
