package follow

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/monitor"
)

func TestThrottlesAreNamedForAWhile(t *testing.T) {
	var log bytes.Buffer
	o := &overseer{logger: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Now()
	if o.isThrottled(0, now) {
		t.Error("throttled from the start")
	}
	o.look()
	if !o.isThrottled(1, now) || o.isThrottled(1, now.Add(throttledHold)) {
		t.Error("a throttle is not noted, or for ever")
	}
	later := now.Add(time.Hour)
	if !o.isThrottled(5, later) || o.isThrottled(0, later.Add(throttledHold)) || !o.isThrottled(1, later.Add(2*throttledHold)) {
		t.Error("a throttle of an engine that was opened anew is not noted")
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
