package projections

import (
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// TestHotCountersCostNoMoreThanABatchedAdd has a batch of 1,000 records concern few groups, and as many as there are records.
func TestHotCountersCostNoMoreThanABatchedAdd(t *testing.T) {
	const records = 1000
	for groups, most := range map[int]float64{10: 0.03, worldsize.Of(records, 100): 2.1} {
		t.Run(fmt.Sprint(groups), func(t *testing.T) {
			w := newWorld(t, hotRule[:len(hotRule)-len(weightRule)])
			for i := range groups {
				w.put(w.keyItem(likedPost(fmt.Sprint(i))))
			}
			e := w.counting()
			s, before := w.open(e, "s", ""), len(w.records())
			for i := range records {
				w.put(change.Item{"pk": change.String(fmt.Sprint("LIKE#", i)), "sk": change.String("LIKE"),
					"postId": change.String(fmt.Sprint(i % groups))})
			}
			batch := w.records()[before:]
			used := w.sim.Usage()
			for range 2 { // a worker that crashed before its checkpoint gets the same batch again
				if _, err := s.Process(w.ctx, batch); err != nil {
					t.Fatal(err)
				}
				now := w.sim.Usage()
				spent, requests := now.Sub(used), 0.0
				for _, n := range spent.Requests {
					requests += float64(n) / records
				}
				units := spent.WriteUnits / records
				t.Logf("%d groups: %.4f write units and %.4f requests a record: %v", groups, units, requests, spent.Requests)
				if units > most || groups == 10 && requests > most {
					t.Errorf("%d groups take %.4f write units and %.4f requests a record", groups, units, requests)
				}
				used = now
			}
			for i := range groups {
				if got := w.get(likedPost(fmt.Sprint(i)))["likes"].Text(); got != fmt.Sprint(records/groups) {
					t.Errorf("post %d shows %s", i, got)
				}
			}
		})
	}
}

// TestExactCapacityOfHotCounters confirms these figures against an endpoint that reports capacity exactly.
func TestExactCapacityOfHotCounters(t *testing.T) {
	const records = 1000
	for groups, most := range map[int]float64{10: 0.03, worldsize.Of(records, 100): 2.1} {
		e, m, name := exactEngine(t, hotRule[:len(hotRule)-len(weightRule)])
		if e == nil {
			return
		}
		x := &exactTable{metered: m, t: t, name: name, engine: e}
		for i := range groups {
			key := likedPost(fmt.Sprint(i))
			x.put(change.Item{"pk": s(key.Partition), "sk": s(key.Sort)})
		}
		x.follow()
		for i := range records {
			key := change.Key{Partition: fmt.Sprint("LIKE#", i), Sort: "LIKE"}
			x.record(key, change.Item{"pk": s(key.Partition), "sk": s(key.Sort), "postId": s(fmt.Sprint(i % groups))})
		}
		shard, err := e.OpenShard(t.Context(), ShardClaim{Shard: "s", Trimmed: whole})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time, nothing is added
			m.units = 0
			if _, err := shard.Process(t.Context(), x.next); err != nil {
				t.Fatal(err)
			}
			if units := m.units / records; units > most {
				t.Errorf("%d groups take %.4f write units a record at the endpoint", groups, units)
			} else {
				t.Logf("%d groups: %.4f write units a record at the endpoint", groups, units)
			}
		}
		if got := x.get(likedPost("0"))["likes"].Text(); got != fmt.Sprint(records/groups) {
			t.Errorf("a post shows %s likes", got)
		}
	}
}
