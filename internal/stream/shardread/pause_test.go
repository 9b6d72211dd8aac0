package shardread

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

func TestPauseGrowsWithTheTimeSinceTheLastRecord(t *testing.T) {
	for name, test := range map[string]struct {
		quiet    time.Duration // since the last record
		longest  time.Duration // PollInterval
		starting bool
		closed   bool
		want     time.Duration // at most; a fifth less at least
	}{
		"a record a moment ago":   {longest: time.Second, want: 250 * time.Millisecond},
		"a record 5 s ago":        {quiet: 5 * time.Second, longest: time.Second, want: 250 * time.Millisecond},
		"a record 10 s ago":       {quiet: 10 * time.Second, longest: time.Second, want: 500 * time.Millisecond},
		"a record a minute ago":   {quiet: time.Minute, longest: time.Second, want: time.Second},
		"idle, a long interval":   {quiet: time.Hour, longest: time.Minute, want: time.Minute},
		"active, a long interval": {longest: time.Minute, want: 250 * time.Millisecond},
		"a short interval":        {longest: 100 * time.Millisecond, want: 100 * time.Millisecond},
		"just opened":             {longest: time.Second, starting: true, want: 50 * time.Millisecond},
		"just opened, short":      {longest: time.Millisecond, starting: true, want: time.Millisecond},
		"closed":                  {quiet: time.Hour, longest: time.Second, closed: true, want: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(&Config{PollInterval: test.longest, DrainPolls: 5}, streamapi.Shard{ID: "shard"}, nil)
				s.random = rand.New(rand.NewPCG(1, 2))
				s.closed = test.closed
				if !test.starting {
					s.pauses = startPauses
				}
				s.NoteRead(time.Now())
				time.Sleep(test.quiet)
				for range startPauses {
					if got := s.pause(); got > test.want || got < test.want*8/10-1 {
						t.Errorf("pause %s, want %s to %s", got, test.want*8/10, test.want)
					}
				}
				if got := s.pause(); test.starting && test.longest == time.Second && got < 200*time.Millisecond {
					t.Errorf("pause %s, after the start is over", got)
				}
			})
		})
	}
}

// Behind a page that probably did not hold all, and where the shard is behind, the next call follows at once.
func TestOnlyLargeOrOldPagesAreFollowedAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		records, bytes int
		age            time.Duration
		more           bool
	}{
		"nothing":           {},
		"few, new":          {records: 25, bytes: 500, age: behindLeast},
		"few, old":          {records: 25, bytes: 500, age: behindLeast + 1, more: true},
		"many, new":         {records: 1000, bytes: 500, more: true},
		"large, new":        {records: 10, bytes: 100 << 10, more: true},
		"half a page, new":  {records: 512, bytes: 1 << 10, more: true},
		"a little less":     {records: 511, bytes: 1 << 10},
		"one, a minute old": {records: 1, bytes: 100, age: time.Minute, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &pageSource{records: test.records, pageSize: 1000, recordBytes: int64(test.bytes), created: time.Now().Add(-test.age)}
				a := newAhead(testShardConfig(f, NewBuffer(4<<20)), streamapi.Shard{ID: "shard"})
				defer a.drop()
				a.start(t.Context(), streamapi.Place{})
				<-a.arrived
				if p := a.first(); p.err != nil || p.more != test.more {
					t.Errorf("more is expected: %t, want %t (%v)", p.more, test.more, p.err)
				}
			})
		})
	}
}
