package streamreader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// describing counts the calls for all shards and for the children of one.
type describing struct {
	mu             sync.Mutex
	full, children int
}

func (d *describing) before(op string, input any) error {
	if in, ok := input.(*dynamodbstreams.DescribeStreamInput); ok && op == "DescribeStream" {
		d.mu.Lock()
		defer d.mu.Unlock()
		if in.ShardFilter != nil {
			d.children++
		} else {
			d.full++
		}
	}
	return nil
}

func (d *describing) calls() (full, children int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full, d.children
}

// The children of a shard that has ended are found at the price of a few
// calls, not of a list of all shards.
func TestChildrenAreListedByTheirParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &describing{}
		c := newCrew(t, dynamosim.Options{Shards: worldsize.Of(450, 150), Before: d.before})
		quiet := func(cfg *Config) { cfg.ListInterval, cfg.PollInterval = time.Hour, 2*time.Second }
		c.join("a", quiet)
		c.join("b", quiet)
		time.Sleep(time.Minute)
		full, children := d.calls()
		if children > 0 {
			t.Errorf("%d calls for children although no shard has ended", children)
		}
		for _, owner := range []string{"a", "b"} { // b does not list
			parent := c.owners()[owner][3]
			children, err := c.sim.SplitShard(simTable, parent)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			rows := c.rows()
			for _, child := range children {
				if l := rows[child]; l.Parent != parent || l.Owner == "" {
					t.Errorf("five seconds after the split of a shard of %s its child is %+v", owner, l)
				}
			}
		}
		if again, children := d.calls(); children == 0 || again != full {
			t.Errorf("%d calls for children, %d for all shards; want a few, and none", children, again-full)
		}
		c.dismiss()
	})
}

// An endpoint that does not know how to list children only ignores the
// question, or refuses it.
func TestChildrenAreFoundWhereTheEndpointKnowsNoFilter(t *testing.T) {
	for name, refusal := range map[string]error{
		"ignores it": nil,
		"refuses it": &smithy.GenericAPIError{Code: "ValidationException", Fault: smithy.FaultClient},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.shardsPage = 2
				var parents []*fakeShard
				for i := range 7 {
					parents = append(parents, f.open(fmt.Sprintf("shard%d", i), ""))
				}
				time.AfterFunc(10*time.Second, func() {
					f.write(parents[2], "item", 3)
					f.close(parents[2])
					f.write(f.open("child", "shard2"), "item", 4)
				})
				ctx, cancel := contextFor(t, 30*time.Second)
				defer cancel()
				streams := refusing{f, refusal}
				if err := newTestReader(t, streams, newLeases(), c, func(cfg *Config) { cfg.ListInterval = time.Hour }).Run(ctx); err != nil {
					t.Fatal(err)
				}
				wantItems(t, c, map[string]int{"item": 7})
			})
		})
	}
}

type refusing struct {
	*fakeStream
	err error
}

func (r refusing) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	if in.ShardFilter != nil && r.err != nil {
		return nil, r.err
	}
	return r.fakeStream.DescribeStream(ctx, in, opts...)
}

// pagesThatFail answers only the first pages of a list.
type pagesThatFail struct {
	*fakeStream
	mu   sync.Mutex
	left int
}

func (p *pagesThatFail) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in.ExclusiveStartShardId != nil {
		if p.left--; p.left < 0 {
			return nil, errors.New("connection reset")
		}
	}
	return p.fakeStream.DescribeStream(ctx, in, opts...)
}

// Shards on the first pages are read although the list never comes to its
// end; but not one whose parent may be on a later page.
func TestAPartOfTheListIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.shardsPage = 2
		f.write(f.open("b", ""), "early", 3)
		f.write(f.open("c", ""), "early-too", 3)
		f.write(f.open("d", ""), "unlisted", 3)
		parent := f.open("z-parent", "")
		f.write(parent, "late", 2)
		f.close(parent)
		child := f.open("a-child", "z-parent")
		f.write(child, "late", 2)
		f.shards = slices.Insert(f.shards[:len(f.shards)-1], 0, child) // listed long before its parent
		p := &pagesThatFail{fakeStream: f}
		cp := newLeases()
		ctx, cancel := contextFor(t, 20*time.Second)
		defer cancel()
		if err := newTestReader(t, p, cp, c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"early": 3})
		p.left = 1 << 30
		c.before = nil
		if err := newTestReader(t, p, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"early": 3, "early-too": 3, "unlisted": 3, "late": 4})
	})
}

// The next worker completes a first list that was cut off: shards whose
// parents are long gone are no sign of a generation that went unread.
func TestAFirstListThatWasCutOffIsGoneOnWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		f.shardsPage = 2
		for i := range 5 {
			f.write(f.open(fmt.Sprintf("shard%d", i), ""), "item"+fmt.Sprint(i), 2)
		}
		f.write(f.open("shard9", "long-gone"), "orphan", 2)
		p := &pagesThatFail{fakeStream: f}
		ctx, cancel := contextFor(t, 20*time.Second)
		defer cancel()
		if err := newTestReader(t, p, cp, c).Run(ctx); err != nil || c.count() != 4 {
			t.Fatalf("%d records, %v; want those of the first page", c.count(), err)
		}
		p.left = 1 << 30
		if err := newTestReader(t, p, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.items(t)["orphan"] != 2 || c.count() != 12 {
			t.Errorf("%v", c.items(t))
		}
		// Once the list was complete, such a shard is one.
		f.write(f.open("shardX", "never-seen"), "item", 1)
		var trimmed *TrimmedError
		if err := newTestReader(t, p, cp, c).Drain(t.Context()); !errors.As(err, &trimmed) || trimmed.Shard != "never-seen" {
			t.Errorf("Drain returned %v, want a TrimmedError for the parent", err)
		}
	})
}

// When the worker that lists dies, another goes on.
func TestAnotherWorkerListsWhenTheFirstDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 2})
		first := c.join("first")
		time.Sleep(5 * time.Second)
		second := c.join("second")
		time.Sleep(10 * time.Second)
		c.kill(first)
		time.Sleep(2 * testTerm)
		for _, shard := range slices.Clone(c.owners()["second"]) {
			if _, err := c.sim.RollOver(simTable, shard); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		rows := c.rows()
		if row := rows[c.arn]; row.Owner != "second" || row.Checkpoint != Latest || row.PartitionKey != "pk" || second.line.listed() == 0 {
			t.Errorf("the stream's own row: %+v", row)
		}
		if len(rows) != 5 || len(c.owners()["second"]) != 2 {
			t.Errorf("rows %v", rows)
		}
		<-first.ended
		c.dismiss()
	})
}
