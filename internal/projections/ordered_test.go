package projections

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const orderedRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Tag:     { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true }
rules:
  recent:       { last: 3, of: Comment, as: Post.recent, attributes: [commentId, text], order: at }
  last-comment: { last: [text as lastText, at as lastAt], of: Comment, to: Post, order: at }
  lowest:       { min: stars, of: Comment, as: Post.lowest, where: stars != 0 }
  best:         { first: [text as bestText], of: Comment, to: Tag, each: tags as tag, order: stars }
  tag-count:    { count: Comment, each: tags as tag, as: Tag.comments }
`

var (
	thePost = change.Key{Partition: "POST#p", Sort: "METADATA"}
	tagRed  = change.Key{Partition: "TAG#red", Sort: "METADATA"}
)

// recentRule is the file with its first rule alone.
func recentRule() string {
	lines := strings.Split(orderedRules, "\n")
	return strings.Join(append(lines[:6:6], lines[7:9]...), "\n") + "\n"
}

func (w *world) remark(id string, with change.Item) {
	it := change.Item{"pk": s("POST#p"), "sk": s("COMMENT#" + id), "text": s("text " + id)}
	for name, v := range with {
		it[name] = v
	}
	w.put(it)
}

func shownComments(ids ...string) change.Value {
	var all []change.Value
	for _, id := range ids {
		all = append(all, change.Map(change.Item{"commentId": s(id), "text": s("text " + id)}))
	}
	return change.List(all)
}

// TestTargetsShowTheirFirstAndLastItems has items come, move in the order, lose it, and go.
func TestTargetsShowTheirFirstAndLastItems(t *testing.T) {
	w := newWorld(t, orderedRules)
	w.put(w.keyItem(thePost))
	e, read := w.seeded(), 0
	for _, step := range []struct {
		name   string
		do     func()
		recent change.Value
		last   change.Value
	}{
		{"nothing", func() {}, change.Value{}, change.Value{}},
		{"a number", func() { w.remark("a", change.Item{"at": number("7"), "stars": number("4"), "tags": tagged("red")}) },
			shownComments("a"), number("7")},
		{"a text comes behind numbers", func() { w.remark("b", change.Item{"at": s("2026"), "stars": number("2")}) },
			shownComments("b", "a"), s("2026")},
		{"a smaller number", func() { w.remark("c", change.Item{"at": number("-3.5"), "tags": tagged("red", "blue")}) },
			shownComments("b", "a", "c"), s("2026")},
		{"an equal number sorts by the key", func() { w.remark("d", change.Item{"at": number("7"), "stars": number("0")}) },
			shownComments("b", "d", "a"), s("2026")},
		{"the last loses its order", func() { w.remark("b", change.Item{"stars": number("1")}) },
			shownComments("d", "a", "c"), number("7")},
		{"the last goes", func() { w.delete(change.Key{Partition: "POST#p", Sort: "COMMENT#d"}) }, shownComments("a", "c"), number("7")},
		{"a boolean has no order", func() { w.remark("a", change.Item{"at": change.Bool(true)}) }, shownComments("c"), number("-3.5")},
		{"nothing is left", func() { w.remark("c", change.Item{"at": change.Null()}) }, change.Value{}, change.Value{}},
	} {
		step.do()
		read = w.drain(e, read)
		t.Log(step.name)
		w.expect(thePost, "recent", step.recent)
		w.expect(thePost, "lastAt", step.last)
		w.expectRight()
	}
	if got := w.get(tagRed); got != nil {
		t.Errorf("without a comment that has it, there is %v", got)
	}
}

// TestHotDisplayIsWrittenOnceASecond has 200 comments a second come to one post, in batches of ten.
func TestHotDisplayIsWrittenOnceASecond(t *testing.T) {
	const seconds = 3
	file := recentRule()
	w := newWorld(t, file)
	w.put(w.keyItem(thePost))
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	cfg := Config{Client: w.sim, Table: "app", Rules: loadRules(t, file), DisplayEvery: time.Second, Now: func() time.Time { return now }}
	e, err := Open(w.ctx, cfg)
	if err == nil {
		err = e.Seed(w.ctx, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	read := w.drain(e, 0)
	shown := func() (writes int) {
		for _, rec := range w.records() {
			if rec.Key == thePost && rec.Old != nil && !rec.Old.Lookup("recent").Equal(rec.New.Lookup("recent")) {
				writes++
			}
		}
		return writes
	}
	for batch := range seconds * 20 {
		for i := range 10 {
			n := batch*10 + i
			w.remark(fmt.Sprintf("%04d", n), change.Item{"at": number(fmt.Sprint(n))})
		}
		records := w.records()[read:]
		if done, err := e.Process(w.ctx, records); err != nil || done != len(records) {
			t.Fatalf("%d of %d are done: %v", done, len(records), err)
		}
		read += len(records)
		if now = now.Add(50 * time.Millisecond); batch%20 == 19 {
			if _, err := e.WorkTasks(w.ctx); err != nil { // a second is over
				t.Fatal(err)
			}
		}
	}
	if writes := shown(); writes > seconds+1 {
		t.Errorf("%d writes of the display in %d seconds", writes, seconds)
	}
	w.expect(thePost, "recent", shownComments("0599", "0598", "0597"))
	w.drain(e, read)
	w.expectRight()
}

// TestPutOffRollupSurvivesACrash has a worker put a roll-up off and crash. Another one does it.
func TestPutOffRollupSurvivesACrash(t *testing.T) {
	w := newWorld(t, orderedRules)
	w.put(w.keyItem(thePost))
	open := func() *Engine {
		e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, w.file), DisplayEvery: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	read := w.drain(e, 0)
	for _, id := range []string{"a", "b"} {
		w.remark(id, change.Item{"at": s(id)})
		read = w.drain(e, read)
	}
	w.expect(thePost, "recent", shownComments("a"))
	if rows := w.under("tasks"); len(rows) != 2 {
		t.Fatalf("%d roll-ups are put off, want those of two rules: %v", len(rows), rows)
	}
	other, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, w.file),
		Now: func() time.Time { return time.Now().Add(time.Minute) }})
	if err != nil {
		t.Fatal(err)
	}
	if did, err := other.WorkTasks(w.ctx); did.Pieces != 2 || err != nil {
		t.Errorf("%d roll-ups are done: %v", did.Pieces, err)
	}
	w.drain(other, read)
	w.expect(thePost, "recent", shownComments("b", "a"))
	w.expectRight()
}

// under are the rows of the state table under a partition key.
func (w *world) under(pk string) (rows []change.Item) {
	for _, row := range w.scan("app-dynamill") {
		if row["pk"].Text() == pk {
			rows = append(rows, row)
		}
	}
	return rows
}

// TestLargeGroupCostsNoMoreAChange compares what a change costs in a group of ten members with what it costs in one of 100,000.
func TestLargeGroupCostsNoMoreAChange(t *testing.T) {
	file := recentRule()
	cost := func(members int) (write, read float64) {
		w := newWorld(t, file)
		w.put(w.keyItem(thePost))
		e := w.seeded()
		at := w.drain(e, 0)
		id, group := oracle.RuleID("recent"), "POST#p%2FMETADATA"
		for n := range members { // the rows as the engine puts them
			w.putState(change.Item{"pk": s("member/" + id + "/" + group), "sk": s(fmt.Sprintf("n1503%03d%06d POST#p/COMMENT#x%06d", 100, n, n)),
				"shown": change.Map(change.Item{"commentId": s(fmt.Sprintf("x%06d", n)), "text": s("old")})})
		}
		w.putState(change.Item{"pk": s("sum/" + id + "/" + group + "/0"), "sk": s("a"), "value": number("0"),
			"members": number(fmt.Sprint(members)), "ops": number(fmt.Sprint(members))})
		w.remark("new", change.Item{"at": number("999")})
		at = w.drain(e, at)
		w.remark("new", change.Item{"at": number("999"), "text": s("other")})
		before, records := w.sim.Usage(), w.records()[at:]
		if done, err := e.Process(w.ctx, records); err != nil || done != len(records) {
			t.Fatalf("%d records are done: %v", done, err)
		}
		used := w.sim.Usage().Sub(before)
		if first := w.get(thePost)["recent"].List()[0].Map()["text"]; !first.Equal(s("other")) {
			t.Errorf("with %d members, %v is shown first", members, first)
		}
		return used.WriteUnits, used.ReadUnits
	}
	write, read := cost(10)
	largeWrite, largeRead := cost(100_000)
	if write != largeWrite || read != largeRead || write != 7 {
		t.Errorf("ten members take %v and %v units, 100,000 take %v and %v", write, read, largeWrite, largeRead)
	}
}

// largeLists are lists of an item that is derived, beside a count.
const largeLists = `
version: 1
table: { keys: [pk, sk] }
entities:
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Tag:     { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true }
rules:
  tag-count: { count: Comment, each: tags as tag, as: Tag.comments }
  best:      { first: 3, of: Comment, as: Tag.best, each: tags as tag, attributes: [text], order: stars }
  other:     { first: 3, of: Comment, as: Tag.other, each: tags as tag, attributes: [more], order: stars }
