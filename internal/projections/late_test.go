package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
)

// unreadable is a record as a driver has it that could read only its key and position.
func unreadable(rec change.Record) change.Record {
	return change.Record{Key: rec.Key, Position: rec.Position}
}

func (w *world) rederiveRecords(e *Engine, records ...change.Record) {
	w.t.Helper()
	if err := e.RederiveRecords(w.ctx, records); err != nil {
		w.t.Fatal(err)
	}
}

// crashing opens an engine that crashes before it shows anything.
func (w *world) crashing() *Engine {
	w.t.Helper()
	f := &faulty{Client: w.sim, around: passAll}
	e := w.engine(f)
	f.around = func(op string, pass func() error) error {
		if op == "UpdateItem" {
			return errCrash
		}
		return pass()
	}
	return e
}

func vote(score change.Value) change.Item { return comment("c1", change.Item{"score": score}) }

// TestALateRecordRollsUpWhatItsImagesName gives a record up between its ledger transaction and
// its roll-up, of which no later record of the item tells.
func TestALateRecordRollsUpWhatItsImagesName(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(vote(change.Number("1")))
	from := w.drain(e, 0)
	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"})
	late := w.records()[from:]
	if _, err := w.crashing().Process(w.ctx, late); err == nil {
		t.Fatal("no crash")
	}
	from = len(w.records())
	w.put(vote(s("high"))) // can be no summand: it names no sum
	from = w.drain(e, from)
	w.rederiveRecords(e, late...)
	w.drain(e, from)
	w.expectNoDrift()
}

// TestAnEarlierRecordUndoesNothingOfAnUnreadableOne has the earlier record come after the
// item was rederived for a record that could not be read.
func TestAnEarlierRecordUndoesNothingOfAnUnreadableOne(t *testing.T) {
	title := func(name string) change.Item {
		return change.Item{"pk": s("GROUP#g1"), "sk": s("METADATA"), "name": s(name)}
	}
	user := change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")}
	other := change.Item{"pk": s("USER#u2"), "sk": s("PROFILE"), "name": s("Bob")}
	for name, test := range map[string]struct{ before, earlier, unread change.Item }{
		"a contribution":           {vote(change.Number("1")), vote(change.Number("2")), vote(change.Number("3"))},
		"a contribution that went": {vote(change.Number("1")), vote(change.Number("2")), nil},
		"the first contribution":   {nil, vote(change.Number("2")), nil},
		"a parent":                 {title("a"), title("b"), title("c")},
		"a parent that went":       {title("a"), title("b"), nil},
		"a reference that came back": {comment("c1", change.Item{"userId": s("u1")}), comment("c1", change.Item{"userId": s("u2")}),
			comment("c1", change.Item{"userId": s("u1")})},
		"a reference that came at last": {nil, comment("c1", change.Item{"userId": s("u2")}), comment("c1", change.Item{"userId": s("u1")})},
		"a reference that was taken off": {comment("c1", change.Item{"userId": s("u1")}), comment("c1", change.Item{"userId": s("u2")}),
			comment("c1", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			e := w.seeded()
			w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
			w.put(user)
			w.put(other)
			w.put(change.Item{"pk": s("USER#u1"), "sk": s("GROUP#g1")})
			if test.before != nil {
				w.put(test.before)
			}
			from := w.drain(e, 0)
			w.put(test.earlier)
			if test.unread != nil {
				w.put(test.unread)
			} else {
				w.delete(change.Key{Partition: test.earlier.Lookup("pk").Text(), Sort: test.earlier.Lookup("sk").Text()})
			}
			records := w.records()[from:]
			from += len(records)
			w.rederiveRecords(e, unreadable(records[1]))
			if done, err := e.Process(w.ctx, records[:1]); done != 1 || err != nil {
				t.Fatal(done, err)
			}
			from = w.drain(e, from)
			w.expectNoDrift()
			w.update(change.Key{Partition: "USER#u1", Sort: "PROFILE"}, change.Item{"name": s("Cid")}) // reaches who refers to it
			w.drain(e, from)
			w.expectNoDrift()
		})
	}
}

// TestALateRecordClearsWhatWasParkedOfAChild has the record that makes a child good
// again, or takes it away, come late or unreadable: no later one would clear it.
func TestALateRecordClearsWhatWasParkedOfAChild(t *testing.T) {
	for name, then := range map[string]change.Item{"good": comment("c1", change.Item{"userId": s("u1")}), "gone": nil} {
		for how, told := range map[string]func(change.Record) change.Record{
			"late": func(rec change.Record) change.Record { return rec }, "unreadable": unreadable,
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				w := newWorld(t, socialRules)
				e := w.seeded()
				w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
				w.put(comment("c1", change.Item{"userId": s("a#b")}))
				from := w.drain(e, 0)
				w.expectParked(e, "comment-author/POST#p1/COMMENT#c1")
				if then != nil {
					w.put(then)
				} else {
					w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"})
				}
				records := w.records()[from:]
				w.rederiveRecords(e, told(records[0]))
				w.drain(e, from+len(records))
				w.expectParked(e)
				w.expectNoDrift()
			})
		}
	}
}

