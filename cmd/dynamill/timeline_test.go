package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

const (
	rowsEvery  = 100 * time.Millisecond // the leases are looked at for the timeline
	lateMin    = 500 * time.Millisecond // what takes longer is worth a line
	stampForm  = "15:04:05.000"
	beforeThat = 4 * crewTerm // is shown of what led to a failure
)

// timeline is what happened to a crew, in the order in which it was seen: whose
// the leases were, what was done to whom, and what the processes said. It is
// kept for the failure that comes once in hundreds of runs.
type timeline struct {
	mu    sync.Mutex
	seen  []sight
	shown bool
}

type sight struct {
	at   time.Time
	what string
}

func (l *timeline) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, sight{time.Now(), fmt.Sprintf(format, args...)})
}

// show logs what was seen since a moment.
func (l *timeline) show(t *testing.T, since time.Time) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = true
	var text bytes.Buffer
	for _, s := range l.seen {
		if !s.at.Before(since) {
			fmt.Fprintf(&text, "%s %s\n", s.at.UTC().Format(stampForm), s.what)
		}
	}
	t.Logf("what happened from %s on, UTC:\n%s", since.UTC().Format(stampForm), &text)
}

// voice has what a process says noted, too.
type voice struct {
	*pipe
	name string
	to   *timeline
	rest []byte
}

// Write takes what the process says, a line or a part of one.
func (v *voice) Write(b []byte) (int, error) {
	v.rest = append(v.rest, b...)
	for {
		line, rest, whole := bytes.Cut(v.rest, []byte("\n"))
		if !whole {
			return v.pipe.Write(b)
		}
		v.to.note("%s says: %s", v.name, line)
		v.rest = rest
	}
}

// watch notes every change of a lease until ctx ends, and when it could not look.
func (l *timeline) watch(ctx context.Context, client leases.Client, table string) {
	known := map[string]leases.Lease{}
	for last := time.Now(); ctx.Err() == nil; {
		if pause := time.Since(last); pause > lateMin+rowsEvery {
			l.note("the test itself did not run for %s", (pause - rowsEvery).Round(time.Millisecond))
		}
		asked := time.Now()
		rows, _, err := leases.NewTable(client, table).Read(ctx)
		if took := time.Since(asked); took > lateMin {
			l.note("the endpoint took %s to show the leases", took.Round(time.Millisecond))
		}
		if err != nil && ctx.Err() == nil {
			l.note("the leases could not be looked at: %v", err)
		}
		for _, row := range rows {
			l.compare(known[row.Shard], row)
			known[row.Shard] = row
		}
		last = time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(rowsEvery):
		}
	}
}

// compare notes what another look at a row shows.
func (l *timeline) compare(before, now leases.Lease) {
	what := now.Shard
	switch {
	case now.OfStream():
		what = "the list"
	case now.OfSeeker():
		what = "the wish for more shards"
	}
	owner := cmp.Or(now.Owner, "nobody")
	switch {
	case before.Shard == "":
		l.note("%s is there: %s's, counter %d, checkpoint %s", what, owner, now.Counter, now.Checkpoint)
	case before.Owner != now.Owner:
		l.note("%s goes from %s to %s, counter %d to %d, checkpoint %s to %s",
			what, cmp.Or(before.Owner, "nobody"), owner, before.Counter, now.Counter, before.Checkpoint, now.Checkpoint)
	case before.Counter != now.Counter:
		l.note("%s is %s's still, counter %d to %d", what, owner, before.Counter, now.Counter)
	}
}
