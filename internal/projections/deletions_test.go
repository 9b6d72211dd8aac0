package projections

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

const slugDeletion = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" }, unique: slug }
  Like: { key: { pk: "USER#${userId}", sk: "LIKE#${likeId}" } }
rules:
  likes: { delete: Like, with: Post, by: { slug: about } }
`

var aLike = change.Key{Partition: "USER#u", Sort: "LIKE#1"}

func (w *world) putSlug(id, slug string) change.Key {
	w.put(change.Item{"pk": s("POST#" + id), "sk": s("METADATA"), "slug": s(slug)})
	return change.Key{Partition: "POST#" + id, Sort: "METADATA"}
}

func (w *world) putLike(about string) {
	w.put(change.Item{"pk": s(aLike.Partition), "sk": s(aLike.Sort), "about": s(about)})
}

// TestANewRuleDeletesNoChildOfAnItemThatItHasNotSeen deletes an item whose unique value another one has, which the scan for the new rule
// has not come to. Children of the value stay; they go if no item has it once the scan has ended.
func TestANewRuleDeletesNoChildOfAnItemThatItHasNotSeen(t *testing.T) {
	for name, moved := range map[string]bool{"another item has the value": true, "no item has it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, slugDeletion)
				former := w.putSlug("p", "s")
				if moved {
					w.putSlug("q", "s")
				}
				from := len(w.records())
				e := w.engine(nil)
				w.putLike("s")
				from = w.drain(e, from)
				w.delete(former)
				at := w.drain(e, from)
				time.Sleep(time.Minute)
				if did, err := e.WorkTasks(w.ctx); err != nil || did.Waiting != 1 {
					t.Fatalf("%d tasks wait for the seeding, %v", did.Waiting, err)
				}
				w.putLike("another")
				w.putLike("s") // its record finds the mark
				at = w.drain(e, at)
				if w.get(aLike) == nil {
					t.Error("the like was deleted before all items were seen")
				}
				if err := e.Seed(w.ctx, nil); err != nil {
					t.Fatal(err)
				}
				if did, err := e.WorkTasks(w.ctx); err != nil || did.Waiting != 0 {
					t.Fatalf("%d tasks wait behind the seeding, %v", did.Waiting, err)
				}
				w.drain(e, at)
				if there := w.get(aLike) != nil; there != moved {
					t.Errorf("in the end the like is there: %t, want %t", there, moved)
				}
			})
		})
	}
}

// TestADeletionIsMarkedAnewWithinASecond deletes an item twice within a second, the first time in records that come twice.
func TestADeletionIsMarkedAnewWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, slugDeletion)
		e := w.seeded()
		w.putLike("s")
		post := w.putSlug("p", "s")
		at := w.drain(e, 0)
		w.delete(post)
		at = w.drain(e, at)
		for range 3 {
			w.drain(e, at-1)
		}
		w.putSlug("p", "s")
		at = w.drain(e, at)
		w.delete(post)
		w.drain(e, at)
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		if w.get(aLike) != nil {
			t.Error("the like outlives its post")
		}
	})
}

// TestAChildThatIsWrittenWhileAnItemTakesTheValueOverStays writes a child between the records of two items, the former and the new one of
// a value.
func TestAChildThatIsWrittenWhileAnItemTakesTheValueOverStays(t *testing.T) {
	for name, moved := range map[string]bool{"another item takes the value over": true, "none does": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, slugDeletion)
				e := w.seeded()
				post := w.putSlug("p", "s")
				at := w.drain(e, 0)
				w.delete(post)
				at = w.drain(e, at)
				time.Sleep(5 * time.Second)
				w.putLike("s")
				at = w.drain(e, at)
				if w.get(aLike) == nil {
					t.Error("the like was deleted at once")
				}
				if moved {
					w.putSlug("q", "s")
				}
				at = w.drain(e, at)
				began := time.Now()
				if _, err := e.WorkTasks(w.ctx); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(began); waited > 30*time.Second {
					t.Errorf("the task has waited for %v more", waited)
				}
				w.drain(e, at)
				if there := w.get(aLike) != nil; there != moved {
					t.Errorf("in the end the like is there: %t, want %t", there, moved)
				}
			})
		})
	}
}

// TestAWorkerThatCrashesBehindAMarkLosesNoTask has a worker that lost its shard apply a record again, and crash once it has marked the
// value again. The worker that has the shard has left a task for the former mark, and is done with the record.
func TestAWorkerThatCrashesBehindAMarkLosesNoTask(t *testing.T) {
	for name, again := range map[string]int{"the deletion again": 0, "a like that came behind it again": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, slugDeletion)
				e := w.seeded()
				w.putLike("s")
				post := w.putSlug("p", "s")
				at := w.drain(e, 0)
				w.delete(post)
				w.put(change.Item{"pk": s("USER#u"), "sk": s("LIKE#2"), "about": s("s")})
				w.drain(e, at)
				crash := errors.New("crash")
				zombie := w.engine(&faulty{Client: w.sim, around: func(op string, pass func() error) error {
					if op == "PutItem" {
						return crash
					}
					return pass()
				}})
				if _, err := zombie.Process(w.ctx, w.records()[at+again:at+again+1]); !errors.Is(err, crash) {
					t.Fatalf("the worker did not crash: %v", err)
				}
				time.Sleep(time.Minute)
				if _, err := e.WorkTasks(w.ctx); err != nil {
					t.Fatal(err)
				}
				if left := len(w.items()); left > 0 {
					t.Errorf("%d likes outlive their post", left)
				}
			})
		})
	}
}

// TestNoChildIsLeftToAWorkerThatCrashed has a worker raise the mark of a value, and crash before it puts a task, while another worker is
// about to delete children under the mark as it was: those of the task, or one that has just come.
func TestNoChildIsLeftToAWorkerThatCrashed(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, asleep := range []string{"a read of the mark", "a transaction"} {
			t.Run(fmt.Sprintf("before %s, a child that has just come: %t", asleep, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { raiseMark(t, late, asleep == "a transaction") })
			})
		}
	}
}

func raiseMark(t *testing.T, late, inTransaction bool) {
	w := newWorld(t, slugDeletion)
	e := w.seeded()
	w.putLike("s")
	post := w.putSlug("p", "s")
	at := w.drain(e, 0)
	w.delete(post)
	deletion := w.records()[at:]
	w.drain(e, at)
	zombie := w.engine(&faulty{Client: w.sim, around: func(op string, pass func() error) error {
		if op == "PutItem" {
			return errCrash
		}
		return pass()
	}})
	var mu sync.Mutex
	reads, raised := 0, false
	worker := w.engine(&faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
		mu.Lock()
		defer mu.Unlock()
		switch in := in.(type) {
		case *dynamodb.BatchGetItemInput:
			for _, key := range in.RequestItems["app-dynamill"].Keys {
				if strings.HasPrefix(attributes.ItemFromTable(key)["pk"].Text(), "parent/") {
					reads++
				}
			}
			if raised || inTransaction || reads < 2 {
				return
			}
		case *dynamodb.TransactWriteItemsInput:
			if raised || !inTransaction || in.TransactItems[len(in.TransactItems)-1].Delete == nil {
				return
			}
		default:
			return
		}
		raised = true
		if _, err := zombie.Process(w.ctx, deletion); !errors.Is(err, errCrash) {
			t.Errorf("the other worker ends with %v", err)
		}
	}})
	time.Sleep(time.Minute)
	if late {
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		from := len(w.records())
		w.putLike("s")
		reads = 1 // a fill reads the mark once
		if _, err := worker.Process(w.ctx, w.records()[from:]); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if _, err := worker.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	}
	if left := w.items(); !raised || len(left) > 0 {
		t.Errorf("%d likes outlive their post; the mark was raised: %t", len(left), raised)
	}
}

// TestAValueThatIsTakenOverLosesItsMark has the worker of a like raise the mark while another one, which has seen that an item took the
// value over, is about to take it away. Then the item takes another value.
func TestAValueThatIsTakenOverLosesItsMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, slugDeletion)
		e := w.seeded()
		post := w.putSlug("p", "s")
		at := w.drain(e, 0)
		w.delete(post)
		at = w.drain(e, at)
		raised := false
		worker := w.engine(&faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
			update, is := in.(*dynamodb.UpdateItemInput)
			if !is || raised || !strings.Contains(*update.UpdateExpression, "REMOVE") {
				return
			}
			raised = true
			from := len(w.records())
			w.putLike("s")
			w.drain(e, from)
		}})
		w.putSlug("q", "s")
		if _, err := worker.Process(w.ctx, w.records()[at:]); err != nil {
			t.Fatal(err)
		}
		w.putSlug("q", "t")
		w.drain(e, at)
		time.Sleep(time.Minute)
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		if !raised || w.get(aLike) == nil {
			t.Errorf("the like of the item that took the value over is gone; its mark was raised: %t", raised)
		}
	})
}

// TestDanglingReferencesArePrunedSideBySide deletes a post whose likes were moved to another post, before their records come.
func TestDanglingReferencesArePrunedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const likes, took = 60, 10 * time.Millisecond
		w := newWorld(t, slugDeletion)
		e := w.engine(&faulty{Client: w.sim, around: func(op string, pass func() error) error {
			if op == "DeleteItem" {
				time.Sleep(took)
			}
			return pass()
		}})
		if err := e.Seed(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		post := w.putSlug("p", "s")
		put := func(about string) {
			for i := range likes {
				w.put(change.Item{"pk": s("USER#u"), "sk": s(fmt.Sprintf("LIKE#%d", i)), "about": s(about)})
			}
		}
		put("s")
		w.drain(e, 0)
		put("another")
		w.delete(post)
		all := w.records()
		if _, err := e.Process(w.ctx, all[len(all)-1:]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		if spent := time.Since(began); spent > likes*took/4 {
			t.Errorf("%d references were pruned in %s", likes, spent)
		}
		for _, row := range w.scan("app-dynamill") {
			if strings.HasPrefix(row["pk"].Text(), "ref/") {
				t.Errorf("a reference is left: %v", row)
			}
		}
	})
}

// TestALateBatchTellsOfEachValueThatWasDeleted deletes a post and makes it again with another slug, in a batch that comes late.
func TestALateBatchTellsOfEachValueThatWasDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, slugDeletion)
		e := w.seeded()
		w.putLike("s")
		post := w.putSlug("p", "s")
		at := w.drain(e, 0)
		w.delete(post)
		w.putSlug("p", "other")
		w.rederiveRecords(e, w.records()[at:]...)
		time.Sleep(time.Minute) // an item may have the slug by a record that is read later
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		if w.get(aLike) != nil {
			t.Error("the like outlives the slug that it names")
		}
	})
}

// TestChildrenAreNotAllInMemory deletes a parent of many children that references name.
func TestChildrenAreNotAllInMemory(t *testing.T) {
	w := newWorld(t, strings.Replace(slugDeletion, "by: { slug: about }", "by: { postId: about }", 1))
	var mu sync.Mutex // requests go side by side
	held, most := 0, 0
	e := w.engine(&faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
		mu.Lock()
		defer mu.Unlock()
		switch in := in.(type) {
		case *dynamodb.BatchGetItemInput:
			held += len(in.RequestItems["app"].Keys)
			most = max(most, held)
		case *dynamodb.TransactWriteItemsInput:
			for _, item := range in.TransactItems {
				if item.Delete != nil && *item.Delete.TableName == "app" {
					held--
				}
			}
		}
	}})
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	post := w.putSlug("p", "")
	for i := range 350 {
		w.put(change.Item{"pk": s("USER#u"), "sk": s(fmt.Sprintf("LIKE#%d", i)), "about": s("p")})
	}
	at := w.drain(e, 0)
	held, most = 0, 0
	w.delete(post)
	w.drain(e, at)
	if items := w.items(); len(items) > 0 || most > 100 {
		t.Errorf("%d items are left, and %d were in memory at once", len(items), most)
	}
}

// TestASleeperDeletesNoChildOfAPostThatCameBack has a worker sleep when it is about to mark a deletion. Meanwhile the post is made again,
// keeps its like, and becomes a draft.
func TestASleeperDeletesNoChildOfAPostThatCameBack(t *testing.T) {
	rules := strings.Replace(slugDeletion, `unique: slug }`, `match: { kind: post } }
  Draft: { key: { pk: "POST#${postId}", sk: "METADATA" }, match: { kind: draft } }`, 1)
	rules = strings.Replace(rules, "by: { slug: about }", "by: { postId: about }", 1)
	inTurn := func(w *world, e *Engine, deletion, _ []change.Record) error {
		_, err := e.Process(w.ctx, deletion)
		return err
	}
	late := func(w *world, e *Engine, deletion, _ []change.Record) error {
		return e.RederiveRecords(w.ctx, deletion)
	}
	bothLate := func(w *world, e *Engine, deletion, other []change.Record) error {
		return e.RederiveRecords(w.ctx, slices.Concat(deletion, other))
	}
	together := func(w *world, e *Engine, deletion, other []change.Record) error {
		_, err := e.Process(w.ctx, slices.Concat(deletion, other))
		return err
	}
	for name, another := range map[string]func(w *world, e *Engine, deletion, other []change.Record) error{
		"another worker applies the records in turn": inTurn, "together": together, "is handed the deletion late": late, "both late": bothLate,
	} {
		for _, asleep := range []string{"UpdateItem", "TransactWriteItems"} {
			t.Run(name+", before "+asleep, func(t *testing.T) { sleepOverDeletion(t, rules, asleep, another) })
		}
	}
}

// sleepOverDeletion has a worker sleep before a request, with the deletion of a post in hand, while another worker comes to that deletion
// and to the post that is made again, which then turns into a draft.
func sleepOverDeletion(t *testing.T, rules, asleep string, another func(w *world, e *Engine, deletion, other []change.Record) error) {
	w := newWorld(t, rules)
	e := w.seeded()
	put := func(kind string) {
		w.put(change.Item{"pk": s("POST#p"), "sk": s("METADATA"), "kind": s(kind)})
	}
	put("post")
	w.putLike("p")
	at := w.drain(e, 0)
	w.delete(likedPost("p"))
	deletion := w.records()[at:]
	slept := false
	sleeper := w.engine(&faulty{Client: w.sim, around: passAll, before: func(op string, in any) {
		update, is := in.(*dynamodb.UpdateItemInput)
		ofMark := is && strings.HasPrefix(attributes.ItemFromTable(update.Key)["pk"].Text(), "parent/")
		if slept || op != asleep || is && !ofMark {
			return
		}
		slept = true
		put("post")
		if err := another(w, e, deletion, w.records()[at+1:]); err != nil {
			t.Error(err)
		}
		at = w.drain(e, at+1)
		put("draft")
		at = w.drain(e, at)
	}})
	if _, err := sleeper.Process(w.ctx, deletion); err != nil {
		t.Error(err)
	}
	if !slept || w.get(aLike) == nil {
		t.Errorf("the like is gone; the worker slept: %t", slept)
	}
	w.delete(likedPost("p")) // a draft: the like stays
	put("post")
	w.delete(likedPost("p"))
	w.drain(e, at)
	if w.get(aLike) != nil {
		t.Error("the like outlives its post")
	}
}
