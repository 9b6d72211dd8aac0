package shardread

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// recordLeast is what a record counts at least, however small: it takes
// memory beside its bytes. So bytes bound the number of records, too.
const recordLeast = 1 << 10

// Buffer bounds what all shards of a reader hold: pages in hand, read ahead, and on their way. A call to GetRecords reserves
// room for the largest page. A shard that holds nothing waits in the order of asking; one that holds something takes more
// only if none waits and half of the room stays free. So the room always comes back, and a slow shard leaves some.
type Buffer struct {
	room    *semaphore.Weighted
	spared  int64 // bytes that reading ahead leaves free
	waiting atomic.Int64
}

// NewBuffer returns a bound of so many bytes.
func NewBuffer(bytesMax int64) *Buffer {
	return &Buffer{room: semaphore.NewWeighted(bytesMax), spared: bytesMax / 2}
}

func (b *Buffer) reserve(ctx context.Context) error {
	if b.room.TryAcquire(streamapi.PageBytesMax) {
		return nil
	}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	return b.room.Acquire(ctx, streamapi.PageBytesMax)
}

// reserveAhead takes the room of one page if half of all is free beside it, and
// no shard waits.
func (b *Buffer) reserveAhead() bool {
	if !b.room.TryAcquire(streamapi.PageBytesMax + b.spared) {
		return false
	}
	b.room.Release(b.spared)
	return true
}

func (b *Buffer) release(bytes int64) { b.room.Release(bytes) }

// short reports whether a shard waits for room.
func (b *Buffer) short() bool { return b.waiting.Load() > 0 }

// bytesOf is what records count, never more than was reserved for them.
func bytesOf(records []streams.Record) int64 {
	var sum int64
	for i := range records {
		size := int64(0)
		if body := records[i].Dynamodb; body != nil && body.SizeBytes != nil {
			size = *body.SizeBytes
		}
		sum += max(size, recordLeast)
	}
	return min(sum, streamapi.PageBytesMax)
}
