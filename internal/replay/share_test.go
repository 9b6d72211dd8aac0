package replay_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/replay"
)

func TestTwoProcessesShareThePieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = 3 * time.Second
		source := newBook(20, 5)
		began := time.Now()
		var shares [2]replay.Totals
		r.both(func(i int) error {
			var err error
			shares[i], err = replay.Run(t.Context(), r.process().config(source))
			return err
		})
		if got := r.times("rederive"); !maps.Equal(got, map[int]int{1: 100}) {
			t.Errorf("pages were worked off %v times", got)
		}
		if shares[0].Items < 30 || shares[1].Items < 30 || shares[0].Items+shares[1].Items != 100 {
			t.Errorf("the shares are %+v", shares)
		}
		// 100 pages, 8 at a time, 3 seconds each: 39 seconds if no worker is ever idle.
		if took := time.Since(began); took > 60*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// both runs something twice at once; both must end well.
func (r *rig) both(f func(i int) error) {
	r.t.Helper()
	var group sync.WaitGroup
	for i := range 2 {
		group.Go(func() {
			if err := f(i); err != nil {
				r.t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestRestartedReplayEndsAfterAllIsDone has a second process forget
// what the first one has done, and be slow; or the row is deleted.
func TestRestartedReplayEndsAfterAllIsDone(t *testing.T) {
	for name, begunAnew := range map[string]func(r *rig){
		"by a second process": func(r *rig) {
			cfg := r.process().config(nil)
			cfg.Restart, cfg.Parallel = true, 1
			cfg.Engine.(*process).hook = func(call string) {
				if call == "work" {
					time.Sleep(time.Minute)
				}
			}
			if _, err := replay.Run(r.t.Context(), cfg); err != nil {
				r.t.Error(err)
			}
		},
		"since its rows are gone": func(r *rig) {
			for _, row := range r.rows("") {
				_, err := r.sim.DeleteItem(r.t.Context(), &dynamodb.DeleteItemInput{
					TableName: aws.String(stateTable), Key: map[string]types.AttributeValue{"pk": row["pk"], "sk": row["sk"]},
				})
				if err != nil {
					r.t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.slow = time.Second
				for i := range 40 {
					r.put("app", keyOf(i))
				}
				r.both(func(i int) error {
					if i == 1 {
						time.Sleep(500 * time.Millisecond)
						begunAnew(r)
						return nil
					}
					_, err := replay.Run(t.Context(), r.process().config(nil))
					r.mu.Lock()
					defer r.mu.Unlock()
					if !slices.Contains(r.completed, "sweep") {
						t.Errorf("it ended with %v completed", r.completed)
					}
					return err
				})
			})
		})
	}
}

// TestNothingIsCompleteWhileAnotherStillWorks has a slow process take one
// piece and a fast one the others: neither may complete the pass until both
// are through.
func TestNothingIsCompleteWhileAnotherStillWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.left = []string{"derive/3/0", "show/3/0"}
		for i := range 20 {
			r.put("app", keyOf(i))
		}
		slow := r.process()
		slowWorks := make(chan struct{})
		signalSlow := sync.OnceFunc(func() { close(slowWorks) })
		slow.hook = func(call string) {
			if call == "work" {
				signalSlow()
				time.Sleep(time.Minute)
			}
		}
		check := func(p *process) *process {
			last := p.hook
			p.hook = func(call string) {
				if last != nil {
					last(call)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				done := 0
				for key := range r.works {
					if strings.HasPrefix(key, "derive/3/0 ") {
						done++
					}
				}
				if len(r.completed) > 0 && done != 20 {
					t.Errorf("%v completed with %d of 20 items", r.completed, done)
				}
			}
			return p
		}
		processes := []*process{check(slow), check(r.process())}
		r.both(func(i int) error {
			cfg := processes[i].config(nil)
			if i == 0 {
				cfg.Parallel = 1
			} else {
				<-slowWorks
			}
			_, err := replay.Run(context.WithoutCancel(t.Context()), cfg)
			return err
		})
		if len(r.left) > 0 || len(r.times("rederive")) > 0 {
			t.Errorf("%v left, all rederived %v times", r.left, r.times("rederive"))
		}
	})
}
