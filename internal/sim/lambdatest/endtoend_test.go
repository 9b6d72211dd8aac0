package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

const (
	seedDefault  = 20261121
	historiesMax = 50 // times DYNAMILL_SOAK
	historyMax   = 5 * time.Minute
	stormMax     = 30 * time.Second // then nothing happens to invocations any more, however slow the machine is
	olderMax     = 15               // items that are older than the stream
	writesMin    = 30
	writesMax    = 60
	burstMax     = 12
	pauseMax     = 40 * time.Millisecond
	tasksPayload = `{"dynamill":"tasks"}`
)

// TestTheDeployedFunctionComesOutTrue lets an application write while the
// function's binary is invoked as on Lambda: with batches of its table's stream
// that are split, repeated and given up, with what was given up, or with messages of
// a queue that keeps no order, and with the schedule's payload, on environments that
// are killed, frozen and taken for dead amid a batch. Some records are malformed
// whenever they come. In the end everything in both tables must be as computed from
// scratch. One history of eight is at DynamoDB Local; the others have a simulator
// each. DYNAMILL_SEED draws other histories; processes keep their own time, so
// that a seed repeats what is done to them, not what they do. DYNAMILL_SOAK
// multiplies the histories.
func TestTheDeployedFunctionComesOutTrue(t *testing.T) {
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	seed := fromEnvironment(t, "DYNAMILL_SEED", seedDefault)
	histories := historiesMax * fromEnvironment(t, "DYNAMILL_SOAK", 1)
	all := &totals{}
	t.Cleanup(func() { all.judge(t) })
	for n := range histories {
		lanes := 1 + 3*int(n%2)
		t.Run(fmt.Sprintf("%d lanes %d", n, lanes), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, n))
			server, draw := emulator.Simulated, population.Draw
			if n%16 < 2 { // with one lane, and with several
				server, draw = emulator.Local, population.DrawForLocal
			}
			p := draw(random, projections.Kinds)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("DYNAMILL_SEED=%d, history %d has the rules\n%s", seed, n, p.File)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), historyMax)
			defer cancel()
			h := newHistory(ctx, t, server(t), p, random, lanes)
			h.live()
			all.add(h)
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
	queue    *Queue // nil if the mapping invokes the function
	fanOut   string // children at once; "" is the function's default

	*fates
	spoiler *malformed
	diary   diary
	spent   stopwatch
	calm    atomic.Bool
	done
}

