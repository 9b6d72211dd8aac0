package pending

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shards is a stream of a few shards, each a list of sequence numbers; "" is an empty page.
type shards struct {
	pages   map[string][]string
	open    map[string]bool
	trimmed map[string]int // reading behind a lower sequence number is refused
	gone    string
	throws  int            // calls that are refused first
	expires string         // an iterator that is too old once
	trims   map[string]int // iterators whose record is trimmed so many times
}

func (s *shards) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	if s.throws > 0 {
		s.throws--
		return nil, &streams.LimitExceededException{}
	}
	d := &streams.StreamDescription{StreamLabel: aws.String("2026-01-01T00:00:00.000")}
	names := []string{"a", "b", "c"}
	if in.ExclusiveStartShardId == nil {
		names, d.LastEvaluatedShardId = names[:1], aws.String("a")
	} else {
		names = names[1:]
	}
	for _, id := range names {
		d.Shards = append(d.Shards, streams.Shard{ShardId: aws.String(id)})
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (s *shards) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	if *in.ShardId == s.gone {
		return nil, &streams.ResourceNotFoundException{}
	}
	n, _ := strconv.Atoi(aws.ToString(in.SequenceNumber))
	if in.SequenceNumber != nil && n < s.trimmed[*in.ShardId] {
		return nil, &streams.TrimmedDataAccessException{}
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(fmt.Sprintf("%s %d 0", *in.ShardId, n))}, nil
}

func (s *shards) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	var id string
	var after, page int
	if _, err := fmt.Sscan(*in.ShardIterator, &id, &after, &page); err != nil {
		return nil, err
	}
	if *in.ShardIterator == s.expires {
		s.expires = ""
		return nil, &streams.ExpiredIteratorException{}
	}
	if s.trims[*in.ShardIterator] > 0 {
		s.trims[*in.ShardIterator]--
		return nil, &streams.TrimmedDataAccessException{}
	}
	out := &dynamodbstreams.GetRecordsOutput{}
	if page < len(s.pages[id]) {
		if n, _ := strconv.Atoi(s.pages[id][page]); n > after {
			out.Records = []streams.Record{{Dynamodb: &streams.StreamRecord{
				SequenceNumber: aws.String(s.pages[id][page]), ApproximateCreationDateTime: aws.Time(time.Now().Add(-time.Duration(n) * time.Minute)),
				Keys: map[string]streams.AttributeValue{"pk": &streams.AttributeValueMemberS{Value: id + s.pages[id][page]},
					"n": &streams.AttributeValueMemberN{Value: "5"}},
			}}}
		}
	}
	if page+1 < len(s.pages[id]) || s.open[id] {
		out.NextShardIterator = aws.String(fmt.Sprintf("%s %d %d", id, after, page+1))
	}
	return out, nil
}

func TestUnappliedRecordsAreThoseBehindTheCheckpoints(t *testing.T) {
	fake := func() *shards {
		return &shards{
			pages: map[string][]string{"a": {"1", "2"}, "b": {"3", "", "", "4"}, "c": {"5", "6", "7"}},
			open:  map[string]bool{"b": true, "c": true},
		}
	}
	for name, c := range map[string]struct {
		stream func() *shards
		done   map[string]verify.Checkpoint
		lagMax time.Duration
		want   map[string]bool
	}{
		"no checkpoints": {fake, nil, 0, map[string]bool{"a1": true, "a2": true, "b3": true, "b4": true, "c5": true, "c6": true, "c7": true}},
		"some done": {fake, map[string]verify.Checkpoint{"a": {Done: true}, "c": {After: "6"}}, 0,
			map[string]bool{"b3": true, "b4": true, "c7": true}},
		"old ones count as applied": {fake, nil, 210 * time.Second, map[string]bool{"a1": true, "a2": true, "b3": true}},
		"trimmed behind the checkpoint": {func() *shards { s := fake(); s.trimmed = map[string]int{"c": 3}; return s },
			map[string]verify.Checkpoint{"a": {Done: true}, "b": {Done: true}, "c": {After: "2"}}, 0,
			map[string]bool{"c5": true, "c6": true, "c7": true}},
		"trimmed after the shard was opened": {func() *shards { s := fake(); s.trims = map[string]int{"c 0 0": 2}; return s },
			map[string]verify.Checkpoint{"a": {Done: true}, "b": {Done: true}}, 0, map[string]bool{"c5": true, "c6": true, "c7": true}},
		"the verification sleeps": {func() *shards { s := fake(); s.expires = "c 0 1"; return s },
			map[string]verify.Checkpoint{"a": {Done: true}, "b": {Done: true}}, 0, map[string]bool{"c5": true, "c6": true, "c7": true}},
		"a shard that is gone, and a limit": {func() *shards { s := fake(); s.gone, s.throws = "a", 2; return s },
			map[string]verify.Checkpoint{"b": {Done: true}}, 0, map[string]bool{"c5": true, "c6": true, "c7": true}},
	} {
		s := &Stream{
			Client: c.stream(), PartitionKey: "pk", SortKey: "n", LagMax: c.lagMax, PollInterval: time.Nanosecond,
			Checkpoints: func(context.Context) (map[string]verify.Checkpoint, error) { return c.done, nil },
		}
		got := map[string]bool{}
		then, err := s.Applied(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unapplied(t.Context(), then, func(rec *change.Record) error {
			got[rec.Key.Partition] = true
			if rec.Key.Sort != "5" || rec.Position.IsZero() {
				t.Errorf("%s: %+v", name, rec)
			}
			return nil
		}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if then.Blind != (c.done == nil && c.lagMax == 0) {
			t.Errorf("%s: blind is %v", name, then.Blind)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	failed := errors.New("no leases")
	s := &Stream{Client: fake(), Checkpoints: func(context.Context) (map[string]verify.Checkpoint, error) { return nil, failed }}
	if _, err := s.Applied(t.Context()); !errors.Is(err, failed) {
		t.Errorf("checkpoints that cannot be read: %v", err)
	}
}

func TestCheckpointsAreThoseOfTheStream(t *testing.T) {
	got := CheckpointsOf([]leases.Lease{
		{Shard: "arn", Stream: "arn", Checkpoint: leases.Latest}, {Shard: "other", Stream: "old", Checkpoint: "5"},
		{Shard: "a", Stream: "arn", Checkpoint: leases.TrimHorizon}, {Shard: "b", Stream: "arn", Checkpoint: "7"},
		{Shard: "c", Stream: "arn", Checkpoint: leases.ShardEnd},
	}, "arn")
	if len(got) != 3 || got["a"].After != "" || got["b"].After != "7" || got["b"].Done || !got["c"].Done {
		t.Errorf("%+v", got)
	}
}
