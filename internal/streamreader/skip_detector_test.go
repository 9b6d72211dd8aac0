package streamreader

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// errorLog keeps what is logged as an error.
type errorLog struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func newErrorLog() *errorLog { return &errorLog{Handler: slog.NewTextHandler(io.Discard, nil)} }

func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		l.mu.Lock()
		defer l.mu.Unlock()
		line := r.Message
		r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		l.lines = append(l.lines, line)
	}
	return nil
}

func (l *errorLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

// edit writes into a row of the lease table by hand.
func (w *simWorld) edit(t *testing.T, shard, checkpoint string) {
	t.Helper()
	if _, err := w.sim.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("leases"), Key: map[string]ddb.AttributeValue{"leaseKey": text(shard)},
		UpdateExpression: aws.String("SET checkpoint = :c"), ExpressionAttributeValues: map[string]ddb.AttributeValue{":c": text(checkpoint)},
	}); err != nil {
		t.Fatal(err)
	}
}

func (w *simWorld) deleteRow(t *testing.T, shard string) {
	t.Helper()
	if _, err := w.sim.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("leases"), Key: map[string]ddb.AttributeValue{"leaseKey": text(shard)},
	}); err != nil {
		t.Fatal(err)
	}
}

// A person writes SHARD_END into the row of a shard that is open. A reader says
// so, and reads the shard from its beginning once its row is deleted.
func TestOpenShardBehindAFinishedLeaseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 2})
		c.write(t, "before")
		first := c.join("first")
		time.Sleep(10 * time.Second)
		shard := c.owners()["first"][0]
		c.leave(first)
		c.edit(t, shard, ShardEnd)
		for _, item := range []string{"a", "b", "c", "d", "e", "f"} {
			c.write(t, item)
		}

		log := newErrorLog()
		reading := c.join("second", func(cfg *Config) { cfg.Logger = slog.New(log) })
		time.Sleep(2 * time.Minute)
		if log.count() != 1 || !strings.Contains(log.lines[0], shard) {
			t.Errorf("logged as errors: %q, want one that names %s", log.lines, shard)
		}
		if got := reading.reader.Stats().Skipped; !slices.Equal(got, []string{shard}) {
			t.Errorf("Stats says that %q are skipped, want %s", got, shard)
		}

		c.deleteRow(t, shard)
		time.Sleep(5 * time.Minute)
		if got := reading.reader.Stats().Skipped; len(got) != 0 {
			t.Errorf("after the row was deleted Stats says that %q are skipped", got)
		}
		c.dismiss()
		c.judge(true)
	})
}

func TestDrainThatSkipsAnOpenShardFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, dynamosim.Options{})
		drain := func() error {
			return newTestReader(t, w.sim, NewLeaseTable(w.sim, "leases"), &versions{seen: map[string]int{}},
				func(cfg *Config) { cfg.StreamARN = w.arn }).Drain(t.Context())
		}
		w.write(t, "item")
		if err := drain(); err != nil {
			t.Fatal(err)
		}
		rows, err := NewLeaseTable(w.sim, "leases").Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(rows, func(l Lease) bool { return l.OfShard() })
		w.edit(t, rows[i].Shard, ShardEnd)
		w.write(t, "other")
		var skipped *SkippedError
		if err := drain(); !errors.As(err, &skipped) || !slices.Equal(skipped.Shards, []string{rows[i].Shard}) {
			t.Errorf("Drain returned %v, want a SkippedError for %s", err, rows[i].Shard)
		}
		w.edit(t, rows[i].Shard, TrimHorizon)
		if err := drain(); err != nil {
			t.Errorf("after the row was mended Drain returned %v", err)
		}
	})
}

// lateEnding is a stream whose lists show for a while that a closed shard is open.
type lateEnding struct {
	*fakeStream
	until time.Time
}

func (s *lateEnding) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	out, err := s.fakeStream.DescribeStream(ctx, in, opts...)
	if err == nil && time.Now().Before(s.until) {
		for _, shard := range out.StreamDescription.Shards {
			shard.SequenceNumberRange.EndingSequenceNumber = nil
		}
	}
	return out, err
}

func TestShardThatIsListedAsOpenForAWhileIsNotSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, log := newFakeStream(), &collector{}, newErrorLog()
		s := f.open("shard-1", "")
		f.write(s, "item", 3)
		r := newTestReader(t, &lateEnding{f, time.Now().Add(8 * time.Second)}, newLeases(), c,
			func(cfg *Config) { cfg.Logger = slog.New(log) })
		f.close(s)
		f.write(f.open("shard-2", "shard-1"), "next", 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		wantItems(t, c, map[string]int{"item": 3, "next": 3})
		if log.count() != 0 {
			t.Errorf("logged as errors: %q", log.lines)
		}
	})
}