`

// remarkOf puts a comment of the tag, with so many KB for the first list, and for the second.
func (w *world) remarkOf(id string, text, more int) {
	w.remark(id, change.Item{"text": s(strings.Repeat("x", text<<10)), "more": s(strings.Repeat("y", more<<10)), "stars": change.Number(id),
		"tags": change.List([]change.Value{s("red")})})
}

// TestAListThatIsTooLargeIsParkedAlone has lists of a derived item grow beyond what the item has room for, and shrink again.
func TestAListThatIsTooLargeIsParkedAlone(t *testing.T) {
	none, best, bytes := []string(nil), []string{"best"}, func(v change.Value) (kilobytes int) { return v.Size() >> 10 }
	type step struct {
		text, more  int // of one comment each
		listed      int // KB that the first list shows then
		listedOther int // the second one
		parked      []string
	}
	for name, c := range map[string]struct {
		beside int // KB that an application has put on the item
		steps  []step
	}{
		"it grows":           {0, []step{{150, 1, 150, 1, none}, {150, 1, 300, 2, none}, {150, 1, 300, 3, best}}},
		"it comes too large": {0, []step{{150, 1, 150, 1, none}, {260, 1, 150, 2, best}}},
		"beside one that does not fit": {0, []step{{250, 100, 250, 100, none}, {60, 1, 250, 101, best},
			{0, 40, 250, 141, best}}},
		"beside an attribute of a program": {200, []step{{100, 1, 100, 1, none}, {120, 1, 100, 2, best}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, largeLists)
			e, read := w.seeded(), 0
			for i, s1 := range c.steps {
				w.remarkOf(fmt.Sprint(i), s1.text, s1.more)
				if read = w.drain(e, read); i == 0 && c.beside > 0 {
					tag := w.get(tagRed)
					tag["theirs"] = s(strings.Repeat("z", c.beside<<10))
					w.put(tag)
					read = w.drain(e, read)
				}
				tag := w.get(tagRed)
				if tag["comments"].Text() != fmt.Sprint(i+1) || bytes(tag["best"]) != s1.listed || bytes(tag["other"]) != s1.listedOther {
					t.Errorf("after %d the tag has %s comments, %d KB and %d KB are listed", i, tag["comments"].Text(), bytes(tag["best"]),
						bytes(tag["other"]))
				}
				all, err := e.Parked(w.ctx)
				if err != nil {
					t.Fatal(err)
				}
				var rules []string
				for _, p := range all {
					rules = append(rules, p.Rule+strings.TrimPrefix(p.Code, "write.rejected"))
				}
				if !slices.Equal(rules, s1.parked) {
					t.Errorf("after %d these are parked: %v", i, rules)
				}
			}
			w.remarkOf(fmt.Sprint(len(c.steps)-1), 1, 1)
			w.drain(e, read)
			w.expectNoDrift()
		})
	}
}

// TestTwoWorkersThatShowOneMomentAreNoOtherProgram has two workers read one count of operations, and different members: between their looks
// at these a comment came, whose worker has crashed before it showed anything.
func TestTwoWorkersThatShowOneMomentAreNoOtherProgram(t *testing.T) {
	const derived = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" }, derived: true }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  recent: { last: 3, of: Comment, as: Post.recent, attributes: [commentId, text], order: at }
`
	for name, rules := range map[string]string{"on an item": recentRule(), "derived": derived} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules)
			if rules != derived {
				w.put(w.keyItem(thePost))
			}
			e, second := w.seeded(), change.Item{"at": s("2")}
			w.remark("1", change.Item{"at": s("1")})
			read := w.drain(e, 0)
			process := func(e *Engine, records []change.Record) error {
				_, err := e.Process(w.ctx, records)
				return err
			}
			dies := w.engine(&faulty{Client: w.sim, around: func(op string, pass func() error) error {
				if op == "UpdateItem" {
					return errCrash
				}
				return pass()
			}})
			came := false
			later := w.engine(&faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
				if query, is := in.(*dynamodb.QueryInput); !is || came || !isOfMembers(query) {
					return
				}
				came = true
				at := len(w.records())
				w.remark("3", change.Item{"at": s("3")})
				if err := process(dies, w.records()[at:]); !errors.Is(err, errCrash) {
					t.Errorf("the other worker ends with %v", err)
				}
			}})
			shown := false
			earlier := w.engine(&faulty{Client: w.sim, around: passAll, before: func(op string, in any) {
				update, is := in.(*dynamodb.UpdateItemInput)
				if !is || shown || *update.TableName != "app" {
					return
				}
				shown = true
				if err := later.Rederive(w.ctx, []change.Key{thePost}); err != nil {
					t.Error(err)
				}
			}})
			w.remark("2", second)
			if err := process(earlier, w.records()[read:]); err != nil || !shown || !came {
				t.Fatalf("two workers showed the post: %t, %t; %v", shown, came, err)
			}
			if got := w.get(thePost)["recent"]; !got.Equal(shownComments("2", "1")) {
				t.Errorf("behind both, the post shows %v", got)
			}
			w.drain(e, read)
			if got := w.get(thePost)["recent"]; !got.Equal(shownComments("3", "2", "1")) {
				t.Errorf("in the end, the post shows %v", got)
			}
			if n := e.host.Counters.Heals.Load(); n != 0 {
				t.Errorf("%d corrections were counted", n)
			}
			w.expectNoDrift()
		})
	}
}

