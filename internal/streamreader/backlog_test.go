package streamreader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/stream/backlog"
)

func sequenceOf(s *fakeShard, i int) string { return *s.records[i].Dynamodb.SequenceNumber }

// backlogOf reads the fake stream's backlog behind rows of its shards.
func backlogOf(t *testing.T, f *fakeStream, rows ...Lease) *backlog.Backlog {
	t.Helper()
	for i := range rows {
		rows[i].Stream = testARN
	}
	log, err := backlog.Read(t.Context(), backlog.Config{Streams: f, StreamARN: testARN, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestBacklogCountsRecordsBehindCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		ended, open, other := f.open("a", ""), f.open("b", "a"), f.open("c", "")
		f.write(ended, "x", 3)
		f.close(ended)
		f.write(open, "x", 2)
		oldest := time.Now().Truncate(time.Second)
		time.Sleep(time.Minute)
		f.write(open, "x", 4)
		log := backlogOf(t, f,
			Lease{Shard: "a", Checkpoint: ShardEnd}, Lease{Shard: "b", Parent: "a", Checkpoint: sequenceOf(open, 0)},
			Lease{Shard: "c", Checkpoint: TrimHorizon, Start: other.start, Whole: true})
		if len(log.Shards) != 2 || len(log.Skipped) != 0 {
			t.Fatalf("%+v", log)
		}
		b, c := log.Shards[0], log.Shards[1]
		if b.Shard != "b" || b.Records != 5 || b.AtLeast || !b.Oldest.Equal(oldest) || b.Lost != nil || b.Err != nil {
			t.Errorf("shard b: %+v, want 5 records since %s", b, oldest)
		}
		if c.Records != 0 || c.AtLeast || !c.Oldest.IsZero() || c.Lost != nil || c.Err != nil {
			t.Errorf("an empty shard: %+v", c)
		}
	})
}

func TestBacklogBeyondItsBoundIsALowerBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.pageMax = 10
		f.write(f.open("a", ""), "x", 35)
		log := backlogOf(t, f)
		if one := log.Shards[0]; one.Records != 30 || !one.AtLeast {
			t.Errorf("%+v, want at least 30 records", one)
		}
	})
}

func TestBacklogOfDroppedRecordsIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*fakeStream, *fakeShard)
		row  func(*fakeShard) Lease
	}{
		"behind a checkpoint": {func(_ *fakeStream, s *fakeShard) { s.trimmed = 3 },
			func(s *fakeShard) Lease { return Lease{Checkpoint: sequenceOf(s, 0)} }},
		"the first record of a shard that was whole": {func(_ *fakeStream, s *fakeShard) { s.trimmed = 1 }, func(s *fakeShard) Lease {
			return Lease{Checkpoint: TrimHorizon, Start: s.start, Whole: true}
		}},
		"the whole shard": {func(_ *fakeStream, s *fakeShard) { s.gone = true },
			func(s *fakeShard) Lease { return Lease{Checkpoint: sequenceOf(s, 0)} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeStream()
				s := f.open("a", "")
				f.write(s, "x", 5)
				row := c.row(s)
				c.harm(f, s)
				row.Shard = "a"
				log := backlogOf(t, f, row, Lease{Shard: testARN, Checkpoint: Latest})
				var lost *TrimmedError
				if len(log.Shards) != 1 || !errors.As(log.Shards[0].Lost, &lost) || lost.Checkpoint != row.Checkpoint {
					t.Errorf("%+v, want a loss behind %s", log.Shards, row.Checkpoint)
				}
			})
		})
	}
}

func TestBacklogNamesOpenShardsWithFinishedLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.write(f.open("a", ""), "x", 1)
		log := backlogOf(t, f, Lease{Shard: "a", Checkpoint: ShardEnd})
		if len(log.Skipped) != 1 || log.Skipped[0] != "a" || len(log.Shards) != 0 {
			t.Errorf("%+v, want shard a skipped", log)
		}
	})
}

func TestBacklogEndsInTimeAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.write(f.open("a", ""), "x", 1)
		f.fault = func(call, _ string) error {
			if call == "GetRecords" {
				return &streams.LimitExceededException{}
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		log, err := backlog.Read(ctx, backlog.Config{Streams: f, StreamARN: testARN})
		if err != nil || time.Since(began) > 6*time.Second {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		if one := log.Shards[0]; one.Err == nil || !one.AtLeast || one.Lost != nil {
			t.Errorf("%+v, want an error and no claim about records", one)
		}
	})
}
