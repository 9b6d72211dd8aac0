package streamreader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

func term(d time.Duration) func(*Config) { return func(cfg *Config) { cfg.LeaseTerm = d } }

// Each lease has its owner's term: a worker with a short one takes nothing from a
// healthy one with a long one, and waits for as long as that owner may be silent.
func TestWorkersWithDifferentTermsShareAStream(t *testing.T) {
	for _, short := range []string{"a", "b"} { // a comes first, and lists
		t.Run(short+" has the short term", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				terms := map[string]time.Duration{"a": 30 * time.Second, "b": 30 * time.Second}
				terms[short] = time.Second
				c := newCrew(t, dynamosim.Options{Shards: 6})
				stop := c.keepWriting(50*time.Millisecond, 40)
				a := c.join("a", term(terms["a"]))
				time.Sleep(5 * time.Second)
				b := c.join("b", term(terms["b"]))
				time.Sleep(time.Minute)
				moves := a.reader.Stats().LeaseMoves + b.reader.Stats().LeaseMoves
				time.Sleep(time.Duration(worldsize.Of(5, 1)) * time.Minute)
				if now := a.reader.Stats().LeaseMoves + b.reader.Stats().LeaseMoves; now != moves {
					t.Errorf("%d leases moved between two healthy workers", now-moves)
				}
				if owners := c.owners(); loadsOf(owners) != "3 3" {
					t.Errorf("they share %v", owners)
				}
				c.finish(stop, false)
			})
		})
	}
}

func TestADeadWorkersLeasesLastForItsOwnTerm(t *testing.T) {
	for name, test := range map[string]struct{ dies, lives, least, most time.Duration }{
		"a long one":  {dies: 30 * time.Second, lives: 2 * time.Second, least: 20 * time.Second, most: 60 * time.Second},
		"a short one": {dies: 2 * time.Second, lives: 30 * time.Second, least: time.Second, most: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{Shards: 4})
				c.join("lives", term(test.lives))
				time.Sleep(5 * time.Second)
				dead := c.join("dies", term(test.dies))
				time.Sleep(time.Minute)
				c.kill(dead)
				began := time.Now()
				for len(c.owners()["lives"]) < 4 && time.Since(began) < 5*time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("they were taken %s after the death, want %s to %s", took, test.least, test.most)
				}
				<-dead.ended
				c.dismiss()
			})
		})
	}
}

// Rows of a former version name no term.
func TestARowThatNamesNoTermExpiresAfterTheObserversOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		f.write(f.open("shard", ""), "item", 3)
		if _, err := cp.Create(t.Context(), Lease{Shard: "shard", Stream: testARN, Owner: "former", Counter: 41,
			Checkpoint: TrimHorizon}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := newTestReader(t, f, cp, c, term(3*time.Second)).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
		wantItems(t, c, map[string]int{"item": 3})
	})
}

// hanging is a lease table on which the writes to some rows are not answered
// before the end, whatever their context says.
type hanging struct {
	leases.Client
	mu   sync.Mutex
	rows map[string]bool
	over chan struct{}
}

func (h *hanging) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	h.mu.Lock()
	hangs := h.rows[in.Key["leaseKey"].(*ddb.AttributeValueMemberS).Value]
	h.mu.Unlock()
	if hangs {
		<-h.over
		return nil, errors.New("connection reset")
	}
	return h.Client.UpdateItem(ctx, in, opts...)
}

func TestRowsThatHangCostNoOtherLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards, healthy = 120, 20
		c := newCrew(t, dynamosim.Options{Shards: shards})
		stop := c.keepWriting(20*time.Millisecond, 300)
		h := &hanging{rows: map[string]bool{}, over: make(chan struct{})}
		c.join("a", func(cfg *Config) {
			h.Client = cfg.Streams.(*line)
			cfg.Checkpoints = NewLeaseTable(h, "leases")
		})
		time.Sleep(20 * time.Second)
		before := c.rows()
		ids := c.owners()["a"]
		if len(ids) != shards {
			t.Fatalf("%d shards", len(ids))
		}
		h.mu.Lock()
		for _, id := range ids[healthy:] {
			h.rows[id] = true
		}
		h.mu.Unlock()
		time.Sleep(5 * testTerm)
		rows := c.rows()
		for _, id := range ids[:healthy] {
			if l := rows[id]; l.Owner != "a" || l.Switches != before[id].Switches || l.Counter < before[id].Counter+10 {
				t.Errorf("it was %+v before, and is %+v", before[id], l)
			}
		}
		h.mu.Lock()
		h.rows = map[string]bool{}
		h.mu.Unlock()
		close(h.over)
		stop()
		time.Sleep(3 * testTerm)
		c.dismiss()
		c.judge(true)
	})
}

func TestTwoProcessesOfOneNameAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 4})
		stop := c.keepWriting(50*time.Millisecond, 20)
		first := c.join("same")
		time.Sleep(10 * time.Second)
		second := c.join("same")
		select {
		case err := <-first.ended:
			if !errors.Is(err, ErrNamesake) || !strings.Contains(err.Error(), "--worker") || !strings.Contains(err.Error(), `"same"`) {
				t.Errorf("the first one ended with %v", err)
			}
		case <-time.After(testTerm):
			t.Error("the first one goes on")
			first.cancel()
		}
		time.Sleep(5 * time.Second)
		if st := second.reader.Stats(); st.Open != 4 {
			t.Errorf("the second one: %+v", st)
		}
		c.finish(stop, true)
	})
}

// A worker that is the lister no more makes no row: the lister may have deleted it.
func TestOnlyTheListerMakesRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		for i := range 3 * leases.CallsMax {
			f.open(fmt.Sprintf("shard%02d", i), "")
		}
		cp := &slowCreates{LeaseTable: newLeases()}
		ctx, cancel := contextFor(t, 8*testTerm)
		defer cancel()
		_ = newTestReader(t, f, cp, &collector{}, func(cfg *Config) { cfg.WorkerID = "slow" }).Run(ctx)
		if cp.late > 0 {
			t.Errorf("%d rows were made by a worker that did not list any more", cp.late)
		}
		if cp.made == 0 {
			t.Error("no row was tried")
		}
	})
}

// slowCreates makes rows slowly, and never renews the lease of the list.
type slowCreates struct {
	*LeaseTable
	mu         sync.Mutex
	elected    time.Time
	made, late int
}

func (c *slowCreates) Create(ctx context.Context, l Lease) (Lease, error) {
	if l.OfStream() {
		c.elected = time.Now()
		return c.LeaseTable.Create(ctx, l)
	}
	c.mu.Lock()
	c.made++
	if time.Since(c.elected) >= testTerm*9/10 {
		c.late++
	}
	c.mu.Unlock()
	select {
	case <-time.After(testTerm):
		c.mu.Lock()
		c.late++ // it should have been given up
		c.mu.Unlock()
	case <-ctx.Done():
		return l, ctx.Err()
	}
	return c.LeaseTable.Create(ctx, l)
}

var errReset = errors.New("connection reset")

func (c *slowCreates) Renew(_ context.Context, l Lease) (Lease, error) { return l, errReset }

func (c *slowCreates) Save(_ context.Context, l Lease) (Lease, error) { return l, errReset }

func (c *slowCreates) Claim(_ context.Context, l Lease, _ Worker) (Lease, error) { return l, errReset }

// A shard that was released for a worker which has died meanwhile does not lie for the term of
// the former owner.
func TestAShardReleasedForTheDeadIsSoonTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 2})
		c.work.took = 5 * time.Second
		c.join("long", term(10*time.Minute))
		time.Sleep(5 * time.Second)
		for i := range 20 {
			c.write(t, fmt.Sprintf("item%d", i))
		}
		time.Sleep(2 * time.Second)
		dies := c.join("dies")
		time.Sleep(1500 * time.Millisecond)
		c.kill(dies)
		<-dies.ended
		time.Sleep(4 * time.Second)
		if owners := c.owners(); len(owners[""]) != 1 || len(owners["long"]) != 1 {
			t.Fatalf("nothing was released for the dead worker: %v", owners)
		}
		time.Sleep(time.Minute)
		if owners := c.owners(); len(owners["long"]) != 2 {
			t.Errorf("%v", owners)
		}
		for _, l := range c.rows() {
			if l.OfSeeker() {
				t.Errorf("the dead worker's row is left: %+v", l)
			}
		}
		c.dismiss()
		c.judge(true)
	})
}
