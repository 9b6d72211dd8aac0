package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/oracle"
	"github.com/dynamill/dynamill/internal/population"
	"github.com/dynamill/dynamill/projections"
)

const (
	seedDefault  = 20261121
	historiesMax = 20 // times DYNAMILL_SOAK
	historyMax   = 2 * time.Minute
	olderMax     = 15 // items that are older than the stream
	writesMin    = 60
	writesMax    = 100
	burstMax     = 15
	pauseMax     = 40 * time.Millisecond
	problemsMax  = 10 // shown
	tasksPayload = `{"dynamill":"tasks"}`
)

// TestTheDeployedFunctionComesOutTrue lets an application write while the
// function's binary is invoked as on Lambda: with batches of its table's stream
// that are split, repeated and given up, with what was given up, and with the
// schedule's payload, on environments that are killed, frozen and taken for dead
// amid a batch. In the end everything in both tables must be as computed from
// scratch. DYNAMILL_SEED draws other histories; processes keep their own time, so
// that a seed repeats what is done to them, not what they do. DYNAMILL_SOAK
// multiplies the histories.
func TestTheDeployedFunctionComesOutTrue(t *testing.T) {
	address := endpoint(t)
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	seed := fromEnvironment(t, "DYNAMILL_SEED", seedDefault)
	histories := historiesMax * fromEnvironment(t, "DYNAMILL_SOAK", 1)
	for n := range histories {
		lanes := 1 + 3*int(n%2)
		t.Run(fmt.Sprintf("%d lanes %d", n, lanes), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, n))
			p := population.Draw(random)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("DYNAMILL_SEED=%d, history %d has the rules\n%s", seed, n, p.File)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), historyMax)
			defer cancel()
			newHistory(ctx, t, p, address, random, lanes).live()
		})
	}
}

// history is one table's.
type history struct {
	*world
	random   *rand.Rand
	app      *application
	function *Function
	mapping  *Mapping
	bucket   *Destination
	calm     atomic.Bool

	mu     sync.Mutex // of fates, which several goroutines ask for
	fates  *rand.Rand
	tasks  int // invocations
	late   int // objects that were handed over
	partly int // answers that named a record
}

