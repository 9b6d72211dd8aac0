package projections

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
)

// TestARunIsDoneOverAsItWas has the same history worked off several times: the same seeds and
// the same order of calls under way together must give the same requests, to the letter.
func TestARunIsDoneOverAsItWas(t *testing.T) {
	for name, file := range map[string]string{"social": socialRules, "shop": shopRules, "odd": oddRules} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				var first []string
				for range 3 {
					synctest.Test(t, func(t *testing.T) {
						requests := requestsOf(t, name, file, seed)
						if first == nil {
							first = requests
						}
						if diff := gocmp.Diff(first, requests); diff != "" {
							t.Fatalf("requests (-first time +another time):\n%s", diff)
						}
					})
				}
			})
		}
	}
}

// requestsOf seeds a table, lets an application write to it, and works that off in large batches.
func requestsOf(t *testing.T, name, file string, seed uint64) []string {
	cryptotest.SetGlobalRandom(t, seed)
	w := newWorld(t, file)
	a := &app{world: w, r: rand.New(rand.NewPCG(seed, 3)), stale: map[change.Key]change.Item{}}
	random := map[string]func() change.Item{"social": a.socialItem, "shop": a.shopItem, "odd": a.oddItem}[name]
	for range 20 {
		a.act(random)
	}
	q := &queue{}
	e := w.engine(&faulty{Client: w.sim, around: passAll, before: q.wait})
	q.serve(t, func() error { return e.Seed(w.ctx, nil) })
	from := 0
	for range 5 {
		for range 40 {
			a.act(random)
		}
		all := w.records()
		q.serve(t, func() error {
			done, err := e.Process(w.ctx, all[from:])
			from += done
			return err
		})
	}
	var keys []change.Key
	for _, it := range w.items() {
		keys = append(keys, change.Key{Partition: it[w.set.Table.PartitionKey].Text(), Sort: it[w.set.Table.SortKey].Text()})
	}
	q.serve(t, func() error { return e.Rederive(w.ctx, keys) })
	return q.served
}

// parkingDrawn finds what is drawn at random by calls under way together, who must not agree on an order for it.
var parkingDrawn = regexp.MustCompile(`"parking":\{"Value":"[0-9a-f]+"\}`)

// queue lets one request through at a time: whenever all goroutines wait, the one that sorts first.
type queue struct {
	mu      sync.Mutex
	waiting []waiting
	served  []string
	open    bool
}

type waiting struct {
	text string
	pass chan struct{}
}

func (q *queue) wait(op string, in any) {
	text, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	q.mu.Lock()
	open, one := q.open, waiting{op + " " + parkingDrawn.ReplaceAllString(string(text), `"parking":"drawn"`), make(chan struct{})}
	if open {
		q.waiting = append(q.waiting, one)
	}
	q.mu.Unlock()
	if open {
		<-one.pass
	}
}

// serve does work and serves its requests until it is done.
func (q *queue) serve(t *testing.T, work func() error) {
	t.Helper()
	q.mu.Lock()
	q.open = true
	q.mu.Unlock()
	done := false
	go func() {
		if err := work(); err != nil {
			t.Error(err)
		}
		q.mu.Lock()
		done, q.open = true, false
		q.mu.Unlock()
	}()
	for {
		synctest.Wait()
		q.mu.Lock()
		if done {
			q.mu.Unlock()
			return
		}
		if len(q.waiting) == 0 {
			q.mu.Unlock()
			t.Fatal("the work neither asks for anything nor ends")
		}
		slices.SortFunc(q.waiting, func(a, b waiting) int { return cmp.Compare(a.text, b.text) })
		one := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.served = append(q.served, one.text)
		q.mu.Unlock()
		close(one.pass)
	}
}

func TestOfSeveralFailuresTheFirstInOrderIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := each(t.Context(), writesAtOnce, func(_ context.Context, i int) error {
			time.Sleep(time.Duration(writesAtOnce-i) * time.Second) // the last is the first to end
			if i < 2 {
				return nil
			}
			return fmt.Errorf("number %d", i)
		})
		if err == nil || err.Error() != "number 2" {
			t.Errorf("%v, want number 2", err)
		}
	})
}

func TestAfterAFailureNothingMoreIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		_ = each(t.Context(), 10*writesAtOnce, func(context.Context, int) error {
			time.Sleep(time.Second)
			begun.Add(1)
			return errCrash
		})
		if n := begun.Load(); n > writesAtOnce+1 {
			t.Errorf("%d begun, want those under way and one that waited", n)
		}
	})
}
