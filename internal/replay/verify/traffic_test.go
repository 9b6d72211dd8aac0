package verify_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

func TestRepairBesideTrafficDoesNoHarm(t *testing.T) {
	for seed := range 12 {
		t.Run(fmt.Sprint(seed), inBubble(func(t *testing.T) {
			p := population.Draw(rand.New(rand.NewPCG(uint64(seed), 9)), projections.Kinds)
			w := newWorld(t, p, uint64(seed))
			w.live(120)
			w.follow()
			spoiled := w.spoil(12)
			w.lose()
			w.slow.Store(true)
			var all, traffic sync.WaitGroup
			traffic.Go(func() {
				for range 4 {
					w.live(25)
					w.follow()
				}
			})
			var over atomic.Bool
			all.Go(func() { traffic.Wait(); over.Store(true) })
			for range 3 { // of two repairs at once, one finds done what the other has done
				all.Go(func() {
					for !over.Load() {
						w.verify(true, func(cfg *verify.Config) { cfg.Wait = 200 * time.Millisecond })
						time.Sleep(time.Second)
					}
				})
			}
			all.Wait()
			w.slow.Store(false)
			w.follow()
			w.retryParked() // what could not be added to a torn accumulator
			w.verify(true)  // what the traffic did not let it decide
			w.follow()
			w.expectRight("after the repair")
			if t.Failed() {
				t.Fatalf("spoiled: %v\n%s", spoiled, p.File)
			}
		}))
	}
}

// retryParked tries all again that is parked.
func (w *world) retryParked() {
	w.t.Helper()
	e := w.engine()
	all, err := e.Parked(w.ctx)
	w.must(err)
	for _, p := range all {
		w.must(e.RetryParked(w.ctx, p.ID))
	}
}
