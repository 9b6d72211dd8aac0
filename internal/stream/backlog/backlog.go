// Package backlog reads what of a stream lies behind its checkpoints, and applies
// nothing. It reads the stream as a shard's reader does, through streamapi and shardlist.
package backlog

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardlist"
	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"
)

// Config says which stream Read reads.
type Config struct {
	Streams   streamapi.Streams
	StreamARN string
	Rows      []leases.Lease // all rows of the lease table, read before the call
}

// Backlog is the part of a stream that lies behind its checkpoints.
type Backlog struct {
	Shards []Shard // of the shards that are not finished, parents first
	// Skipped are open shards whose leases say SHARD_END, so that no worker reads them.
	Skipped []string
}

// Shard is the part of one shard that lies behind its checkpoint.
type Shard struct {
	Shard   string
	Records int       // records behind the checkpoint
	AtLeast bool      // there may be more than Records
	Oldest  time.Time // creation of the oldest one, in whole seconds; zero if there is none
	Lost    error     // a *streamapi.TrimmedError if the stream dropped records behind the checkpoint
	Err     error     // the reason why the shard could not be read to the bound
}

const (
	// callsMax is how many shards are read at the same time.
	callsMax = 16
	// pagesMax bounds the pages with records that are read of each shard. A page
	// has up to 1,000 records.
	pagesMax = 3
	// pollsMax is after how many empty pages in a row the end of an open shard is
	// taken to be reached: GetRecords may give an empty page before it.
	pollsMax = 2
	// pollSpacing makes at most four calls a second to a shard, as Lambda does: AWS documents no rate for DynamoDB
	// Streams. The shard's reader calls it, too.
	pollSpacing = 250 * time.Millisecond
)

// Read reads the stream from its checkpoints and applies nothing. When ctx ends, it
// returns what it has found until then. A worker may run beside it.
func Read(ctx context.Context, cfg Config) (*Backlog, error) {
	rows, followed := rowsOf(cfg.StreamARN, cfg.Rows)
	found, plan, err := list(ctx, cfg, rows, followed)
	if err != nil {
		return nil, err
	}
	log := &Backlog{Skipped: skippedNow(found, rows)}
	unfinished := shardlist.ByID(found.Shards)
	maps.DeleteFunc(unfinished, func(id string, _ streamapi.Shard) bool { return rows[id].Finished() })
	var group errgroup.Group
	group.SetLimit(callsMax)
	ordered := shardlist.InOrder(unfinished)
	log.Shards = make([]Shard, len(ordered))
	for i, s := range ordered {
		group.Go(func() error {
			reader := shardReader{cfg: cfg, shard: s, row: rows[s.ID], whole: followed && rows[s.ID].Whole}
			log.Shards[i] = reader.read(ctx)
			return nil
		})
	}
	_ = group.Wait() // each shard has its own error
	for _, l := range plan.Missing {
		log.Shards = append(log.Shards, Shard{
			Shard: l.Shard, Lost: &streamapi.TrimmedError{StreamARN: cfg.StreamARN, Shard: l.Shard, Checkpoint: l.Checkpoint},
		})
	}
	return log, nil
}

// rowsOf returns the rows of one stream's shards, and whether all shards that the stream had at first have rows.
func rowsOf(arn string, all []leases.Lease) (rows map[string]leases.Lease, followed bool) {
	rows = map[string]leases.Lease{}
	own := leases.Lease{}
	for _, l := range all {
		switch {
		case l.Stream != arn:
		case l.OfStream():
			own = l
		case l.OfShard():
			rows[l.Shard] = l
		}
	}
	return rows, shardlist.Followed(own, rows)
}

