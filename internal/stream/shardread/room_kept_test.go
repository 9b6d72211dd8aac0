package shardread

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// pageSource is a stream of one shard, which stays open.
type pageSource struct {
	streamapi.Streams
	records, pageSize int
	recordBytes       int64
	latency           time.Duration
	created           time.Time
}

// GetShardIterator opens the shard at its beginning.
func (p *pageSource) GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput,
	...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String("0")}, nil
}

// GetRecords returns the page that begins at the record whose number the iterator is.
func (p *pageSource) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	time.Sleep(p.latency)
	from, err := strconv.Atoi(*in.ShardIterator)
	if err != nil {
		return nil, err
	}
	to := min(from+p.pageSize, p.records)
	out := &dynamodbstreams.GetRecordsOutput{NextShardIterator: aws.String(strconv.Itoa(to))}
	for i := from; i < to; i++ {
		out.Records = append(out.Records, streams.Record{Dynamodb: &streams.StreamRecord{
			SequenceNumber: aws.String(strconv.Itoa(100 + i)), ApproximateCreationDateTime: &p.created, SizeBytes: &p.recordBytes,
			Keys: map[string]streams.AttributeValue{"pk": &streams.AttributeValueMemberS{Value: "item"},
				"sk": &streams.AttributeValueMemberN{Value: strconv.Itoa(i)}},
		}})
	}
	return out, nil
}

// testShardConfig is what a shard's reader needs, with the defaults of New.
func testShardConfig(f streamapi.Streams, b *Buffer) *Config {
	return &Config{
		Streams: f, StreamARN: "arn:stream", Decoder: streamapi.Decoder{Label: "label", PartitionKey: "pk", SortKey: "sk"},
		Logger:   slog.New(slog.DiscardHandler),
		BatchMax: 1000, DrainPolls: 5, Turns: make(chan struct{}, 1), Buffer: b, Applies: new(atomic.Int64), OnIdle: func() {},
		OnDone: func(int) {},
	}
}

func TestFailingShardPutsRecordsBack(t *testing.T) {
	const bytesMax, pages = 8 << 20, 4
	for name, test := range map[string]struct {
		age, wait   time.Duration
		others      bool // wait for room
		ahead, hand bool // are kept
	}{
		"soon again":         {wait: keepMax, hand: true},
		"later":              {wait: keepMax + 1},
		"soon, others wait":  {wait: keepMax, others: true},
		"lost if it is late": {age: retention/2 + 2*time.Second, wait: time.Minute, others: true, ahead: true, hand: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &pageSource{records: 8, pageSize: 2, recordBytes: 512 << 10, created: time.Now()}
				time.Sleep(test.age)
				b := NewBuffer(bytesMax)
				room := b.room
				cfg := testShardConfig(f, b)
				s := &Reader{cfg: cfg, ahead: newAhead(cfg, streamapi.Shard{ID: "shard"})}
				s.ahead.start(t.Context(), streamapi.Place{})
				synctest.Wait()
				p := s.ahead.first()
				s.ahead.take()
				s.addToHand(p)
				s.ahead.extend(t.Context())
				synctest.Wait()
				if room.TryAcquire(bytesMax-pages<<20+1) || !room.TryAcquire(bytesMax-pages<<20) {
					t.Fatalf("not %d pages are held", pages)
				}
				room.Release(bytesMax - pages<<20)
				if test.others {
					b.waiting.Add(1)
				}
				first := s.front.pending[0].Sequence
				s.yield(test.wait)
				held := int64(0)
				if test.hand {
					held += 1 << 20
				}
				if test.ahead {
					held += (pages - 1) << 20
				}
				if room.TryAcquire(bytesMax-held+1) || !room.TryAcquire(bytesMax-held) {
					t.Errorf("not %d MiB are held", held>>20)
				}
				if kept := len(s.hand) > 0; kept != test.hand || s.ahead.opened() != test.ahead {
					t.Errorf("hand kept: %v, goes on behind what was read ahead: %v", kept, s.ahead.opened())
				}
				if !test.hand && s.first != first {
					t.Errorf("it is to be opened at %q, want %s", s.first, first)
				}
			})
		})
	}
}

func TestDroppedPagesGiveTheirRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &pageSource{records: 1000, pageSize: 10, latency: time.Second, created: time.Now().Add(-time.Minute)}
		const bytesMax = 4 << 20
		b := NewBuffer(bytesMax)
		a := newAhead(testShardConfig(f, b), streamapi.Shard{ID: "shard"})
		a.start(t.Context(), streamapi.Place{})
		<-a.arrived
		first := a.first()
		if first == nil || len(first.records) != 10 {
			t.Fatal(first)
		}
		a.take()
		b.release(first.bytes)
		a.extend(t.Context())
		time.Sleep(1500 * time.Millisecond) // one more is there, another on its way
		if a.coming() || a.first() == nil {
			t.Error("no page is there to be dropped")
		}
		a.drop()
		if !b.room.TryAcquire(bytesMax) {
			t.Error("some of the room of what was dropped is missing")
		}
		if a.opened() {
			t.Error("it would go on behind the page that was dropped")
		}
	})
}
