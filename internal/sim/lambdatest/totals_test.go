package lambdatest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// done counts what a history was made of, beside what its Function counts.
type done struct {
	queues    int // 1 if messages of a queue were delivered
	writes    int // of the application
	malformed int // records
	partly    int // answers that named a record
	discarded int // batches
	late      int // batches that were handed over
	tasks     int // invocations with the schedule's payload
	pieces    int // of tasks
}

// totals are what many histories were made of.
type totals struct {
	mu        sync.Mutex
	histories int
	counts    Counts
	done      done
	spent     stopwatch
}

func (all *totals) add(h *history) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.histories++
	all.counts = all.counts.Add(h.function.Counts())
	all.spent.add(&h.spent)
	d := &all.done
	d.queues += h.queues
	d.writes += h.writes
	d.malformed += h.malformed
	d.partly += h.partly
	d.discarded += h.discarded
	d.late += h.late
	d.tasks += h.tasks
	d.pieces += h.pieces
}

// judge expects that everything that a history may hold has happened to some: each
// count is far above what chance could leave.
func (all *totals) judge(t *testing.T) {
	t.Helper()
	all.mu.Lock()
	defer all.mu.Unlock()
	t.Logf("%d histories: %s; %+v; %s", all.histories, all.counts, all.done, &all.spent)
	if all.histories < historiesMax {
		return // some have failed, or only some were asked for
	}
	for what, n := range map[string]int{
		"environments were killed": all.counts.Killed, "environments were paused": all.counts.Paused,
		"environments were lost": all.counts.Outcast,
		"answers named a record": all.done.partly, "records were malformed": all.done.malformed, "histories had a queue": all.done.queues,
		"batches were handed over": all.done.late, "pieces of tasks were worked off": all.done.pieces,
	} {
		if n == 0 {
			t.Errorf("in %d histories no %s", all.histories, what)
		}
	}
}

// stopwatch adds up the time that the parts of something take.
type stopwatch struct {
	mu    sync.Mutex
	last  time.Time
	names []string
	spent map[string]time.Duration
}

// lap adds the time since the last lap, or since the beginning.
func (s *stopwatch) lap(name string) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addTo(name, now.Sub(s.last))
	s.last = now
}

func (s *stopwatch) addTo(name string, d time.Duration) {
	if s.spent == nil {
		s.spent = map[string]time.Duration{}
	}
	if _, known := s.spent[name]; !known {
		s.names = append(s.names, name)
	}
	s.spent[name] += d
}

// add takes over what another one has measured.
func (s *stopwatch) add(other *stopwatch) {
	other.mu.Lock()
	defer other.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range other.names {
		s.addTo(name, other.spent[name])
	}
}

// String returns the parts as one line.
func (s *stopwatch) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for _, name := range s.names {
		parts = append(parts, fmt.Sprintf("%s %s", name, s.spent[name].Round(time.Millisecond)))
	}
	return strings.Join(parts, ", ")
}
