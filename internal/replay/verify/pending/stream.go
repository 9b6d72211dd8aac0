// Package pending reads from a stream the records that are not applied yet: a difference that one of them explains may be
// lag. It imports change, verify, awscall, pace, the calls to the stream (streamapi, shardlist), and the rows of leases. It holds no lease.
package pending

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardlist"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// Stream is a table's stream. A shard without a checkpoint counts as not applied at all.
type Stream struct {
	Client                streamapi.Streams
	ARN                   string
	PartitionKey, SortKey string // the table's key attributes
	// Checkpoints are by shard; nil if no reader keeps any.
	Checkpoints func(context.Context) (map[string]verify.Checkpoint, error)
	// LagMax: older records count as applied, for deployments without checkpoints; 0: none does.
	LagMax time.Duration

	PollInterval time.Duration // between two polls at the end of a shard; default 250 ms
}

var _ verify.Pending = (*Stream)(nil)

const (
	emptyPollsMax   = 3
	reopensMax      = 3 // times that a shard is opened at its oldest record because that was trimmed meanwhile
	shardsAtOnce    = 8
	clocksDiffer    = 5 * time.Second        // at most, this process's clock and the times of records: verify reads what was written before
	pollDefault     = 250 * time.Millisecond // at most four polls a second, as in backlog.pollSpacing
	streamRetryTime = time.Minute
)

// CheckpointsOf are the checkpoints of a stream's shards, as the rows of a lease table tell.
func CheckpointsOf(rows []leases.Lease, streamARN string) map[string]verify.Checkpoint {
	found := map[string]verify.Checkpoint{}
	for _, l := range rows {
		if !l.OfShard() || l.Stream != streamARN {
			continue
		}
		c := verify.Checkpoint{After: l.Checkpoint, Done: l.Finished()}
		if l.Checkpoint == leases.TrimHorizon {
			c.After = ""
		}
		found[l.Shard] = c
	}
	return found
}

// Applied reads the checkpoints.
func (s *Stream) Applied(ctx context.Context) (verify.Applied, error) {
	now := verify.Applied{At: time.Now()}
	var err error
	if now.Shards, err = s.Checkpoints(ctx); err != nil {
		return now, fmt.Errorf("reading how far the stream is applied: %w", err)
	}
	now.Blind = now.Shards == nil && s.LagMax == 0
	return now, nil
}

// Unapplied reads every shard from its checkpoint of then to its end of now.
func (s *Stream) Unapplied(ctx context.Context, then verify.Applied, f func(*change.Record) error) error {
	lister := shardlist.Lister{
		Streams: s.Client, Arn: s.ARN, Keys: streamapi.Decoder{PartitionKey: s.PartitionKey, SortKey: s.SortKey},
	}
	listed, err := awscall.Persist(ctx, streamRetryTime, func() (shardlist.Listing, error) { return lister.List(ctx) })
	if err != nil {
		return fmt.Errorf("listing the shards of the stream: %w", err)
	}
	var mu sync.Mutex
	locked := func(rec *change.Record) error {
		mu.Lock()
		defer mu.Unlock()
		if s.LagMax > 0 && !rec.Created.IsZero() && then.At.Sub(rec.Created) > s.LagMax {
			return nil
		}
		return f(rec)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(shardsAtOnce)
	for _, shard := range listed.Shards {
		if checkpoint := then.Shards[shard.ID]; !checkpoint.Done {
			g.Go(func() error { return s.shard(ctx, listed.Decoder, shard, checkpoint.After, locked) })
		}
	}
	return g.Wait()
}

// shard reads one shard behind a sequence number, or all that is left if the stream has trimmed that.
func (s *Stream) shard(ctx context.Context, decoder streamapi.Decoder, shard streamapi.Shard, after string,
	f func(*change.Record) error) error {
	tail := streamapi.Tail{Streams: s.Client, StreamARN: s.ARN, Shard: shard, EmptyPolls: emptyPollsMax,
		Spacing: cmp.Or(s.PollInterval, pollDefault), Until: time.Now().Add(clocksDiffer)}
	retries, answered := streamapi.NewBackoff(shard.ID), time.Now()
	for reopened := 0; ; {
		err := tail.Read(ctx, streamapi.Place{After: after}, func(page []streams.Record, _ bool) error {
			answered = time.Now()
			retries.Reset()
			records, marks, err := streamapi.Records(decoder, page)
			if err != nil {
				return streamapi.Permanent(fmt.Errorf("a record of the stream: %w", err))
			}
			for i := range records {
				if err := f(&records[i]); err != nil {
					return streamapi.Permanent(err)
				}
				after = marks[i].Sequence
			}
			return nil
		})
		if err == nil {
			return nil
		}
		switch streamapi.Classify(err) {
		case streamapi.VerdictExpired: // this process was suspended for a while
		case streamapi.VerdictGone:
			return nil
		case streamapi.VerdictTrimmed:
			if reopened++; after == "" && reopened > reopensMax {
				return err
			}
			after = ""
		case streamapi.VerdictRetry:
			if time.Since(answered) >= streamRetryTime || pace.Sleep(ctx, retries.NextBackOff()) != nil {
				return err
			}
		default:
			return err
		}
	}
}
