package projections

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

// TestACrashBeforeTheRollUpForgetsNoGroupThatALostRecordLeft is what due marks are for: the
// transaction takes a contribution out of a group that no image of the record shows.
func TestACrashBeforeTheRollUpForgetsNoGroupThatALostRecordLeft(t *testing.T) {
	w := newWorld(t, shopRules)
	f := &faulty{Client: w.sim, around: func(_ string, pass func() error) error { return pass() }}
	e := w.seeded()
	for _, id := range []string{"1", "2", "3"} {
		w.put(change.Item{"PK": s("USER#u1"), "SK": s("POST#p" + id), "EntityType": s("Post"), "slug": s("s" + id), "title": s("t")})
	}
	like := func(target string) change.Item {
		return change.Item{"PK": s("USER#u2"), "SK": s("LIKE#l1"), "EntityType": s("Like"), "target": s(target)}
	}
	w.put(like("s1"))
	w.drain(e, 0)
	w.put(like("s2")) // lost
	from := len(w.records())
	w.put(like("s3"))
	last := w.records()[from:]
	crashed := w.engine(f)
	f.around = func(op string, pass func() error) error {
		if op == "UpdateItem" {
			return errCrash
		}
		return pass()
	}
	if _, err := crashed.Process(w.ctx, last); err == nil {
		t.Fatal("no crash")
	}
	fresh := w.engine(nil)
	if done, err := fresh.Process(w.ctx, last); done != 1 || err != nil {
		t.Fatal(done, err)
	}
	w.drain(fresh, from)
	w.expectNoDrift()
}
