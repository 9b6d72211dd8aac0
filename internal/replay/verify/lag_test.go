package verify_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/replay/verify/pending"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

var errCrashed = errors.New("the process has died")

// mortal is a client whose process dies after a number of writes.
type mortal struct {
	projections.Client
	mu   sync.Mutex
	left int // writes; below 0: immortal
	dead bool
}

func (m *mortal) write() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead = m.dead || m.left == 0; m.dead {
		return errCrashed
	}
	m.left--
	return nil
}

func (m *mortal) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput,
	error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Client.UpdateItem(ctx, in, o...)
}

func (m *mortal) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Client.PutItem(ctx, in, o...)
}

func (m *mortal) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput,
	error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Client.DeleteItem(ctx, in, o...)
}

func (m *mortal) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Client.TransactWriteItems(ctx, in, o...)
}

// consumer applies the stream, behind it, and dies at times.
type consumer struct {
	*world
	mu   sync.Mutex
	done int
}

// Applied is a number of records here.
func (c *consumer) Applied(context.Context) (verify.Applied, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return verify.Applied{Shards: map[string]verify.Checkpoint{"": {After: strconv.Itoa(c.done)}}}, nil
}

// Unapplied reads the stream to its end.
func (c *consumer) Unapplied(ctx context.Context, then verify.Applied, f func(*change.Record) error) error {
	done, err := strconv.Atoi(then.Shards[""].After)
	if err != nil {
		return err
	}
	i := 0
	return c.stream().Unapplied(ctx, verify.Applied{}, func(rec *change.Record) error {
		if i++; i <= done {
			return nil
		}
		return f(rec)
	})
}

// stream reads all of the stream, every time.
func (w *world) stream() *pending.Stream {
	return &pending.Stream{
		Client: w.sim, ARN: w.arn, PartitionKey: w.p.Set.Table.PartitionKey, SortKey: w.p.Set.Table.SortKey, PollInterval: time.Nanosecond,
		Checkpoints: func(context.Context) (map[string]verify.Checkpoint, error) { return nil, nil },
	}
}

// step applies some records, in a process that may die while it does.
func (c *consumer) step(r *rand.Rand) {
	c.t.Helper()
	var all []change.Record
	c.must(c.stream().Unapplied(c.ctx, verify.Applied{}, func(rec *change.Record) error { all = append(all, *rec); return nil }))
	client := &mortal{Client: c.sim, left: -1}
	cfg := c.config
	cfg.Client, cfg.Rules = client, loadSet(c.t, c.p)
	e, err := projections.Open(c.ctx, cfg)
	c.must(err)
	if r.IntN(2) == 0 {
		client.left = r.IntN(25)
	}
	if r.IntN(3) == 0 {
		if err := e.Seed(c.ctx, nil); err != nil && !client.dead {
			c.t.Error(err)
		}
		if client.dead {
			return
		}
	}
	batch := all[c.done:min(len(all), c.done+1+r.IntN(40))]
	n, err := e.Process(c.ctx, batch)
	if err != nil && !client.dead {
		c.t.Error(err)
	}
	if client.dead {
		return // no reader has written the checkpoint
	}
	c.mu.Lock()
	c.done += n
	c.mu.Unlock()
	if r.IntN(3) == 0 {
		if r.IntN(2) == 0 {
			client.left = r.IntN(5)
		}
		if _, err := e.WorkTasks(c.ctx); err != nil && !client.dead {
			c.t.Error(err)
		}
	}
}

// lagging counts suspects that would have been drift but for the stream.
var lagging atomic.Int64

func TestNothingIsDriftThatIsOnlyLag(t *testing.T) {
	seeds := worldsize.Of(40, 5)
	if os.Getenv("DYNAMILL_SOAK") != "" {
		seeds = 300
	}
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), inBubble(func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), 8))
				p := population.Draw(r, projections.Kinds)
				w := newWorld(t, p, uint64(seed))
				w.config.FanOutMax = 2
				c := &consumer{world: w}
				if seed%3 == 0 { // the table was full before
					w.live(60)
					w.engine()
				} else {
					w.must(w.engine().Seed(w.ctx, nil))
				}
				for range 8 {
					w.live(1 + r.IntN(30))
					c.verifyBeside(r, seed%2 == 0)
					if t.Failed() {
						t.Fatal(p.File)
					}
				}
			}))
		}
	})
	if n := lagging.Load(); n < int64(seeds) {
		t.Errorf("only %d suspects were held back for the stream: the test shows nothing", n)
	}
}

// verifyBeside verifies between two pieces of work, or while they are done.
func (c *consumer) verifyBeside(r *rand.Rand, beside bool) {
	var wg sync.WaitGroup
	steps := func() {
		for range r.IntN(4) {
			c.step(r)
		}
	}
	if c.slow.Store(beside); beside {
		wg.Go(steps)
	} else {
		steps()
	}
	found, summary := c.verify(false, func(cfg *verify.Config) {
		cfg.Pending = c
		if beside {
			cfg.Wait = 50 * time.Millisecond
		}
	})
	lagging.Add(summary.Undecided["the stream holds records of it that are not applied yet"])
	for _, f := range found {
		c.t.Errorf("only lag: %s", text(f))
	}
	wg.Wait()
	c.slow.Store(false)
}

// busy has the application write an attribute that no rule reads, before every reading.
type busy struct {
	*audits.Audit
	w    *world
	item change.Item
	n    int
}

func (b *busy) Read(ctx context.Context, s []drift.Suspect) ([]drift.Reading, error) {
	b.n++
	b.item["views"] = change.Number(strconv.Itoa(b.n))
	b.w.put("app", b.item)
	return b.Audit.Read(ctx, s)
}

func TestAWrongCopyIsFoundBelowAParentThatKeepsChanging(t *testing.T) {
	w := worldOf(t, "club", clubRules)
	parent := texts("pk", "USER#1", "sk", "PROFILE", "name", "Ada")
	w.put("app", parent)
	w.put("app", membership("1", "1"))
	w.follow()
	for _, it := range w.scan("app") {
		if it["pk"].Text() == "GROUP#1" && it["sk"].Text() == "USER#1" {
			it["userName"] = change.String("WRONG")
			w.put("app", it)
		}
	}
	w.lose()
	c := &consumer{world: w}
	w.must(w.stream().Unapplied(w.ctx, verify.Applied{}, func(*change.Record) error { c.done++; return nil }))
	found, s := w.verify(false, func(cfg *verify.Config) { cfg.Auditor, cfg.Pending = &busy{Audit: w.audit(), w: w, item: parent}, c })
	if len(found) != 1 || found[0].Kind != "copy" {
		t.Errorf("found %v, undecided %v", found, s.Undecided)
	}
}