func TestALateDeletionOfAChildDropsItsReference(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
	w.put(comment("c1", change.Item{"userId": s("u1")}))
	references := func() (n int) {
		for _, it := range w.scan("app-dynamill") {
			if strings.HasPrefix(it.Lookup("pk").Text(), "ref/") {
				n++
			}
		}
		return n
	}
	from := w.drain(e, 0)
	if references() != 1 {
		t.Fatal("the comment has put no reference")
	}
	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"})
	w.rederiveRecords(e, w.records()[from:]...)
	if n := references(); n != 0 {
		t.Errorf("%d references are left", n)
	}
}

// TestAPositionOfAnotherTablesStreamHidesNothing hands over a record whose stream is later than
// any that the table has had.
func TestAPositionOfAnotherTablesStreamHidesNothing(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	user := change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")}
	w.put(user)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(comment("c1", change.Item{"userId": s("u1"), "score": change.Number("1")}))
	from := w.drain(e, 0)
	foreign, err := change.NewPosition("2999-01-01T00:00:00.000", "1")
	if err != nil {
		t.Fatal(err)
	}
	w.rederiveRecords(e, change.Record{Key: change.Key{Partition: "USER#u1", Sort: "PROFILE"}, Position: foreign},
		change.Record{Key: change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"}, Position: foreign})
	w.rename("Bob")
	w.put(comment("c1", change.Item{"userId": s("u1"), "score": change.Number("2")}))
	w.drain(e, from)
	w.expectNoDrift()
}

// TestAKeyThatNoItemCanHaveHoldsUpNothing rederives a good record among damaged ones.
func TestAKeyThatNoItemCanHaveHoldsUpNothing(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(vote(change.Number("1")))
	damaged := []change.Record{
		{Key: change.Key{Partition: "USER#" + strings.Repeat("x", 2048), Sort: "PROFILE"}},
		{Key: change.Key{Partition: "USER#\xff", Sort: "PROFILE"}},
		{Key: change.Key{Partition: "POST#p1"}}, {Key: change.Key{Sort: "METADATA"}},
	}
	w.rederiveRecords(e, append(damaged, w.records()...)...)
	w.expectNoDrift()
}

// TestARederivedParentOfManyLeavesATask spoils children behind the bound, and again when the first task is half done.
func TestARederivedParentOfManyLeavesATask(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	hurries(e)
	from := w.drain(e, 0)
	user := change.Key{Partition: "USER#u1", Sort: "PROFILE"}
	spoil := func() {
		for i := range children { // its record is lost
			w.update(change.Key{Partition: "POST#p1", Sort: fmt.Sprintf("COMMENT#c%02d", i)}, change.Item{"userName": s("Eve")})
		}
		if err := e.Rederive(w.ctx, []change.Key{user}); err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	if n := w.named("Ann"); n != 5 {
		t.Errorf("%d comments are filled with the request, want 5", n)
	}
	w.expectTasks(e, 1)
	tasks, _, err := host.ReadTasks(w.ctx, e.tables.Reader, e.planner)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.workPiece(w.ctx, tasks[0], tasks); err != nil {
		t.Fatal(err)
	}
	if n := w.named("Ann"); n != 10 {
		t.Errorf("%d comments are filled after a piece, want 10", n)
	}
	spoil()
	w.expectTasks(e, 1)
	if did, err := e.WorkTasks(w.ctx); err != nil || did.Pieces != 4 {
		t.Errorf("%d pieces, %v; want 4", did.Pieces, err)
	}
	w.expectTasks(e, 0)
	w.expectNoDrift()
	w.drain(e, from)
	w.expectNoDrift()
}

// TestATaskThatFailsHoldsUpNoOther refuses every read of one parent.
func TestATaskThatFailsHoldsUpNoOther(t *testing.T) {
	w, open := crowd(t)
	f := &faulty{Client: w.sim, around: passAll}
	e := open(f)
	e.suffix = 0 // it begins with the first task
	from := w.drain(e, 0)
	w.put(change.Item{"pk": s("USER#u0"), "sk": s("PROFILE"), "name": s("Zoe")})
	for i := range children {
		w.put(comment(fmt.Sprintf("d%02d", i), change.Item{"userId": s("u0")}))
	}
	from = w.drain(e, from)
	w.put(change.Item{"pk": s("USER#u0"), "sk": s("PROFILE"), "name": s("Yan")})
	w.rename("Bob")
	from = w.drain(e, from)
	w.expectTasks(e, 2)
	query := 0
	f.around = func(op string, pass func() error) error {
		if op == "Query" {
			if query++; query == 2 { // after the list: the first task's children
				return errCrash
			}
		}
		return pass()
	}
	if _, err := e.WorkTasks(w.ctx); !errors.Is(err, errCrash) {
		t.Error("the error of the task that failed is not reported")
	}
	w.expectTasks(e, 1)
	if n := w.named("Bob"); n != children {
		t.Errorf("%d comments are renamed, want %d", n, children)
	}
	f.around = passAll
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expectNoDrift()
}

// TestWorkThatIsStoppedSaysSo stops an engine with a cause of the driver's own.
func TestWorkThatIsStoppedSaysSo(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.engine(nil)
	ctx, stop := context.WithCancelCause(w.ctx)
	stop(errCrash)
	if err := e.Seed(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// TestWhatALateSeederMovesIsShown has a seeder freeze until others have seeded and shown
// everything. A rule that it takes for new is live by then: nothing but the seeder itself
// and the item's records, which cannot be read, tells what is to be shown.
func TestWhatALateSeederMovesIsShown(t *testing.T) {
	post, c1 := change.Key{Partition: "POST#p1", Sort: "METADATA"}, change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"}
	for name, tt := range map[string]struct {
		op            string       // in which the seeder freezes
		before, after func(*world) // others have seeded
		crashes, told bool
		want          string
	}{
		"a loss": {"TransactWriteItems", func(*world) {}, func(w *world) {
			w.update(c1, change.Item{"score": {}})
			w.delete(c1)
		}, false, true, "0"},
		"a loss, and it crashes": {"TransactWriteItems", func(*world) {}, func(w *world) {
			w.update(c1, change.Item{"score": {}})
			w.delete(c1)
		}, true, true, "0"},
		"a gain": {"Scan", func(w *world) { w.delete(c1) }, func(w *world) { w.put(vote(change.Number("2"))) }, false, false,
			"2"},
		"a gain, and it crashes": {"Scan", func(w *world) { w.delete(c1) }, func(w *world) { w.put(vote(change.Number("2"))) }, true, true, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			w.put(w.keyItem(post))
			w.put(vote(change.Number("1")))
			from := len(w.records())
			f := &faulty{Client: w.sim, around: passAll}
			seeder := w.engine(f)
			var frozen, moved atomic.Bool
			f.around = func(op string, pass func() error) error {
				if moved.Load() && tt.crashes {
					return errCrash
				}
				if op != tt.op || !frozen.CompareAndSwap(false, true) {
					err := pass()
					if frozen.Load() && op == "TransactWriteItems" && err == nil {
						moved.Store(true)
					}
					return err
				}
				var err error
				if op == "Scan" {
					err = pass()
				}
				tt.before(w)
				w.seeded()
				tt.after(w)
				if op == "Scan" {
					return err
				}
				return pass()
			}
			if err := seeder.Seed(w.ctx, nil); err != nil && !errors.Is(err, errCrash) || !moved.Load() {
				t.Fatal(err, moved.Load())
			}
			if tt.told {
				w.redeliverUnreadable(slices.DeleteFunc(w.records()[from:], func(r change.Record) bool { return r.Key != c1 }))
			}
			w.expect(post, "score", change.Number(tt.want))
		})
	}
}

// TestSeedingLeavesNoMarkOfWhatWasLost seeds an item again that lost its contribution meanwhile.
func TestSeedingLeavesNoMarkOfWhatWasLost(t *testing.T) {
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(vote(change.Number("1")))
	e := w.engine(nil)
	pass, _, err := e.NextPass(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.work(e, pass); err != nil {
		t.Fatal(err)
	}
	w.update(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"}, change.Item{"score": {}})
	marked := false
	f := &faulty{Client: w.sim, around: passAll}
	again := w.engine(f)
	f.before = func(_ string, in any) {
		if tx, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
			marked = marked || slices.ContainsFunc(tx.TransactItems, func(it ddb.TransactWriteItem) bool {
				return it.Put != nil &&
					it.Put.Item["due"] != nil
			})
		}
	}
	if err := w.work(again, pass); err != nil {
		t.Fatal(err)
	}
	if !marked {
		t.Error("the loss was not marked")
	}
	for _, row := range w.scan("app-dynamill") {
		if due := row.Lookup("due"); due.Kind() != change.KindAbsent {
			t.Errorf("%s is still due: %v", row["pk"].Text(), due)
		}
	}
}

// redeliverUnreadable has records rederived that cannot be read, by a worker that crashes
// before it shows what they change, and by another.
func (w *world) redeliverUnreadable(records []change.Record) {
	w.t.Helper()
	for i := range records {
		records[i] = unreadable(records[i])
	}
	if err := w.crashing().RederiveRecords(w.ctx, records); err != nil && !errors.Is(err, errCrash) {
		w.t.Fatal(err)
	}
	w.rederiveRecords(w.engine(nil), records...)
}
