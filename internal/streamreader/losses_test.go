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
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// trimming is a line on which one shard's records are gone, and lists may lack it.
type trimming struct {
	*line
	*trims
}

// trims holds what is lost on all lines that share it.
type trims struct {
	guard           sync.Mutex
	trimmed, hidden string
	from            map[string]string // the shards of iterators
}

func (s *trimming) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	out, err := s.line.GetRecords(ctx, in, opts...)
	s.guard.Lock()
	defer s.guard.Unlock()
	shard := s.from[*in.ShardIterator]
	if shard == s.trimmed {
		return nil, &streams.TrimmedDataAccessException{}
	}
	if err == nil && out.NextShardIterator != nil {
		s.from[*out.NextShardIterator] = shard
	}
	return out, err
}

func (s *trimming) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	out, err := s.line.GetShardIterator(ctx, in, opts...)
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.trimmed == *in.ShardId {
		return nil, &streams.TrimmedDataAccessException{}
	}
	if err == nil {
		s.from[*out.ShardIterator] = *in.ShardId
	}
	return out, err
}

func (s *trimming) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	out, err := s.line.DescribeStream(ctx, in, opts...)
	s.guard.Lock()
	defer s.guard.Unlock()
	if err == nil {
		out.StreamDescription.Shards = slices.DeleteFunc(slices.Clone(out.StreamDescription.Shards),
			func(shard streams.Shard) bool { return *shard.ShardId == s.hidden })
	}
	return out, err
}

func (c *crew) joinTrimming(s *trims, name string) *member {
	return c.join(name, func(cfg *Config) { cfg.Streams = &trimming{cfg.Streams.(*line), s} })
}

// A worker that finds lost records ends with that error. Each worker that takes the shard over finds the same and
// ends, too.
func TestALossEndsEveryWorker(t *testing.T) {
	for _, name := range []string{"the lister", "another worker"} {
		t.Run(name+" finds it", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endOneByOne(t, name == "the lister") })
		})
	}
}

func endOneByOne(t *testing.T, listerFinds bool) {
	c := newCrew(t, dynamosim.Options{Shards: 6})
	for i := range 60 {
		c.write(t, fmt.Sprintf("item%d", i))
	}
	s := &trims{from: map[string]string{}}
	var workers []*member
	for _, name := range []string{"a", "b", "x"} {
		workers = append(workers, c.joinTrimming(s, name))
		time.Sleep(5 * time.Second)
	}
	time.Sleep(30 * time.Second)
	finder := workers[1]
	if listerFinds {
		finder = workers[0]
	}
	shard := c.owners()[finder.name][0]
	s.guard.Lock()
	s.trimmed = shard
	s.guard.Unlock()
	for over := time.After(2 * testTerm); len(c.members) > 0; {
		var m *member
		var err error
		select {
		case err = <-workers[0].ended:
			m = workers[0]
		case err = <-workers[1].ended:
			m = workers[1]
		case err = <-workers[2].ended:
			m = workers[2]
		case <-over:
			t.Fatalf("%d workers go on", len(c.members))
		}
		if len(c.members) == len(workers) && m != finder {
			t.Errorf("%s ended first, and %s has the shard", m.name, finder.name)
		}
		var lost *TrimmedError
		if !errors.As(err, &lost) || lost.Shard != shard {
			t.Errorf("%s ended with %v", m.name, err)
		}
		delete(c.members, m.name)
	}
	c.join("restarted")
	time.Sleep(20 * time.Second)
	if owners := c.owners(); len(owners["restarted"]) != 6 {
		t.Errorf("after a restart where nothing is lost: %v", owners)
	}
	c.dismiss()
	c.judge(true)
}

// The lister's lists lack a shard that another worker reads: that one would know.
func TestAShardThatAnotherWorkerReadsIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 4})
		s := &trims{from: map[string]string{}}
		lists := c.joinTrimming(s, "a")
		time.Sleep(5 * time.Second)
		reads := c.join("b")
		time.Sleep(20 * time.Second)
		s.guard.Lock()
		s.hidden = c.owners()["b"][0]
		s.guard.Unlock()
		select {
		case err := <-lists.ended:
			t.Fatalf("the lister ended with %v", err)
		case <-time.After(5 * time.Minute):
		}
		c.kill(reads)
		<-reads.ended
		time.Sleep(2 * testTerm)
		if owners := c.owners(); len(owners["a"]) != 4 {
			t.Errorf("after the death of its reader: %v", owners)
		}
		c.dismiss()
	})
}

// A reader ends the first list that a dead worker has begun.
func TestAFirstListThatADeadWorkerBeganIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		if _, err := cp.Create(t.Context(), Lease{Shard: testARN, Stream: testARN, Owner: "dead", Counter: 3,
			Checkpoint: TrimHorizon}); err != nil {
			t.Fatal(err)
		}
		first := f.open("shard1", "")
		f.write(first, "item", 3)
		f.close(first)
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.gone = true // and so did shard2, unread
		f.write(f.open("shard3", "shard2"), "item", 3)
		var trimmed *TrimmedError
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); !errors.As(err, &trimmed) || trimmed.Shard != "shard2" {
			t.Errorf("Drain returned %v, want a TrimmedError for shard2", err)
		}
		if l := leaseOf(t, cp, testARN); l.Owner != "" || l.Checkpoint != Latest {
			t.Errorf("the stream's row is left as %+v", l)
		}
	})
}
