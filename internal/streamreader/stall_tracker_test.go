package streamreader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/stream/fleet"
)

// faultyLine is a line on which the lease table answers and the stream does not.
type faultyLine struct {
	*line
	mu                    sync.Mutex
	lists, reads, hanging bool // which calls are unanswered, and whether they fail or hang
}

func (d *faultyLine) set(lists, reads bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lists, d.reads = lists, reads
}

func (d *faultyLine) call(ctx context.Context, list bool) error {
	d.mu.Lock()
	off, hanging := list && d.lists || !list && d.reads, d.hanging
	d.mu.Unlock()
	switch {
	case !off:
		return nil
	case hanging:
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("dial tcp: i/o timeout")
}

func (d *faultyLine) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	if err := d.call(ctx, true); err != nil {
		return nil, err
	}
	return d.line.DescribeStream(ctx, in, opts...)
}

func (d *faultyLine) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	if err := d.call(ctx, false); err != nil {
		return nil, err
	}
	return d.line.GetShardIterator(ctx, in, opts...)
}

func (d *faultyLine) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	if err := d.call(ctx, false); err != nil {
		return nil, err
	}
	return d.line.GetRecords(ctx, in, opts...)
}

// newCrewWithFaultyLine has a worker a, which the stream may stop to answer, and then the others.
func newCrewWithFaultyLine(t *testing.T, shards int, others ...string) (*crew, *faultyLine) {
	c, d := newCrew(t, dynamosim.Options{Shards: shards}), &faultyLine{}
	c.join("a", func(cfg *Config) {
		d.line = cfg.Streams.(*line)
		cfg.Streams = d
	})
	time.Sleep(5 * time.Second)
	c.joinAll(others...)
	time.Sleep(20 * time.Second)
	return c, d
}

// behind is how many of the items are not done up to their last version.
func (c *crew) behind() int {
	c.work.mu.Lock()
	defer c.work.mu.Unlock()
	n := 0
	for item, version := range c.written {
		if c.work.seen[item] != version {
			n++
		}
	}
	return n
}

func TestAWorkerThatTheStreamDoesNotAnswerLetsOthersDoItsWork(t *testing.T) {
	for name, d := range map[string]struct{ lists, reads, hanging bool }{
		"lists fail": {lists: true}, "lists hang": {lists: true, hanging: true},
		"reads fail": {reads: true}, "reads hang": {reads: true, hanging: true},
		"all fails": {lists: true, reads: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, faulty := newCrewWithFaultyLine(t, 4, "b")
				faulty.mu.Lock()
				faulty.hanging = d.hanging
				faulty.mu.Unlock()
				faulty.set(d.lists, d.reads)
				c.rollOver(0)
				for i := range 20 {
					c.write(t, fmt.Sprintf("item%d", i))
				}
				time.Sleep(10 * testTerm)
				if n := c.behind(); n > 0 {
					t.Errorf("ten terms later %d of 20 items are not done", n)
				}
				faulty.set(false, false)
				time.Sleep(15 * testTerm)
				if owners := c.owners(); loadsOf(owners) != "2 2" {
					t.Errorf("answered again, they share %v", owners)
				}
				c.dismiss()
				c.judge(false)
			})
		})
	}
}

// secondsOfOneShard is for how many of 600 seconds worker a has a shard; it may never have more.
func (c *crew) secondsOfOneShard() (n int) {
	c.t.Helper()
	for range 600 {
		time.Sleep(time.Second)
		held := len(c.owners()["a"])
		if held > 1 {
			c.t.Errorf("it has %d shards: %v", held, c.owners())
			break
		}
		n += held
	}
	return n
}

func TestAWorkerThatTheStreamDoesNotAnswerHoldsUpOneShardAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, faulty := newCrewWithFaultyLine(t, 8, "b")
		faulty.set(true, true)
		time.Sleep((3 + 4) * testTerm) // the wait between two tries is up to two terms
		if tried := c.secondsOfOneShard(); tried == 0 || tried > 300 {
			t.Errorf("it had a shard for %d of 600 seconds", tried)
		}
		c.dismiss()
	})
}

// Shards without an owner are tried one after the other, too.
func TestAWorkerThatTheStreamDoesNotAnswerTakesOneShardAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, faulty := newCrewWithFaultyLine(t, 8)
		faulty.set(false, true)
		time.Sleep((3 + 3) * testTerm)
		if c.secondsOfOneShard() == 0 {
			t.Error("it tried none")
		}
		c.dismiss()
	})
}

func TestAWorkerWithoutOthersGoesOnWhenTheStreamAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, faulty := newCrewWithFaultyLine(t, 4)
		faulty.set(true, true)
		c.rollOver(0)
		for i := range 20 {
			c.write(t, fmt.Sprintf("item%d", i))
		}
		time.Sleep(5 * time.Minute)
		if n := c.behind(); n != 20 {
			t.Errorf("%d of 20 items are not done", n)
		}
		faulty.set(false, false)
		time.Sleep((fleet.PauseTerms + 3) * testTerm)
		if n := c.behind(); n > 0 {
			t.Errorf("answered again, %d of 20 items are not done", n)
		}
		c.dismiss()
		c.judge(false)
	})
}

func TestAShardThatCannotBeReadIsNotTakenForEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, faulty := newCrewWithFaultyLine(t, 4, "b")
		faulty.set(false, true)
		time.Sleep(2 * testTerm)
		for shard, l := range c.rows() {
			if l.Owner == "a" && l.OfShard() && l.EmptyPolls != 0 {
				t.Errorf("%s: %d polls were empty, says its row", shard, l.EmptyPolls)
			}
		}
		if owners := c.owners(); len(owners["a"]) != 2 {
			t.Errorf("after two terms: %v", owners)
		}
		c.dismiss()
	})
}

// Its last checkpoint is written when it gives a shard up that does not answer.
func TestAShardThatWasGivenUpForSilenceIsEmptyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, faulty := newCrewWithFaultyLine(t, 4)
		for range 2 { // the second time less than the interval after a checkpoint
			for i := range 40 {
				c.write(t, fmt.Sprintf("item%d", i))
			}
			for c.behind() > 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		faulty.set(false, true)
		time.Sleep((3 + 1) * testTerm)
		faulty.set(false, false)
		time.Sleep(20 * testTerm)
		for id, l := range c.rows() {
			if l.OfShard() && l.EmptyPolls == 0 {
				t.Errorf("shard %s of %s, at %s, is not said to be empty", id, l.Owner, l.Checkpoint)
			}
		}
		c.dismiss()
	})
}
