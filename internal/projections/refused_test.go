package projections

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

const latestOrderRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Order:  { key: { pk: "CUSTOMER#${customerId}", sk: "ORDER#${at}" } }
  ByCode: { key: { pk: "CODE#${code}", sk: "LATEST" } }
rules:
  by-code: { mirror: Order, as: ByCode, by: code, attributes: [total, blob] }
`

// parkedWith returns the ids of what is parked under a code.
func (w *world) parkedWith(e *Engine, code string) []string {
	w.t.Helper()
	all, err := e.Parked(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, p := range all {
		if p.Code == code {
			ids = append(ids, p.ID)
		}
	}
	return w.spelled(ids)
}

func TestAWinnerTooLargeForItsMirrorItemParksAndTheRestGoesOn(t *testing.T) {
	w := newWorld(t, latestOrderRules)
	e := w.seeded()
	w.put(change.Item{"pk": s("CUSTOMER#a"), "sk": s("ORDER#1"), "code": s("x"), "total": change.Number("1")})
	from := w.drain(e, 0)
	w.put(change.Item{"pk": s("CUSTOMER#b"), "sk": s("ORDER#1"), "code": s("x"), "blob": s(strings.Repeat("x", 400*1024-60))})
	from = w.drain(e, from)
	w.delete(change.Key{Partition: "CUSTOMER#a", Sort: "ORDER#1"}) // now the large one wins
	w.put(change.Item{"pk": s("CUSTOMER#c"), "sk": s("ORDER#1"), "code": s("y"), "total": change.Number("3")})
	w.drain(e, from)
	if ids := w.parkedWith(e, "write.rejected"); len(ids) != 1 || !strings.HasPrefix(ids[0], "by-code/") {
		t.Errorf("parked as rejected are %q, want one of by-code", ids)
	}
	w.expect(change.Key{Partition: "CODE#y", Sort: "LATEST"}, "total", change.Number("3"))
}

func TestAClaimThatHasNoRoomIsParkedAndTheRestGoesOn(t *testing.T) {
	w := newWorld(t, latestOrderRules)
	e := w.seeded()
	long := strings.Repeat("y", 1000)
	for i := range 420 { // as many claims as no item holds
		w.put(change.Item{"pk": s("CUSTOMER#a"), "sk": s(fmt.Sprintf("ORDER#%04d%s", i, long)), "code": s("x"),
			"total": change.Number(fmt.Sprint(i))})
	}
	w.put(change.Item{"pk": s("CUSTOMER#b"), "sk": s("ORDER#1"), "code": s("y"), "total": change.Number("3")})
	all := w.records()
	for from := 0; from < len(all); {
		done, err := e.Process(w.ctx, all[from:min(len(all), from+50)])
		if err != nil || done == 0 {
			t.Fatalf("at record %d: %d done, %v", from, done, err)
		}
		from += done
	}
	if ids := w.parkedWith(e, "write.rejected"); len(ids) == 0 {
		t.Error("nothing is parked as rejected")
	}
	w.expect(change.Key{Partition: "CODE#x", Sort: "LATEST"}, "total", change.Number("0"))
	w.expect(change.Key{Partition: "CODE#y", Sort: "LATEST"}, "total", change.Number("3"))
}

func TestEffectsThatCannotBeTakenBackAreParkedAndBlockNothing(t *testing.T) {
	const huge = "10000000000000000000000000000000000000"
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	e := w.seeded()
	from := w.drain(e, 0)
	for id, score := range map[string]string{"a": huge, "b": "-" + huge} {
		w.put(comment(id, change.Item{"score": change.Number(score)}))
	}
	from = w.drain(e, from)
	w.put(comment("c", change.Item{"score": change.Number("0.5")}))
	from = w.drain(e, from)
	w.expect(post1, "score", change.Number("0.5"))
	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#b"}) // would leave what no number can hold
	from = w.drain(e, from)
	const id = "comment-score/POST#p1/COMMENT#b"
	if ids := w.parkedWith(e, "write.rejected"); !slices.Contains(ids, id) {
		t.Fatalf("parked as rejected are %q, want %q", ids, id)
	}
	w.expect(post1, "score", change.Number("0.5"))

	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#a"}) // refused as well: the other one's score is still in force
	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c"})
	w.drain(e, from)
	for range 2 { // one retry makes room for the other
		for _, id := range w.parkedWith(e, "write.rejected") {
			if err := e.RetryParked(w.ctx, parkedID(id)); err != nil && !errors.Is(err, inspect.ErrNotParked) {
				t.Fatal(err)
			}
		}
	}
	w.expectParked(e)
	w.expectNoDrift()
}

func TestASweepLeavesAloneWhatWasRefused(t *testing.T) {
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	e := w.seeded()
	w.put(comment("a", change.Item{"score": change.Number("10000000000000000000000000000000000000")}))
	w.put(comment("b", change.Item{"score": change.Number("0.5")})) // the sum would have 39 digits
	w.drain(e, 0)
	if ids := w.parkedWith(e, "number.overflow"); len(ids) != 1 {
		t.Fatalf("parked are %q", ids)
	}
	for _, write := range w.writesOf(func(c table.Client) *Engine { return w.engine(c) }, func(e *Engine) {
		if err := w.work(e, "sweep"); err != nil {
			t.Fatal(err)
		}
	}) {
		t.Errorf("a sweep writes %s", write)
	}
}

func TestARetryOfAMissingMirrorItemWritesItAgain(t *testing.T) {
	w := newWorld(t, socialRules)
	w.seeded()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: w.set, HealsMax: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.putMember("member")
	from := w.drain(e, 0)
	mirror := change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}
	for range 3 {
		w.delete(mirror)
		from = w.drain(e, from)
	}
	if got := w.get(mirror); got != nil {
		t.Fatalf("the mirror item was put back beyond the bound: %v", got)
	}
	p := w.expectParked(e, "member-list/GROUP#g1/USER#u1")[0]
	if err := e.RetryParked(w.ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	w.expectParked(e)
	w.expect(mirror, "role", s("member"))
}

func TestARetryThatIsRejectedAgainStaysParked(t *testing.T) {
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA"), "blob": s(strings.Repeat("x", 400*1024-40))})
	e := w.seeded()
	w.put(comment("c1", nil))
	from := w.drain(e, 0)
	ids := w.parkedWith(e, "write.rejected")
	if len(ids) == 0 {
		t.Fatal("a display that has no room is not parked")
	}
	if err := e.RetryParked(w.ctx, parkedID(ids[0])); err != nil {
		t.Fatal(err)
	}
	if after := w.parkedWith(e, "write.rejected"); !slices.Contains(after, ids[0]) {
		t.Errorf("%s was rejected again, and parked are %q", ids[0], after)
	}
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA"), "blob": s("small")})
	w.drain(e, from)
	for _, id := range w.parkedWith(e, "write.rejected") {
		if err := e.RetryParked(w.ctx, parkedID(id)); err != nil {
			t.Fatal(err)
		}
	}
	w.expectParked(e)
	w.expect(post1, "commentCount", change.Number("1"))
	w.expectNoDrift()
}

func TestACrashBeforeAFightIsParkedDoesNotLiftTheBound(t *testing.T) {
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(comment("c1", nil))
	w.seeded()
	f := &faulty{Client: w.sim, around: passAll}
	e, err := Open(w.ctx, Config{Client: f, Table: "app", Rules: w.set, HealsMax: 5})
	if err != nil {
		t.Fatal(err)
	}
	from := w.drain(e, 0)
	crashed := false
	f.around = func(op string, pass func() error) error {
		if op == "PutItem" && !crashed { // about to park
			crashed = true
			return errCrash
		}
		return pass()
	}
	for range 20 {
		w.update(post1, change.Item{"commentCount": change.Number("99")})
		for from < len(w.records()) {
			done, err := e.Process(w.ctx, w.records()[from:])
			if err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			from += done
		}
	}
	if !crashed {
		t.Error("nothing crashed")
	}
	w.expectParked(e, "display:comment-count/POST#p1/METADATA")
	w.expect(post1, "commentCount", change.Number("99"))
}

func TestATimeoutOfTheNetworkIsTriedAgain(t *testing.T) {
	_, err := net.DialTimeout("tcp", "127.0.0.1:1", time.Nanosecond)
	if err == nil || awscall.Classify(err) != awscall.Retry {
		t.Errorf("%v is of class %v, want one that is tried again", err, awscall.Classify(err))
	}
}
