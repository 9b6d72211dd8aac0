package dynamill

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/rules"
)

// TestCountOfAMillionItems seeds a rule of a million items in a thousand groups: it writes for groups, not for items, and keeps to
// bounded memory.
func TestCountOfAMillionItems(t *testing.T) {
	items, groups := worldsize.Of(1_000_000, 20_000), worldsize.Of(1000, 100)
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 12)
		only, _, _ := strings.Cut(hotRules, "  weight:")
		var err error
		if h.rules, err = rules.Load("dynamill.yaml", []byte(only)); err != nil {
			t.Fatal(err)
		}
		for i := range groups {
			h.put(change.Item{"pk": change.String(fmt.Sprint("POST#", i)), "sk": change.String("METADATA")})
		}
		arns, err := h.sim.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: new("app")})
		if err != nil {
			t.Fatal(err)
		}
		defer debug.SetGCPercent(debug.SetGCPercent(100))
		base, peak := heap(true), uint64(0)
		keys := h.compiled().Table
		count := func(ctx context.Context, g *projections.Generation, _ func(int64)) error {
			_, err := counting.Run(ctx, counting.Config{
				Generation: g, Streams: h.sim, StreamARN: *arns.Table.LatestStreamArn, PartitionKey: "pk", SortKey: "sk",
				Leases: streamreader.NewLeaseTable(h.sim, "app-dynamill-leases"), Logger: slog.New(slog.DiscardHandler), TempDir: t.TempDir(),
				Progress: func(counting.Progress) { peak = max(peak, heap(false)) },
				Items: func(_ context.Context, f func(change.Key, change.Image) error) error {
					for i := range items {
						item := change.Item{"pk": change.String(fmt.Sprint("LIKE#", i)), "sk": change.String("LIKE"),
							"postId": change.String(fmt.Sprint(i % groups)), "weight": change.Number("0")}
						if err := f(keys.KeyOf(item), item); err != nil {
							return err
						}
					}
					return nil
				},
			})
			return err
		}
		e, err := projections.Open(t.Context(), projections.Config{Client: h.sim, Table: "app", Rules: h.compiled(), Count: count})
		if err != nil {
			t.Fatal(err)
		}
		used := h.sim.Usage()
		if err := e.Seed(t.Context(), func(projections.SeedProgress) {}); err != nil {
			t.Fatal(err)
		}
		units := h.sim.Usage().Sub(used).WriteUnits
		t.Logf("%d items in %d groups: %.0f write units, %d MB beside the simulator", items, groups, units, int64(peak-base)>>20)
		if most := 2.5 * float64(groups); units > most {
			t.Errorf("seeding takes %.0f write units, want at most %.0f", units, most)
		}
		if peak > base+200<<20 {
			t.Errorf("seeding takes %d MB, want at most 200", (peak-base)>>20)
		}
		for _, i := range []int{0, groups - 1} {
			if got := h.shown()[fmt.Sprint(i)]; got != fmt.Sprint(items/groups, " ") {
				t.Errorf("post %d shows %s", i, got)
			}
		}
	})
}

// heap is how much memory is in use; collect: by what is not garbage.
func heap(collect bool) uint64 {
	if collect {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestHotCountersKeepUpWith50000RecordsASecond has one process follow 64 shards, with an answer to each request after some
// milliseconds.
func TestHotCountersKeepUpWith50000RecordsASecond(t *testing.T) {
	const shards, tick = 64, 20 * time.Millisecond
	rate, seconds := worldsize.Of(50_000, 2_000), 4
	synctest.Test(t, func(t *testing.T) {
		h := newHotTableOf(t, 13, shards)
		var mu sync.Mutex
		reads, writes, displays := 0, map[string]int{}, map[string][]time.Time{}
		h.watch(func(input any) {
			mu.Lock()
			defer mu.Unlock()
			switch in := input.(type) {
			case *dynamodbstreams.GetRecordsInput:
				reads++
			case *dynamodb.UpdateItemInput:
				key := attributes.ItemFromTable(in.Key)
				pk, sk := key["pk"].Text(), key["sk"].Text()
				if *in.TableName == "app" {
					what := pk + " " + in.ExpressionAttributeNames["#n0"]
					displays[what] = append(displays[what], time.Now())
				} else if strings.HasPrefix(pk, "fold/") {
					writes[pk+sk]++
				}
			}
		})
		h.slowDown(6 * time.Millisecond)
		running := make(chan *Running, 1)
		h.started = func(r *Running) { running <- r }
		stop := h.follow("a")
		r := <-running
		time.Sleep(time.Minute)
		h.expect("seeded")
		mu.Lock()
		reads = 0
		clear(writes)
		clear(displays)
		mu.Unlock()
		worst, written := time.Duration(0), 0
		for i := range seconds * int(time.Second/tick) {
			for range rate * int(tick) / int(time.Second) {
				written++
				h.put(change.Item{"pk": change.String(fmt.Sprint("LIKE#", written)), "sk": change.String("LIKE"),
					"postId": change.String(fmt.Sprint(written % hotPosts)), "weight": change.Number("1")})
			}
			time.Sleep(tick)
			if time.Duration(i)*tick >= 2*time.Second { // by then, records of each shard were applied since it was idle
				worst = max(worst, r.Status().Stream.Lag-time.Second) // the times of records are whole seconds
			}
		}
		ended := time.Now()
		want := h.want()
		for fmt.Sprint(h.shown()) != fmt.Sprint(want) && time.Since(ended) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		late := time.Since(ended)
		stop()
		mu.Lock()
		defer mu.Unlock()
		most := slices.Max(append(slices.Collect(maps.Values(writes)), 0))
		t.Logf("%d records in %d s: lag up to %v, all shown %v after the last; %d reads of %d shards, at most %d writes of a row",
			written, seconds, worst, late, reads, shards, most)
		if worst > 2*time.Second || late > 3*time.Second { // a display may wait for a second
			t.Errorf("a lag of %v, and all shown %v after the last record", worst, late)
		}
		if most > reads/shards+1 {
			t.Errorf("a row was written %d times, and its shard read %d times", most, reads/shards)
		}
		for what, times := range displays {
			for i, at := range times {
				if i > 0 && at.Sub(times[i-1]) < 900*time.Millisecond {
					t.Errorf("%s is written %v after it was", what, at.Sub(times[i-1]))
					break
				}
			}
		}
	})
}