// isOfMembers reports whether a query reads what rules list.
func isOfMembers(in *dynamodb.QueryInput) bool {
	for _, v := range in.ExpressionAttributeValues {
		if strings.HasPrefix(table.TextOf(v), state.MemberRows+"/") {
			return true
		}
	}
	return false
}

// TestAValueThatDynamoDBRefusesIsParkedAlone has a list show a value that is nested too deeply there. The other rules of the item go on.
func TestAValueThatDynamoDBRefusesIsParkedAlone(t *testing.T) {
	w := newWorld(t, largeLists)
	e, read := w.seeded(), 0
	for i := range 4 {
		text := s("x")
		for range 30 * (i % 2) {
			text = change.List([]change.Value{text})
		}
		w.remark(fmt.Sprint(i), change.Item{"text": text, "more": s("y"), "stars": change.Number(fmt.Sprint(i)),
			"tags": change.List([]change.Value{s("red")})})
		read = w.drain(e, read)
		tag := w.get(tagRed)
		if listed, others := len(tag["best"].List()), len(tag["other"].List()); tag["comments"].Text() != fmt.Sprint(i+1) || listed != 1 ||
			others != min(i+1, 3) {
			t.Errorf("after %d the tag has %s comments, %d and %d are listed", i, tag["comments"].Text(), listed, others)
		}
	}
	if all, err := e.Parked(w.ctx); err != nil || len(all) != 1 || all[0].Rule != "best" || all[0].Code != "write.rejected" {
		t.Errorf("these are parked: %v, %v", all, err)
	}
	w.delete(tagRed) // it is made anew without what is refused
	read = w.drain(e, read)
	if tag := w.get(tagRed); tag["comments"].Text() != "4" || len(tag["best"].List()) > 0 || len(tag["other"].List()) != 3 {
		t.Errorf("the tag that was deleted has %s comments, %d and %d are listed", tag["comments"].Text(), len(tag["best"].List()),
			len(tag["other"].List()))
	}
	for _, id := range []string{"1", "3"} {
		w.delete(change.Key{Partition: "POST#p", Sort: "COMMENT#" + id})
	}
	w.drain(e, read)
	w.expectNoDrift()
}
