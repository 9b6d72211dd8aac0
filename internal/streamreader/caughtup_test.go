package streamreader

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// slowList answers late when it is asked for the shards.
type slowList struct {
	*line
	wait time.Duration
}

// DescribeStream lists the stream's shards.
func (n *slowList) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	o ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	time.Sleep(n.wait)
	return n.line.DescribeStream(ctx, in, o...)
}

// TestNoWorkerHasCaughtUpBeforeTheListing looks at workers that begin on a stream that was
// written to before: seeding waits for that (promise 10).
func TestNoWorkerHasCaughtUpBeforeTheListing(t *testing.T) {
	const items = 400
	for name, wait := range map[string]time.Duration{"a quick list": 10 * time.Millisecond, "a slow list": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{Shards: 4})
				for i := range items {
					c.write(t, fmt.Sprintf("item%d", i))
				}
				time.Sleep(time.Minute)
				c.work.took = 5 * time.Second
				slow := func(cfg *Config) { cfg.Streams = &slowList{cfg.Streams.(*line), wait} }
				a, b := c.join("a", slow), c.join("b", slow)
				caughtUp := func() bool { return a.reader.Stats().CaughtUp || b.reader.Stats().CaughtUp }
				for range 400 {
					time.Sleep(10 * time.Millisecond)
					if done := a.reader.Stats().Records + b.reader.Stats().Records; done < items && caughtUp() {
						t.Fatalf("caught up with %d of %d records done", done, items)
					}
				}
				time.Sleep(5 * time.Minute)
				if !a.reader.Stats().CaughtUp || !b.reader.Stats().CaughtUp {
					t.Error("nobody ever catches up")
				}
				c.dismiss()
			})
		})
	}
}

// tornOnce is a lease table of which the first scan lacks a row that was made
// after the scan had passed its place, and shows the stream's own row, read last,
// as it was made then.
type tornOnce struct {
	*LeaseTable
	lacks string
	torn  bool
}

func (c *tornOnce) Load(ctx context.Context) ([]Lease, error) {
	rows, err := c.LeaseTable.Load(ctx)
	if !c.torn {
		c.torn = true
		rows = slices.DeleteFunc(rows, func(l Lease) bool { return l.Shard == c.lacks })
	}
	return rows, err
}

func TestAScanThatMissedARowIsNoProofThatAllIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cp := newFakeStream(), &tornOnce{LeaseTable: newLeases(), lacks: "behind"}
		for _, l := range []Lease{
			{Shard: testARN, Stream: testARN, Checkpoint: Latest, Label: "label", PartitionKey: "pk"},
			{Shard: "done", Stream: testARN, Checkpoint: "5", Newest: time.Now().Add(time.Hour)},
			{Shard: "behind", Stream: testARN, Checkpoint: TrimHorizon},
		} {
			l.Owner, l.Counter = "other", 3
			if _, err := cp.Create(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := contextFor(t, testTerm/2)
		defer cancel()
		r := newTestReader(t, f, cp, &collector{})
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
			if r.Stats().CaughtUp {
				t.Error("caught up although a shard is not")
				break
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
