package projections

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
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
