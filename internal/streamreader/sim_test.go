package streamreader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

const simTable = "app"

// simWorld is a table with a stream, and an account of what was written to it.
type simWorld struct {
	sim *dynamosim.Sim
	arn string

	mu      sync.Mutex
	written map[string]int // versions of each item
}

func newSimWorld(t *testing.T, options dynamosim.Options) *simWorld {
	t.Helper()
	w := &simWorld{sim: dynamosim.New(options), written: map[string]int{}}
	out, err := w.sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(simTable),
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddb.KeyTypeHash}},
		StreamSpecification:  &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.arn = *out.TableDescription.LatestStreamArn
	return w
}

// write gives an item its next version.
func (w *simWorld) write(t *testing.T, item string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[item]++
	for { // faults are meant for the reader
		_, err := w.sim.PutItem(context.Background(), &dynamodb.PutItemInput{
			TableName: aws.String(simTable),
			Item:      map[string]ddb.AttributeValue{"pk": text(item), "version": number(int64(w.written[item]))},
		})
		if err == nil {
			return
		}
	}
}

// versions is a Processor that holds each item to its order: a version comes
// after the one before, or again, but never out of turn.
type versions struct {
	mu   sync.Mutex
	seen map[string]int
	bad  []string
	fail func() bool
}

func (v *versions) Process(_ context.Context, records []change.Record) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, r := range records {
		if v.fail != nil && v.fail() {
			return i, errors.New("a passing failure")
		}
		var version int
		if _, err := fmt.Sscan(r.New.Lookup("version").Text(), &version); err != nil {
			return i, err
		}
		if version > v.seen[r.Key.Partition]+1 {
			v.bad = append(v.bad, fmt.Sprintf("%s: version %d after %d", r.Key.Partition, version, v.seen[r.Key.Partition]))
		}
		v.seen[r.Key.Partition] = max(v.seen[r.Key.Partition], version)
	}
	return len(records), nil
}

// A stream whose shards split and roll over while it is written, read by one
// process after another, each stopped at some moment, with calls that fail
// before or after their effect: every version of every item arrives, in order.
func TestNothingIsLostWhileShardsSplitCallsFailAndReadersRestart(t *testing.T) {
	for seed := range uint64(worldsize.Of(12, 4)) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { followSplits(t, seed) })
		})
	}
}

func followSplits(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	var mu sync.Mutex // of random
	pick := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	chance := func(percent int) bool { return pick(100) < percent }
	fault := func(op string, _ any) error {
		if op != "PutItem" && op != "CreateTable" && op != "Scan" && chance(5) {
			return &streams.InternalServerError{}
		}
		return nil
	}
	w := newSimWorld(t, dynamosim.Options{Seed: seed, Shards: 2, Before: fault, After: fault})
	v := &versions{seen: map[string]int{}, fail: func() bool { return chance(1) }}
	reader := func() *Reader {
		return newTestReader(t, w.sim, NewLeaseTable(w.sim, "leases"), v, func(cfg *Config) {
			cfg.StreamARN, cfg.BatchMax, cfg.Concurrency = w.arn, 7, 3
		})
	}
	for range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+pick(20))*time.Second)
		ended := make(chan error)
		r := reader()
		go func() { ended <- r.Run(ctx) }()
		for range 40 {
			w.write(t, fmt.Sprintf("item%d", pick(15)))
			time.Sleep(time.Duration(pick(300)) * time.Millisecond)
			if !chance(8) {
				continue
			}
			open, err := w.sim.OpenShards(simTable)
			if err != nil {
				t.Fatal(err)
			}
			shard := open[pick(len(open))]
			if len(open) < 6 && chance(50) {
				_, err = w.sim.SplitShard(simTable, shard)
			} else {
				_, err = w.sim.RollOver(simTable, shard)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		<-ctx.Done()
		if err := <-ended; err != nil {
			t.Logf("a reader ended early: %v", err) // its last checkpoint may fail: the next one goes on
			if !strings.Contains(err.Error(), "checkpoint") {
				t.Fatal(err)
			}
		}
		cancel()
	}
	if err := reader().Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range v.bad {
		t.Error(bad)
	}
	for item, n := range w.written {
		if v.seen[item] != n {
			t.Errorf("%s: seen up to version %d of %d", item, v.seen[item], n)
		}
	}
}

func TestTheLeaseTableDoesNotGrowForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, dynamosim.Options{})
		v, leases := &versions{seen: map[string]int{}}, NewLeaseTable(w.sim, "leases")
		const life = 4 * time.Hour // of a shard
		shards := worldsize.Of(60, 18)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(shards)*life+time.Minute)
		defer cancel()
		ended := make(chan error)
		go func() {
			ended <- newTestReader(t, w.sim, leases, v, func(cfg *Config) {
				cfg.StreamARN, cfg.PollInterval, cfg.ListInterval = w.arn, time.Minute, 10*time.Minute
				cfg.LeaseTerm = 10 * time.Minute // so that less is written
			}).Run(ctx)
		}()
		for range shards {
			w.write(t, "item")
			time.Sleep(life)
			open, err := w.sim.OpenShards(simTable)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.sim.RollOver(simTable, open[0]); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		rows, err := leases.Load(t.Context())
		if err != nil || len(rows) > 9 {
			t.Errorf("%d rows in the end, %v; want about those of the last day", len(rows), err)
		}
		if v.seen["item"] != shards || len(v.bad) > 0 {
			t.Errorf("version %d of %d seen; %v", v.seen["item"], shards, v.bad)
		}
	})
}

// A worker that drains once in twenty hours finds several generations to delete.
func TestTheLeaseTableDoesNotGrowWhereTheStreamIsDrainedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, dynamosim.Options{})
		v, leases := &versions{seen: map[string]int{}}, NewLeaseTable(w.sim, "leases")
		for i := range 60 { // ten days of a new shard every four hours
			w.write(t, "item")
			time.Sleep(4 * time.Hour)
			open, err := w.sim.OpenShards(simTable)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.sim.RollOver(simTable, open[0]); err != nil {
				t.Fatal(err)
			}
			if i%5 != 4 {
				continue
			}
			if err := newTestReader(t, w.sim, leases, v, func(cfg *Config) { cfg.StreamARN = w.arn }).Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := leases.Load(t.Context())
		if err != nil || len(rows) > 9 {
			t.Errorf("%d rows after ten days, %v; want about those of the last day", len(rows), err)
		}
	})
}

func TestAReaderThatWasAwayForTooLongSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, dynamosim.Options{})
		v := &versions{seen: map[string]int{}}
		reader := func() *Reader {
			return newTestReader(t, w.sim, NewLeaseTable(w.sim, "leases"), v, func(cfg *Config) { cfg.StreamARN = w.arn })
		}
		for range 3 {
			w.write(t, "item")
		}
		if err := reader().Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 40 { // forty hours of a new shard every two
			w.write(t, "item")
			time.Sleep(time.Hour)
			open, err := w.sim.OpenShards(simTable)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.sim.RollOver(simTable, open[0]); err != nil {
				t.Fatal(err)
			}
		}
		var trimmed *TrimmedError
		if err := reader().Drain(t.Context()); !errors.As(err, &trimmed) {
			t.Fatalf("Drain returned %v, want a TrimmedError", err)
		}
		if v.seen["item"] != 3 {
			t.Errorf("version %d was processed behind the gap", v.seen["item"])
		}
	})
}
