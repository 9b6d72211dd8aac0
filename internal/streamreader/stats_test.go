package streamreader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

func TestEveryWorkerKnowsTheOwnerOfEachShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 8})
		stop := c.keepWriting(50*time.Millisecond, 40)
		c.join("a")
		time.Sleep(5 * time.Second)
		if st := c.members["a"].reader.Stats(); len(st.Shards) != 8 || st.LeaseMoves != 8 {
			t.Errorf("alone, %d shards after %d moves, want 8 after 8", len(st.Shards), st.LeaseMoves)
		}
		c.join("b")
		time.Sleep(15 * time.Second)
		rows := c.rows()
		for name, m := range c.members {
			st := m.reader.Stats()
			if len(st.Shards) != 8 {
				t.Errorf("%s sees %d shards", name, len(st.Shards))
			}
			for _, s := range st.Shards {
				if s.Owner != rows[s.ID].Owner || s.Mine != (s.Owner == name) || s.Waiting {
					t.Errorf("%s sees %+v, and the row names %q", name, s, rows[s.ID].Owner)
				}
				if silent := time.Since(s.LastProgress); s.Mine == s.LastProgress.IsZero() || s.Mine && silent > 2*time.Second {
					t.Errorf("%s: %+v made no progress for %s", name, s, silent)
				}
				if s.Lag > testTerm {
					t.Errorf("%s: %+v", name, s)
				}
			}
		}
		if a, b := c.members["a"].reader.Stats().LeaseMoves, c.members["b"].reader.Stats().LeaseMoves; a != 12 || b != 4 {
			t.Errorf("a gave four away after eight that it took, and counts %d; b counts %d of 4", a, b)
		}
		c.kill(c.members["b"])
		time.Sleep(2 * testTerm)
		if st := c.members["a"].reader.Stats(); st.Open != 8 || st.LeaseMoves != 16 {
			t.Errorf("two terms after the death of b: %d shards, %d moves", st.Open, st.LeaseMoves)
		}
		stop()
		c.dismiss()
	})
}

func TestShardWithoutReaderIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestReader(t, newFakeStream(), newLeases(), &collector{}, func(cfg *Config) { cfg.WorkerID = "me" })
		f := newFollower(r, false)
		created := time.Now().Add(-time.Minute)
		arn := r.cfg.StreamARN
		rows := []Lease{
			{Shard: arn, Stream: arn, Owner: "dead", Counter: 1, Checkpoint: Latest},
			{Shard: "1-finished", Stream: arn, Owner: "dead", Checkpoint: ShardEnd},
			{Shard: "2-expired", Stream: arn, Owner: "dead", Checkpoint: "5", Newest: created},
			{Shard: "3-nobody's", Stream: arn, Checkpoint: TrimHorizon},
			{Shard: "4-theirs", Stream: arn, Owner: "alive", Counter: 1, Checkpoint: "5", Newest: created},
			{Shard: "5-idle", Stream: arn, Owner: "alive", Counter: 1, Checkpoint: "5", Newest: created, EmptyPolls: 3},
			{Shard: "6-child", Stream: arn, Checkpoint: TrimHorizon, Parent: "4-theirs"},
		}
		f.takeOverRows(rows, 0)
		time.Sleep(testTerm)
		for i := range rows {
			if rows[i].Owner == "alive" {
				rows[i].Counter++
			}
		}
		f.takeOverRows(rows, 0)
		f.fleet.Divide(nil)
		f.publish()
		lag := time.Minute + testTerm
		want := []ShardStats{
			{ID: "2-expired", Lag: lag},
			{ID: "3-nobody's"},
			{ID: "4-theirs", Owner: "alive", Lag: lag},
			{ID: "5-idle", Owner: "alive"},
			{ID: "6-child", Waiting: true},
		}
		if diff := cmp.Diff(want, r.Stats().Shards); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		r.end()
		if left := r.Stats().Shards; len(left) != 0 {
			t.Errorf("after the end: %+v", left)
		}
	})
}

// The first of three records takes an hour; the age is that of the record in work, then 0.
func TestOldestAgeIsThatOfTheRecordInWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		shard := f.open("a", "")
		f.write(shard, "x", 1)
		working, release := make(chan struct{}), make(chan struct{})
		c := &collector{before: func(_ context.Context, records []change.Record) (int, error) {
			if len(records) == 3 {
				close(working)
				<-release
				return 1, errors.New("the others are left")
			}
			return len(records), nil
		}}
		r := newTestReader(t, f, newLeases(), c)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(time.Minute)
		if age := r.Stats().OldestAge; age != 0 {
			t.Errorf("nothing waits, and the oldest age is %s", age)
		}
		f.write(shard, "x", 3)
		<-working
		time.Sleep(time.Hour)
		st := r.Stats()
		if st.OldestAge < time.Hour || st.OldestAge > time.Hour+2*time.Second || st.Shards[0].OldestAge != st.OldestAge || st.Lag < st.OldestAge {
			t.Errorf("oldest age %s of shard %+v, lag %s; want an hour", st.OldestAge, st.Shards[0], st.Lag)
		}
		close(release)
		time.Sleep(time.Minute)
		if age := r.Stats().OldestAge; age != 0 {
			t.Errorf("all is done, and the oldest age is %s", age)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A caller that says how far a stopped reader came asks when no shard is read any more.
func TestLagOutlastsTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.write(f.open("a", ""), "x", 3)
		time.Sleep(time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		c := &collector{before: func(context.Context, []change.Record) (int, error) {
			stop()
			return 1, errors.New("the others are left")
		}}
		r := newTestReader(t, f, newLeases(), c)
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if st := r.Stats(); st.Records != 1 || st.Lag < time.Hour {
			t.Errorf("stopped after %d of 3 records, lag %s; want an hour", st.Records, st.Lag)
		}
		c.before = nil
		if err := r.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := r.Stats(); st.Records != 3 || st.Lag != 0 {
			t.Errorf("drained %d of 3 records, lag %s; want none", st.Records, st.Lag)
		}
	})
}