func newHistory(ctx context.Context, t *testing.T, p *population.Population, address string, random *rand.Rand, lanes int) *history {
	h := &history{
		world: newWorld(ctx, t, p, address), random: random, bucket: &Destination{},
		fates: rand.New(rand.NewPCG(random.Uint64(), 0)),
	}
	h.app = &application{world: h.world, random: random, base: map[change.Key]change.Item{}}
	h.function = &Function{Command: h.command, Timeout: 10 * time.Second, ConcurrencyMax: lanes + random.IntN(2), Fate: h.fate}
	h.mapping = &Mapping{
		Streams: h.streams, PartitionKey: p.Set.Table.PartitionKey, Function: h.function,
		BatchSize: pick(random, 1, 3, 10, 100), ParallelizationFactor: lanes,
		RetriesMax: pick(random, 0, 1, 3, Forever), BisectBatch: random.IntN(2) == 0, ReportBatchItemFailures: true,
		OnFailure: h.bucket, PollInterval: 25 * time.Millisecond, RetryPause: 5 * time.Millisecond, Again: func() bool { return h.chance(0.05) }, Attempted: h.attempted,
	}
	return h
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func (h *history) chance(p float64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fates.Float64() < p
}

// fate draws what happens to the next invocation.
func (h *history) fate() Fate {
	if h.calm.Load() {
		return Fate{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	soon := func(most time.Duration) time.Duration { // mostly much less
		share := h.fates.Float64()
		return time.Duration(share * share * float64(most))
	}
	switch n := h.fates.IntN(100); {
	case n < 15:
		return Fate{Kind: Kill, After: soon(150 * time.Millisecond)}
	case n < 22:
		return Fate{Kind: Pause, After: soon(100 * time.Millisecond), For: soon(200 * time.Millisecond)}
	case n < 32:
		return Fate{Kind: Lose, After: soon(100 * time.Millisecond), For: soon(600 * time.Millisecond)}
	case n < 52: // the handler stops before, and says how far it came
		return Fate{Timeout: 5*time.Millisecond + soon(200*time.Millisecond)}
	}
	return Fate{}
}

// attempted sees to it that the function fails by what was done to it only.
func (h *history) attempted(a Attempt) {
	if a.Failed == nil {
		if a.Done < len(a.Records) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.partly++
		}
		return
	}
	h.expectBlow(a.Failed)
}

func (h *history) expectBlow(failed *FunctionError) {
	switch {
	case failed.Type == "Sandbox.Timedout", failed.Type == "Sandbox.Lost":
	case failed.Type == "Runtime.TruncatedResponse": // killed while it answered
	case failed.Type == "Runtime.ExitError" && strings.Contains(failed.Message, "signal: killed"):
	default:
		h.Errorf("the function failed by itself: %s", failed)
	}
}

// live is the whole story.
func (h *history) live() {
	defer h.function.Close()
	began := time.Now()
	h.createTable()
	for range h.random.IntN(olderMax) { // before there is a stream
		h.must(h.app.put(h.app.Item(h.random)))
	}
	h.mapping.StreamARN = h.enableStream()
	ctx, stop := context.WithCancel(h.ctx)
	ran := make(chan error, 1)
	seeded := make(chan error, 1)
	seed := func() {
		engine, err := h.operator()
		if err == nil {
			err = engine.Seed(h.ctx, nil)
		}
		seeded <- err
	}
	if h.random.IntN(2) == 0 { // before the function is deployed, or beside it
		seed()
	} else {
		go seed()
	}
	go func() { ran <- h.mapping.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ran; err != nil {
			h.Errorf("the mapping ended: %v", err)
		}
	}()
	for most := writesMin + h.random.IntN(writesMax-writesMin); h.app.writes < most; {
		h.must(h.app.burst(1 + h.random.IntN(burstMax)))
		time.Sleep(time.Duration(h.random.Int64N(int64(pauseMax))))
		switch h.random.IntN(4) {
		case 0:
			h.workTasks()
		case 1:
			h.handOver()
		}
	}
	h.must(<-seeded)
	wrote := time.Since(began)
	h.finish()
	h.retryParked()
	h.finish()
	h.judge()
	h.Logf("%s: %d writes in %s; batches of %d, retries %d, bisect %t; %s; %d partial answers, %d batches discarded, %d handed over, %d for tasks; all in %s",
		h.Name, h.app.writes, wrote.Round(time.Millisecond), h.mapping.BatchSize, h.mapping.RetriesMax, h.mapping.BisectBatch,
		h.function.Counts(), h.partly, h.bucket.Kept(), h.late, h.tasks, time.Since(began).Round(time.Millisecond))
}

// finish lets the function do all that is left to do.
func (h *history) finish() {
	h.Helper()
	for left := true; left; {
		records, err := h.mapping.Settle(h.ctx)
		h.must(err)
		before := h.function.Counts().Outcast
		h.function.Rest() // who was given up for dead may still write
		left = records > 0 || before > 0 && !h.calm.Load()
		h.calm.Store(true) // so that it comes to an end
		for h.handOver() {
			left = true
		}
		for h.tasksLeft() {
			left = true
			h.workTasks()
		}
	}
}

// invoke invokes the function as something else than the mapping does, and
// reports whether it did its work.
func (h *history) invoke(payload []byte) bool {
	h.Helper()
	_, err := h.function.Invoke(h.ctx, payload)
	var failed *FunctionError
	if errors.As(err, &failed) {
		if !strings.Contains(failed.Type, "Sandbox.") && !strings.Contains(failed.Type, "Runtime.") {
			h.Logf("%.60s: %s", payload, failed)
			return false
		}
		h.expectBlow(failed)
		return false
	}
	h.must(err)
	return true
}

// handOver gives the function a batch that was discarded, and reports whether there was one.
func (h *history) handOver() bool {
	object := h.bucket.Take()
	if object == nil {
		return false
	}
	if h.invoke(object) {
		h.late++
	} else {
		h.bucket.Put(object)
	}
	return true
}

func (h *history) workTasks() {
	h.tasks++
	h.invoke([]byte(tasksPayload))
}

func (h *history) tasksLeft() bool {
	h.Helper()
	out, err := h.client.Query(h.ctx, &dynamodb.QueryInput{
		TableName: aws.String(h.stateTable()), KeyConditionExpression: aws.String("pk = :tasks"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: map[string]types.AttributeValue{":tasks": &types.AttributeValueMemberS{Value: "tasks"}},
	})
	h.must(err)
	return out.Count > 0
}

// retryParked does what docs/state-table.md leaves to the operator.
func (h *history) retryParked() {
	h.Helper()
	engine, err := h.operator()
	h.must(err)
	parked, err := engine.Parked(h.ctx)
	h.must(err)
	for _, p := range parked {
		if slices.Contains([]string{"heal.contested", "write.rejected", "number.overflow"}, p.Code) {
			if err := engine.RetryParked(h.ctx, p.ID); !errors.Is(err, projections.ErrNotParked) {
				h.must(err)
			}
		}
	}
}

// judge compares both tables with what a computation from scratch says.
func (h *history) judge() {
	h.Helper()
	items, err := h.scan(h.table)
	h.must(err)
	state, err := h.scan(h.stateTable())
	h.must(err)
	base := slices.Collect(maps.Values(h.app.base))
	shown := 0
	for _, finding := range []struct {
		what  string
		found []oracle.Difference
	}{
		{"drift", oracle.Drift(h.Set, items)},
		{"state table", oracle.Audit(h.Set, items, state, time.Now(), oracle.DanglingReferences, oracle.ExpiringPositions, oracle.SeededDueMarks)},
		{"not the engine's", oracle.Foreign(h.Set, base, items)},
	} {
		for _, d := range finding.found {
			if shown++; shown <= problemsMax {
				h.Errorf("%s: %s", finding.what, d)
			}
		}
	}
	if shown > 0 {
		h.Fatalf("%d differences among %d items and %d of the state table; %d writes; %s; %+v",
			shown, len(items), len(state), h.app.writes, h.function.Counts(), h.mapping.BatchSize)
	}
}
