package projections

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
)

// TestDerivedDataConvergesAfterRandomHistories keeps promises 1, 2, 3, 4, 5 and 9: whatever the
// application does, and however workers crash, sleep, and see records again,
// the derived data is in the end what a computation from scratch gives.
func TestDerivedDataConvergesAfterRandomHistories(t *testing.T) {
	histories, first := 150, 0
	if n, err := strconv.Atoi(os.Getenv("DYNAMILL_SOAK")); err == nil {
		histories *= n
	}
	if n, err := strconv.Atoi(os.Getenv("DYNAMILL_SEED")); err == nil {
		first = n
	}
	for name, file := range map[string]string{"social": socialRules, "shop": shopRules, "odd": oddRules} {
		for seed := first; seed < first+histories; seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runHistory(t, name, file, uint64(seed)) })
			})
		}
	}
}

func runHistory(t *testing.T, name, file string, seed uint64) {
	w := newWorld(t, file)
	a := &app{world: w, r: rand.New(rand.NewPCG(seed, 7)), stale: map[change.Key]change.Item{}}
	random := map[string]func() change.Item{"social": a.socialItem, "shop": a.shopItem, "odd": a.oddItem}[name]
	from := 0
	for range a.r.IntN(12) {
		a.act(random)
	}
	if a.r.IntN(2) == 0 { // older than the stream
		from = len(w.records())
	}
	gate := &sleepers{fell: make(chan struct{}, 1)}
	seeded := false
	seedingAt := a.r.IntN(10)
	worker := func() *Engine {
		f := &faulty{Client: w.sim, around: func(_ string, pass func() error) error { return pass() }}
		e := w.engine(f)
		f.around = gate.client(w.sim, rand.New(rand.NewPCG(seed, a.r.Uint64()))).(*faulty).around
		return e
	}
	e := worker()
	for step := range 10 + a.r.IntN(40) {
		for range a.r.IntN(4) {
			a.act(random)
		}
		if step >= seedingAt && !seeded {
			_, crashed := gate.run(func() (int, error) { return 0, e.Seed(w.ctx, nil) })
			seeded = !crashed
			if crashed {
				e = worker()
			}
		}
		all := w.records()
		if a.r.IntN(6) == 0 && from > 0 {
			from -= a.r.IntN(min(from, 9)) + 1 // an older checkpoint
		}
		n := min(len(all)-from, 1+a.r.IntN(9))
		if n <= 0 {
			continue
		}
		done, crashed := gate.run(func() (int, error) { return e.Process(context.Background(), all[from:from+n]) })
		if crashed {
			e, seeded = worker(), false
		} else {
			from += done
		}
		if a.r.IntN(5) == 0 {
			gate.wakeOne()
		}
	}
	gate.wakeAll()
	last := w.engine(nil)
	if err := last.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(last, max(0, from-3))
	w.expectNoDrift()
	if t.Failed() {
		w.tell()
	}
}

// tell prints the stream and the state table, for finding out what went wrong.
func (w *world) tell() {
	for _, r := range w.records() {
		w.t.Logf("%s %s\n\told %v\n\tnew %v", r.Position.SequenceNumber(), r.Key, told(r.Old), told(r.New))
	}
	for _, it := range w.scan("app-dynamill") {
		w.t.Log(told(it))
	}
}

// told writes an image in one line.
func told(img change.Image) string {
	if img == nil {
		return "none"
	}
	var words []string
	for name, v := range img.All() {
		text := v.Text()
		for id, f := range v.Map() {
			text += " " + id + ":" + f.Text()
		}
		for _, m := range v.List() {
			text += " " + m.Text()
		}
		words = append(words, name+"="+text)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// sleepers makes workers crash before or after a call, or fall asleep in one
// and go on much later.
type sleepers struct {
	mu     sync.Mutex
	asleep []chan struct{}
	fell   chan struct{}
	calm   bool
}

func (g *sleepers) client(c Client, r *rand.Rand) Client {
	return &faulty{Client: c, around: func(_ string, pass func() error) error {
		g.mu.Lock()
		x, calm := r.IntN(100), g.calm
		g.mu.Unlock()
		switch {
		case calm:
		case x < 2:
			return errCrash
		case x < 4:
			if err := pass(); err != nil {
				return err
			}
			return errCrash
		case x < 6:
			return &ddb.ProvisionedThroughputExceededException{}
		case x < 7:
			wake := make(chan struct{})
			g.mu.Lock()
			g.asleep = append(g.asleep, wake)
			g.mu.Unlock()
			select {
			case g.fell <- struct{}{}:
			default:
			}
			<-wake
		}
		return pass()
	}}
}

// run processes a batch. It returns when the worker is done, crashed, or asleep, which for others is a crash.
func (g *sleepers) run(work func() (int, error)) (done int, crashed bool) {
	type result struct {
		done int
		err  error
	}
	select {
	case <-g.fell:
	default:
	}
	ended := make(chan result, 1)
	go func() {
		n, err := work()
		ended <- result{n, err}
	}()
	select {
	case r := <-ended:
		return r.done, r.err != nil
	case <-g.fell:
		return 0, true
	}
}

func (g *sleepers) wakeOne() {
	g.mu.Lock()
	if len(g.asleep) > 0 {
		close(g.asleep[0])
		g.asleep = g.asleep[1:]
	}
	g.mu.Unlock()
	synctest.Wait()
}

// wakeAll wakes everybody; nobody falls asleep or crashes any more.
func (g *sleepers) wakeAll() {
	g.mu.Lock()
	g.calm = true
	g.mu.Unlock()
	for g.sleeping() {
		g.wakeOne()
	}
	time.Sleep(10 * time.Minute) // whoever backs off has come to an end
}

func (g *sleepers) sleeping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asleep) > 0
}