// list lists the stream. It lists anew while a list lacks a shard that it should
// have: one list of many pages is not one moment's picture.
func list(ctx context.Context, cfg Config, rows map[string]leases.Lease, followed bool) (found shardlist.Listing, plan shardlist.Plan,
	err error) {
	lister := shardlist.Lister{Streams: cfg.Streams, Arn: cfg.StreamARN}
	for range shardlist.MissingLists {
		if found, err = lister.List(ctx); err != nil {
			return found, plan, err
		}
		plan = shardlist.PlanLineage(cfg.StreamARN, found.Shards, rows, followed)
		if len(plan.Missing) == 0 {
			break
		}
	}
	return found, plan, nil
}

// skippedNow are the shards that the stream lists as open although their leases say SHARD_END.
// The rows were read first, so a shard that has just ended is listed as closed.
func skippedNow(found shardlist.Listing, rows map[string]leases.Lease) (ids []string) {
	for _, s := range found.Shards {
		if rows[s.ID].Finished() && !s.Closed && found.Status == streams.StreamStatusEnabled {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// shardReader reads one shard behind its checkpoint.
type shardReader struct {
	cfg   Config
	shard streamapi.Shard
	row   leases.Lease
	whole bool // the shard held its first record when a worker found it

	found    Shard
	after    string // the last record that was read, or the checkpoint
	pages    int
	reopened bool
}

func (b *shardReader) read(ctx context.Context) Shard {
	b.found.Shard = b.shard.ID
	if b.row.Shard != "" && b.row.Checkpoint != leases.TrimHorizon {
		b.after = b.row.Checkpoint
	}
	retries := streamapi.NewBackoff(b.shard.ID)
	for {
		err := b.pass(ctx)
		if err == nil {
			return b.found
		}
		switch streamapi.Classify(err) {
		case streamapi.VerdictExpired:
			continue // behind the last record that was read
		case streamapi.VerdictTrimmed, streamapi.VerdictGone:
			if b.after == "" && !b.reopened && !b.whole { // an emulator's shard that never held a record
				b.reopened = true
				continue
			}
			b.found.AtLeast = true
			b.found.Lost = &streamapi.TrimmedError{StreamARN: b.cfg.StreamARN, Shard: b.shard.ID, Err: err,
				Checkpoint: cmp.Or(b.row.Checkpoint, leases.TrimHorizon)}
			return b.found
		case streamapi.VerdictRetry:
			if ctx.Err() == nil && pace.Sleep(ctx, retries.NextBackOff()) == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			err = errors.Join(errTime, err)
		}
		b.found.AtLeast, b.found.Err = true, err
		return b.found
	}
}

// pass reads pages until the end of the shard, or the bound.
func (b *shardReader) pass(ctx context.Context) error {
	tail := streamapi.Tail{Streams: b.cfg.Streams, StreamARN: b.cfg.StreamARN, Shard: b.shard, EmptyPolls: pollsMax, Spacing: pollSpacing}
	err := tail.Read(ctx, streamapi.Place{After: b.after, Whole: b.whole}, func(page []streams.Record, last bool) error {
		b.count(page)
		switch {
		case len(page) == 0 || last:
			return nil
		case b.pages == pagesMax:
			return errBound
		}
		return pace.Sleep(ctx, pollSpacing)
	})
	if errors.Is(err, errBound) {
		b.found.AtLeast = true
		return nil
	}
	return err
}

var (
	// errBound says that pagesMax pages were read before the end of a shard.
	errBound = errors.New("the bound of pages was reached")
	// errTime says that the time for Read was over before the end of a shard.
	errTime = errors.New("the time for reading the stream was over")
)

func (b *shardReader) count(page []streams.Record) {
	if len(page) > 0 {
		b.pages++
	}
	for i := range page {
		body := page[i].Dynamodb
		if body == nil {
			continue
		}
		created := aws.ToTime(body.ApproximateCreationDateTime)
		b.found.Records++
		if b.found.Oldest.IsZero() || !created.IsZero() && created.Before(b.found.Oldest) {
			b.found.Oldest = created
		}
		b.after = aws.ToString(body.SequenceNumber)
	}
}
