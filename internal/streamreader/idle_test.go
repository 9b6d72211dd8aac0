package streamreader

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// tallies counts calls by their name.
type tallies struct {
	mu    sync.Mutex
	calls map[string]int
}

func (n *tallies) count(op string, _ any) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[op]++
	return nil
}

// during returns how often each call was made in a time.
func (n *tallies) during(d time.Duration) map[string]int {
	n.mu.Lock()
	n.calls = map[string]int{}
	n.mu.Unlock()
	time.Sleep(d)
	n.mu.Lock()
	defer n.mu.Unlock()
	calls := n.calls
	n.calls = map[string]int{}
	return calls
}

// What docs/operations.md says of idle fleets: each worker reads one row about
// once a second, and all rows are read a few times a minute, by any of them.
func TestIdleFleetsReadLittle(t *testing.T) {
	for _, test := range []struct {
		workers, shards   int
		gets, scans, puts float64 // at most, in a second
	}{
		{workers: 1, shards: 4, gets: 1.3, scans: 0.3, puts: 1.7},
		{workers: 4, shards: 4, gets: 5.2, scans: 0.4, puts: 1.7},
		{workers: 20, shards: 40, gets: 26, scans: 0.6, puts: 14},
		{workers: 4, shards: 100, gets: 5.2, scans: 0.4, puts: 34},
		{workers: 60, shards: 60, gets: 78, scans: 0.8, puts: 21},
	}[:worldsize.Of(5, 3)] {
		t.Run(fmt.Sprintf("%d workers, %d shards", test.workers, test.shards), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &tallies{calls: map[string]int{}}
				c := newCrew(t, dynamosim.Options{Shards: test.shards, Before: n.count})
				for i := range test.workers {
					c.join(fmt.Sprintf("worker%02d", i))
				}
				time.Sleep(time.Duration(worldsize.Of(3, 1)) * time.Minute)
				span := time.Duration(worldsize.Of(5, 1)) * time.Minute
				calls := n.during(span)
				for op, most := range map[string]float64{"GetItem": test.gets, "Scan": test.scans, "UpdateItem": test.puts} {
					rate := float64(calls[op]) / span.Seconds()
					t.Logf("%s: %.2f a second", op, rate)
					if rate > most {
						t.Errorf("%s: %.2f a second, want at most %.2f", op, rate, most)
					}
				}
				if rate := float64(calls["GetRecords"]) / span.Seconds() / float64(test.shards); rate > 1.2 {
					t.Errorf("GetRecords: %.2f a second and shard, want one each 0.8 to 1 s", rate)
				}
				c.dismiss()
			})
		})
	}
}
