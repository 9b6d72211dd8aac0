package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

// pagesAheadMax is how many pages of records may wait for a lane.
const pagesAheadMax = 10

// shard is a shard that is being worked off.
type shard struct {
	*Mapping
	id string

	// Under Mapping.mu.
	open     int // records that were read and are neither done nor discarded
	quiet    int // looks at the shard in a row that found nothing while none was open
	finished bool
}

// run reads the shard to its end and works off what it holds.
func (s *shard) run(ctx context.Context) error {
	lanes := make([]chan []types.Record, s.ParallelizationFactor)
	group, work := errgroup.WithContext(ctx)
	for i := range lanes {
		lanes[i] = make(chan []types.Record, pagesAheadMax)
		l := &lane{shard: s, pages: lanes[i]}
		group.Go(func() error { return l.run(work) })
	}
	group.Go(func() error {
		defer func() {
			for _, l := range lanes {
				close(l)
			}
		}()
		return s.read(work, lanes)
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("shard %s: %w", s.id, err)
	}
	if ctx.Err() == nil {
		s.note(func() { s.finished = true })
	}
	return nil
}

// read hands the shard's records to lanes until it ends, or ctx does.
func (s *shard) read(ctx context.Context, lanes []chan []types.Record) error {
	iterator, err := s.iterator(ctx, "")
	if err != nil {
		return err
	}
	last, reopened := "", false
	for iterator != nil && ctx.Err() == nil {
		page, err := s.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		var trimmed *types.TrimmedDataAccessException
		if errors.As(err, &trimmed) && !reopened {
			// DynamoDB Local may say so of an iterator that was made when the shard held
			// nothing, though nothing is trimmed. If something is, a new one is refused, too.
			if iterator, err = s.iterator(ctx, last); err != nil {
				return err
			}
			reopened = true
			continue
		}
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		iterator, reopened = page.NextShardIterator, false
		if n := len(page.Records); n > 0 {
			last = aws.ToString(page.Records[n-1].Dynamodb.SequenceNumber)
		}
		s.note(func() {
			s.open += len(page.Records)
			if s.quiet++; s.open > 0 {
				s.quiet = 0
			}
		})
		if err := s.spread(ctx, page.Records, lanes); err != nil {
			return err
		}
		if len(page.Records) == 0 && iterator != nil {
			sleep(ctx, s.PollInterval)
		}
	}
	return nil
}

// iterator begins behind the record with a sequence number, at the oldest if it is "".
func (s *shard) iterator(ctx context.Context, after string) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &s.StreamARN, ShardId: &s.id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if after != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &after
	}
	out, err := s.Streams.GetShardIterator(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("beginning to read: %w", err)
	}
	return out.ShardIterator, nil
}

// spread hands records to their lanes.
func (s *shard) spread(ctx context.Context, records []types.Record, lanes []chan []types.Record) error {
	pages := make([][]types.Record, len(lanes))
	for _, r := range records {
		n, err := s.laneOf(r, len(lanes))
		if err != nil {
			return err
		}
		pages[n] = append(pages[n], r)
	}
	for n, page := range pages {
		if len(page) == 0 {
			continue
		}
		select {
		case lanes[n] <- page:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// laneOf chooses a record's lane by its partition key.
func (s *shard) laneOf(r types.Record, lanes int) (int, error) {
	key, ok := r.Dynamodb.Keys[s.PartitionKey]
	if !ok {
		return 0, fmt.Errorf("record %s has no key attribute %s", aws.ToString(r.EventID), s.PartitionKey)
	}
	text, err := json.Marshal(dynamojson.Encode(attributes.FromStream(key)))
	if err != nil {
		return 0, err
	}
	hash := fnv.New32a()
	_, _ = hash.Write(text) // a hash takes everything
	return int(hash.Sum32() % uint32(lanes)), nil
}

// settle files records as done or discarded.
func (s *shard) settle(records int) {
	s.note(func() {
		s.open -= records
		s.changes += records
	})
}

func (s *shard) pause(ctx context.Context) { sleep(ctx, max(s.RetryPause, time.Microsecond)) }
