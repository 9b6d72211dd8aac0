package follow

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/streamreader"
)

func TestAProcessSpeaksOfItsOwnLagAndOfShardsThatNobodyReads(t *testing.T) {
	got := shardsOf(streamreader.Stats{Shards: []streamreader.ShardStats{
		{ID: "mine", Owner: "me", Mine: true, Lag: time.Second}, {ID: "theirs", Owner: "other", Lag: time.Minute},
		{ID: "vacant", Lag: time.Hour}, {ID: "child", Waiting: true},
	}})
	want := []monitor.Shard{
		{ID: "mine", Owner: "me", Lag: time.Second, LagRecords: -1}, {ID: "theirs", Owner: "other", Lag: -1, OldestAge: -1, LagRecords: -1},
		{ID: "vacant", Lag: -1, OldestAge: -1, LagRecords: -1}, {ID: "child", Waits: true, Lag: -1, OldestAge: -1, LagRecords: -1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestThrottlesAreNamedForAWhile(t *testing.T) {
	var log bytes.Buffer
	o := &overseer{logger: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Now()
	if o.isThrottled(now) {
		t.Error("throttled from the start")
	}
	o.look()
	o.noteThrottles(monitor.Sample{At: now, Engine: projections.Stats{Throttles: 1}})
	if !o.isThrottled(now) || o.isThrottled(now.Add(throttledHold)) {
		t.Error("a throttle is not noted, or for ever")
	}
	if log.Len() > 0 {
		t.Errorf("a state that is starting all the time is logged: %s", &log)
	}
	o.holder.End(monitor.RecordsLost, "do this")
	o.look()
	o.look()
	if said := log.String(); strings.Count(said, "records lost") != 1 || !strings.Contains(said, "level=ERROR") ||
		!strings.Contains(said, "do this") {
		t.Errorf("the log says\n%s", said)
	}
	o.reminded = o.reminded.Add(-remindedEvery)
	o.look()
	if said := log.String(); strings.Count(said, "records lost") != 2 {
		t.Errorf("nobody is reminded\n%s", said)
	}
}

func TestAnEndIsSaidOnceWhoeverLooks(t *testing.T) {
	for range 500 { // the race detector has to come by at the moment
		var said bytes.Buffer // a slog handler writes one record at a time
		o := &overseer{logger: slog.New(slog.NewTextHandler(&said, nil))}
		o.holder.End(monitor.StreamDisabled, "enable it")
		var looks sync.WaitGroup
		for range 2 { // the watch, and the end of the run
			looks.Go(o.look)
		}
		looks.Wait()
		if n := strings.Count(said.String(), "enable it"); n != 1 {
			t.Fatalf("it was said %d times", n)
		}
	}
}