func newHistory(ctx context.Context, t *testing.T, server emulator.Endpoint, p *population.Population, random *rand.Rand,
	lanes int) *history {
	h := &history{
		spent: stopwatch{last: time.Now()},
		world: newWorld(ctx, t, server, p), random: random, bucket: &Destination{}, diary: diary{began: time.Now()},
		spoiler: newMalformed(random), fanOut: pick(random, "", "1", "2", "3"),
	}
	batchSize := pick(random, 1, 3, 10, 100)
	h.fates = newFates(random, batchSize)
	h.app = &application{world: h.world, random: random, base: map[change.Key]change.Item{}}
	h.function = &Function{Command: h.command, Timeout: 10 * time.Second, ConcurrencyMax: lanes + random.IntN(2), Fate: h.fate}
	h.mapping = &Mapping{
		Streams: h.streams, PartitionKey: p.Set.Table.PartitionKey, Function: watched{h},
		BatchSize: batchSize, ParallelizationFactor: lanes,
		RetriesMax: pick(random, 0, 1, 3, Forever), BisectBatch: random.IntN(2) == 0, ReportBatchItemFailures: true,
		OnFailure: h.bucket, PollInterval: 25 * time.Millisecond, RetryPause: 5 * time.Millisecond,
		Again: h.again, Corrupt: h.spoiler.corrupt, Attempted: h.spoiler.attempted,
	}
	if random.IntN(5) == 0 {
		h.queue = &Queue{
			Function: watched{h}, BatchSize: batchSize, ConcurrencyMax: lanes, RetryPause: 5 * time.Millisecond, Again: h.again,
		}
		h.mapping.Function = h.queue
	}
	return h
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// command runs the function as it is deployed.
func (h *history) command() *exec.Cmd {
	cmd := h.world.command()
	if h.fanOut != "" {
		cmd.Env = append(cmd.Env, "DYNAMILL_FAN_OUT_MAX="+h.fanOut)
	}
	return cmd
}

// live is the whole story.
func (h *history) live() {
	defer h.function.Close()
	defer time.AfterFunc(stormMax, func() { h.calm.Store(true) }).Stop()
	h.createTable()
	for range h.random.IntN(olderMax) { // before there is a stream
		h.must(h.app.put(h.app.Item(h.random)))
	}
	h.mapping.StreamARN = h.enableStream()
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
	h.spent.lap("start")
	defer h.deliver()()
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
	h.spent.lap("writes")
	h.finish()
	h.spent.lap("end")
	h.retryParked()
	h.finish()
	h.spent.lap("parked")
	h.judge()
	h.spent.lap("judge")
	h.sum()
	h.Logf("%s: batches of %d, retries %d, bisect %t, fan-outs of %q; %s; %+v; %s",
		h.Name, h.mapping.BatchSize, h.mapping.RetriesMax, h.mapping.BisectBatch, h.fanOut, h.function.Counts(), h.done, &h.spent)
}

// sum takes over what others have counted.
func (h *history) sum() {
	if h.queue != nil {
		h.queues = 1
	}
	h.writes, h.discarded, h.malformed, h.partly = h.app.writes, h.bucket.Kept(), h.spoiler.count(), h.named()
}

// deliver begins to deliver what the stream holds. The function that it returns ends that.
func (h *history) deliver() (end func()) {
	ctx, stop := context.WithCancel(h.ctx)
	ran := make(chan error, 2)
	go func() { ran <- h.mapping.Run(ctx) }()
	running := 1
	if h.queue != nil {
		running++
		go func() { ran <- h.queue.Run(ctx) }()
	}
	return func() {
		stop()
		for range running {
			if err := <-ran; err != nil {
				h.Errorf("the delivery ended: %v", err)
			}
		}
	}
}

// finish lets the function do all that is left to do.
func (h *history) finish() {
	h.Helper()
	for left, first := true, true; left; first = false {
		left = h.settle()
		lost := h.function.Counts().Outcast > 0
		h.function.Rest() // an environment that was given up for dead may still write
		left = left || lost && first
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

// settle waits until nothing is left to be delivered, and reports whether anything was.
func (h *history) settle() bool {
	h.Helper()
	var before, after int
	if h.queue != nil {
		before = h.queue.Done()
	}
	records, err := h.mapping.Settle(h.ctx)
	h.must(err)
	if h.queue != nil {
		h.must(h.queue.Settle(h.ctx))
		after = h.queue.Done()
	}
	return records > 0 || after > before
}

// invoke invokes the function as something else than the mapping does, and
// reports whether it did its work.
func (h *history) invoke(payload []byte) (answer []byte, ok bool) {
	h.Helper()
	answer, err := watched{h}.Invoke(h.ctx, payload)
	var failed *FunctionError
	if errors.As(err, &failed) {
		return nil, false
	}
	h.must(err)
	return answer, true
}

// handOver gives the function a batch that was discarded, and reports whether there was one.
func (h *history) handOver() bool {
	object := h.bucket.Take()
	if object == nil {
		return false
	}
	if _, ok := h.invoke(object); ok {
		h.late++
	} else {
		h.bucket.Put(object)
	}
	return true
}

func (h *history) workTasks() {
	h.tasks++
	answer, ok := h.invoke([]byte(tasksPayload))
	if !ok {
		return
	}
	var progress struct{ Pieces int }
	h.must(json.Unmarshal(answer, &progress))
	h.pieces += progress.Pieces
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
			h.diary.note(time.Now(), nil, "retry of parked %s (%s)", p.ID, p.Code)
			if err := engine.RetryParked(h.ctx, p.ID); !errors.Is(err, inspect.ErrNotParked) {
				h.must(err)
			}
		}
	}
}
