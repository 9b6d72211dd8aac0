package streamreader

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// hangMax is for how long a connection hangs whose other end is gone.
const hangMax = 15 * time.Minute

func hang(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(hangMax):
		return errReset
	}
}

// hungCalls hangs in the first of some calls.
type hungCalls struct {
	*LeaseTable
	mu                                    sync.Mutex
	loads, creates, deletes, claims, hung int
}

func (c *hungCalls) hangs(ctx context.Context, left *int) error {
	c.mu.Lock()
	hangs := *left > 0
	if hangs {
		*left--
		c.hung++
	}
	c.mu.Unlock()
	if hangs {
		return hang(ctx)
	}
	return nil
}

// count is how many calls have hung so far.
func (c *hungCalls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hung
}

func (c *hungCalls) Load(ctx context.Context) ([]Lease, error) {
	if err := c.hangs(ctx, &c.loads); err != nil {
		return nil, err
	}
	return c.LeaseTable.Load(ctx)
}

func (c *hungCalls) Create(ctx context.Context, l Lease) (Lease, error) {
	if err := c.hangs(ctx, &c.creates); err != nil {
		return l, err
	}
	return c.LeaseTable.Create(ctx, l)
}

func (c *hungCalls) Claim(ctx context.Context, l Lease, w Worker) (Lease, error) {
	if err := c.hangs(ctx, &c.claims); err != nil {
		return l, err
	}
	return c.LeaseTable.Claim(ctx, l, w)
}

func (c *hungCalls) Delete(ctx context.Context, l Lease) error {
	if err := c.hangs(ctx, &c.deletes); err != nil {
		return err
	}
	return c.LeaseTable.Delete(ctx, l)
}

// Whatever call hangs first, a reader soon makes it again.
func TestAStartThatHangsIsMadeAgain(t *testing.T) {
	for what, calls := range map[string]*hungCalls{
		"reading the rows":    {loads: 1},
		"making the rows":     {creates: 2},
		"claiming the rows":   {claims: 2},
		"everything, at once": {loads: 1, creates: 2, claims: 2},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				cp := &hungCalls{LeaseTable: newLeases(), loads: calls.loads, creates: calls.creates, claims: calls.claims}
				// A worker of a fleet has begun the first list, and is dead.
				if _, err := cp.LeaseTable.Create(t.Context(), Lease{Shard: testARN, Stream: testARN, Counter: 3,
					Checkpoint: TrimHorizon}); err != nil {
					t.Fatal(err)
				}
				f.write(f.open("shard", ""), "item", 3)
				began := time.Now()
				if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 6*testTerm {
					t.Errorf("it took %s", took)
				}
				wantItems(t, c, map[string]int{"item": 3})
			})
		})
	}
}

// The end of the first list claims and releases the stream's own row; its one shard is
// claimed beside it, so that either hangs.
func TestTheEndOfTheFirstListMayHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		cp := &hungCalls{LeaseTable: newLeases()}
		if _, err := cp.Create(t.Context(), Lease{Shard: testARN, Stream: testARN, Counter: 3, Checkpoint: TrimHorizon}); err != nil {
			t.Fatal(err)
		}
		cp.claims = 1
		f.open("shard", "")
		began := time.Now()
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 6*testTerm || cp.count() != 1 {
			t.Errorf("it took %s, %d calls hung", took, cp.count())
		}
		if l := leaseOf(t, cp, testARN); l.Checkpoint != Latest {
			t.Errorf("the stream's row is left as %+v", l)
		}
	})
}

// An old row that cannot be deleted keeps the worker that lists from nothing.
func TestADeleteThatHangsHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		cp := &hungCalls{LeaseTable: newLeases(), deletes: 1 << 20}
		first := f.open("shard-1", "")
		second := f.open("shard-2", "shard-1")
		f.write(first, "one", 1)
		f.write(second, "two", 1)
		f.close(first)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- newTestReader(t, f, cp, c).Run(ctx) }()
		time.Sleep(10 * time.Second)
		third := f.open("shard-3", "shard-2")
		f.close(second)
		time.Sleep(30 * time.Second)
		f.change(func() { first.gone = true })
		time.Sleep(3 * time.Minute)
		if cp.count() == 0 {
			t.Fatal("no row was deleted")
		}
		f.write(f.open("shard-4", "shard-3"), "four", 1)
		f.close(third)
		time.Sleep(2 * testTerm)
		wantItems(t, c, map[string]int{"one": 1, "two": 1, "four": 1})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// hungElection hangs in the first claim of the stream's own row.
type hungElection struct {
	*line
	arn  string
	hung bool
}

func (h *hungElection) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	claims := false
	for _, name := range in.ExpressionAttributeNames {
		claims = claims || name == "ownerRun"
	}
	if claims && !h.hung && in.Key["leaseKey"].(*ddb.AttributeValueMemberS).Value == h.arn {
		h.hung = true
		return nil, hang(ctx)
	}
	return h.line.UpdateItem(ctx, in, opts...)
}

func TestAnElectionThatHangsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 4})
		dies := c.join("dies")
		time.Sleep(5 * time.Second)
		h := &hungElection{arn: c.arn}
		c.join("lives", func(cfg *Config) {
			h.line = cfg.Streams.(*line)
			cfg.Checkpoints = NewLeaseTable(h, "leases")
		})
		time.Sleep(30 * time.Second)
		c.kill(dies)
		time.Sleep(4 * testTerm)
		if owners := c.owners(); len(owners["lives"]) != 4 || !h.hung {
			t.Errorf("four terms after the death: %v; its election hung: %v", owners, h.hung)
		}
		<-dies.ended
		c.dismiss()
	})
}

// stubborn fails to delete one row, once: before it is done, or after.
type stubborn struct {
	*LeaseTable
	shard         string
	after, failed bool
}

func (c *stubborn) Delete(ctx context.Context, l Lease) error {
	if l.Shard != c.shard || c.failed {
		return c.LeaseTable.Delete(ctx, l)
	}
	if c.failed = true; c.after {
		_ = c.LeaseTable.Delete(ctx, l)
	}
	return errReset
}

// Parents are deleted first: a row that stays behind those of its children says
// that the children are still to be found.
func TestARowThatCouldNotBeDeletedOnceGoesLater(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted all the same: %t", after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { failToDelete(t, after) })
		})
	}
}

func failToDelete(t *testing.T, after bool) {
	f, cp := newFakeStream(), &stubborn{LeaseTable: newLeases(), shard: "shard-1", after: after}
	first, second, third := f.open("shard-1", ""), f.open("shard-2", "shard-1"), f.open("shard-3", "shard-2")
	f.open("shard-4", "shard-3")
	for _, s := range []*fakeShard{first, second, third} {
		f.close(s)
	}
	r := newTestReader(t, f, cp, &collector{})
	ctx, cancel := contextFor(t, 10*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	time.Sleep(time.Minute)
	f.change(func() { first.gone, second.gone = true, true })
	time.Sleep(8 * time.Minute)
	if !r.Stats().CaughtUp {
		t.Error("not caught up any more")
	}
	<-ctx.Done()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !cp.failed {
		t.Error("no row was deleted")
	}
	rows, err := cp.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range rows {
		if l.Finished() && l.Shard != third.id {
			t.Errorf("the row of %s is left", l.Shard)
		}
	}
}
