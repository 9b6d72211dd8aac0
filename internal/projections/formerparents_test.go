package projections

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
)

// TestChildrenOfAValueStayIfItsItemIsMadeAgain deletes the posts that had a slug, and makes one again. The worker has not read that post's
// record when it comes to a like that names the slug: one that was there before, or one that comes with the post.
func TestChildrenOfAValueStayIfItsItemIsMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		again func(w *world)
		stays bool
	}{
		"no post has it":         {func(*world) {}, false},
		"the post is made again": {func(w *world) { w.putSlug("p", "s") }, true},
		"it is made again, and changes": {func(w *world) {
			w.putSlug("p", "s")
			w.putPlain("p", change.Item{"slug": s("s"), "n": s("1")})
		}, true},
		"it is made with another slug":  {func(w *world) { w.putSlug("p", "other") }, false},
		"it is made without a slug":     {func(w *world) { w.putPlain("p", nil) }, false},
		"the other post is made again":  {func(w *world) { w.putSlug("q", "s") }, true},
		"a third post has another slug": {func(w *world) { w.putSlug("r", "other") }, false},
	} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", both were deleted together: ", together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, e, at := slugDeleted(t, together, func(w *world) { w.putLike("s") })
					if w.get(aLike) == nil {
						t.Fatal("the like is gone before 30 seconds are over")
					}
					c.again(w)
					time.Sleep(time.Minute)
					w.workAll(e)
					w.expectLike(c.stays)
					w.drain(e, at)
					w.workAll(e)
					w.expectLike(c.stays)
				})
			})
			t.Run(fmt.Sprint(name, ", and a like comes; together: ", together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, e, at := slugDeleted(t, together, func(*world) {})
					time.Sleep(time.Minute)
					c.again(w)
					w.putLike("s")
					records := w.records()
					if _, err := e.Process(w.ctx, records[len(records)-1:]); err != nil {
						t.Fatal(err)
					}
					w.expectLike(c.stays)
					w.drain(e, at)
					w.workAll(e)
					w.expectLike(c.stays)
				})
			})
		}
	}
}

// slugDeleted is a world in which two posts had a slug: at the same time, or one after the other. Both were deleted.
func slugDeleted(t *testing.T, together bool, before func(*world)) (w *world, e *Engine, at int) {
	w = newWorld(t, slugDeletion)
	e = w.seeded()
	p := w.putSlug("p", "s")
	if !together {
		at = w.drain(e, at)
		w.delete(p)
		at = w.drain(e, at)
	}
	q := w.putSlug("q", "s")
	before(w)
	at = w.drain(e, at)
	if together {
		w.delete(p)
	}
	w.delete(q)
	return w, e, w.drain(e, at)
}

func (w *world) putPlain(id string, more change.Item) {
	it := change.Item{"pk": s("POST#" + id), "sk": s("METADATA")}
	maps.Copy(it, more)
	w.put(it)
}

func (w *world) workAll(e *Engine) {
	w.t.Helper()
	if _, err := e.WorkTasks(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) expectLike(want bool) {
	w.t.Helper()
	if there := w.get(aLike) != nil; there != want {
		w.t.Errorf("the like is there: %t, want %t", there, want)
	}
}
