package streamreader

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// wideStream is a stream of very many shards with one record each, and nothing else.
type wideStream struct {
	ids []string

	mu        sync.Mutex
	described []time.Time
}

func newWideStream(shards int) *wideStream {
	s := &wideStream{}
	for i := range shards {
		s.ids = append(s.ids, fmt.Sprintf("shardId-%020d-%08x", 1000+i/7, i))
	}
	slices.Sort(s.ids)
	return s
}

func (s *wideStream) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	s.mu.Lock()
	s.described = append(s.described, time.Now())
	s.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	_, label, _ := strings.Cut(testARN, "/stream/")
	d := &streams.StreamDescription{
		StreamLabel: &label, StreamStatus: streams.StreamStatusEnabled, StreamViewType: streams.StreamViewTypeNewAndOldImages,
		KeySchema: []streams.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: streams.KeyTypeHash}},
	}
	from, found := slices.BinarySearch(s.ids, aws.ToString(in.ExclusiveStartShardId))
	if found {
		from++
	}
	to := min(len(s.ids), from+100)
	for _, id := range s.ids[from:to] {
		d.Shards = append(d.Shards, streams.Shard{ShardId: &id,
			SequenceNumberRange: &streams.SequenceNumberRange{StartingSequenceNumber: aws.String("1")}})
	}
	if to < len(s.ids) {
		d.LastEvaluatedShardId = &s.ids[to-1]
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (s *wideStream) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	it := *in.ShardId + "|new"
	if in.ShardIteratorType == streams.ShardIteratorTypeAfterSequenceNumber {
		it = *in.ShardId + "|done"
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: &it}, nil
}

func (s *wideStream) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	time.Sleep(5 * time.Millisecond)
	id, state, _ := strings.Cut(*in.ShardIterator, "|")
	done := id + "|done"
	out := &dynamodbstreams.GetRecordsOutput{NextShardIterator: &done}
	if state == "new" {
		keys := map[string]streams.AttributeValue{"pk": avS(id)}
		out.Records = []streams.Record{{EventName: streams.OperationTypeInsert, Dynamodb: &streams.StreamRecord{
			SequenceNumber: aws.String("1"), Keys: keys, NewImage: keys,
		}}}
	}
	return out, nil
}

// callsPerSecond returns the most calls within any second.
func (s *wideStream) callsPerSecond() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0
	for i, from := 0, 0; i < len(s.described); i++ {
		for s.described[i].Sub(s.described[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// DYNAMILL_SHARDS and DYNAMILL_WORKERS make it larger: 10000 and 50.
func TestTheFirstRecordOfEveryShardIsReadWithinAMinute(t *testing.T) {
	shards, workers := setting(t, "DYNAMILL_SHARDS", worldsize.Of(2000, 500)), setting(t, "DYNAMILL_WORKERS", 10)
	synctest.Test(t, func(t *testing.T) {
		stream, db := newWideStream(shards), dynamosim.New(dynamosim.Options{})
		var mu sync.Mutex
		times := map[string]int{}
		all := make(chan struct{})
		processor := processorFunc(func(_ context.Context, records []change.Record) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range records {
				times[r.Key.Partition]++
			}
			if len(times) == shards && all != nil {
				close(all)
				all = nil
			}
			return len(records), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		began, everything := time.Now(), all
		var readers []*Reader
		ended := make(chan error, workers)
		for i := range workers {
			r := newTestReader(t, stream, NewLeaseTable(db, "leases"), processor, func(cfg *Config) { cfg.WorkerID = fmt.Sprintf("worker%02d", i) })
			readers = append(readers, r)
			go func() { ended <- r.Run(ctx) }()
		}
		select {
		case <-everything:
		case <-time.After(time.Minute):
		}
		took := time.Since(began)
		open := 0
		for _, r := range readers {
			open = max(open, r.Stats().Open)
		}
		mu.Lock()
		t.Logf("%d of %d shards read after %s; up to %d shards a worker; DescribeStream at most %d times a second",
			len(times), shards, took, open, stream.callsPerSecond())
		if len(times) < shards {
			t.Errorf("%d of %d shards read within a minute", len(times), shards)
		}
		for id, n := range times {
			if n > 1 {
				t.Errorf("the record of %s was processed %d times", id, n)
			}
		}
		mu.Unlock()
		if most := stream.callsPerSecond(); most > 10 {
			t.Errorf("%d calls of DescribeStream within a second", most)
		}
		if share := shards / workers; open > 2*share {
			t.Errorf("one worker has %d shards, twice its share of %d", open, share)
		}
		cancel()
		for range workers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// All newcomers get their share together, not one after the other.
func TestAWorkerThatHasAllSoonHasItsShare(t *testing.T) {
	const workers = 10
	shards := worldsize.Of(400, 100)
	synctest.Test(t, func(t *testing.T) {
		stream, db := newWideStream(shards), dynamosim.New(dynamosim.Options{})
		processor := processorFunc(func(_ context.Context, records []change.Record) (int, error) { return len(records), nil })
		ctx, cancel := context.WithCancel(t.Context())
		var readers []*Reader
		ended := make(chan error, workers)
		for i := range workers {
			r := newTestReader(t, stream, NewLeaseTable(db, "leases"), processor, func(cfg *Config) { cfg.WorkerID = fmt.Sprintf("worker%02d", i) })
			readers = append(readers, r)
			go func() { ended <- r.Run(ctx) }()
			if i == 0 {
				time.Sleep(20 * time.Second)
			}
		}
		time.Sleep(15 * time.Second)
		for i, r := range readers {
			if open := r.Stats().Open; open != shards/workers {
				t.Errorf("worker %d has %d shards 15 s after nine have joined the first, want %d", i, open, shards/workers)
			}
		}
		cancel()
		for range workers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func setting(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
