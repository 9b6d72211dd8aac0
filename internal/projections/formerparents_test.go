package projections

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
)

// TestChildrenOfAValueStayIfAnItemHasItAgain deletes the posts that had a slug, and has a post take the slug again. The worker has not read
// that post's record when it comes to a like that names the slug: one that was there before, or one that comes with the post.
func TestChildrenOfAValueStayIfAnItemHasItAgain(t *testing.T) {
	for name, c := range map[string]struct {
		again        func(w *world)
		stays, comes bool // a like that was there before stays, and one that comes with the post does
	}{
		"no post has it":         {func(*world) {}, false, false},
		"the post is made again": {func(w *world) { w.putSlug("p", "s") }, true, true},
		"it is made again, and changes": {func(w *world) { w.putSlug("p", "s"); w.putPlain("p", change.Item{"slug": s("s"), "n": s("1")}) },
			true, true},
		"it is made with another slug":  {func(w *world) { w.putSlug("p", "other") }, false, false},
		"it is made without a slug":     {func(w *world) { w.putPlain("p", nil) }, false, false},
		"the other post is made again":  {func(w *world) { w.putSlug("q", "s") }, true, true},
		"a third post takes it":         {func(w *world) { w.putSlug("r", "s") }, false, true},
		"a third post has another slug": {func(w *world) { w.putSlug("r", "other") }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, e, at := slugDeleted(t, func(w *world) { w.putLike("s") })
				c.again(w)
				w.workAll(e)
				w.expectLike(c.stays)
				w.drain(e, at)
				w.workAll(e)
				w.expectLike(c.stays)
			})
		})
		t.Run(name+", and a like comes", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, e, at := slugDeleted(t, func(*world) {})
				w.putLike("s")
				read := w.drain(e, at)
				c.again(w)
				time.Sleep(20 * time.Second)
				w.drain(e, read)
				w.workAll(e)
				w.expectLike(c.comes)
			})
		})
	}
}

// slugDeleted is a world in which two posts had a slug, and were deleted a minute ago.
func slugDeleted(t *testing.T, before func(*world)) (w *world, e *Engine, at int) {
	w = newWorld(t, slugDeletion)
	e = w.seeded()
	p, q := w.putSlug("p", "s"), w.putSlug("q", "s")
	before(w)
	at = w.drain(e, 0)
	w.delete(p)
	w.delete(q)
	at = w.drain(e, at)
	time.Sleep(time.Minute)
	return w, e, at
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

// TestALikeThatComesPushesNoOtherOut has likes of a deleted slug come every ten seconds: a task deletes them 30 seconds after the first.
func TestALikeThatComesPushesNoOtherOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e, at := slugDeleted(t, func(*world) {})
		began := time.Now()
		for n := range 3 {
			w.put(change.Item{"pk": s("USER#u"), "sk": s(fmt.Sprint("LIKE#", n)), "about": s("s")})
			at = w.drain(e, at)
			time.Sleep(10 * time.Second)
		}
		w.workAll(e)
		if left, waited := len(w.items()), time.Since(began); left > 0 || waited > 31*time.Second {
			t.Errorf("%d likes are left after %v", left, waited)
		}
		w.putLike("s")
		began = time.Now()
		w.drain(e, at)
		w.workAll(e)
		w.expectLike(false)
		if waited := time.Since(began); waited < 29*time.Second {
			t.Errorf("a later like was left for %v", waited)
		}
	})
}
