package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/projections/internal/audit"
)

const (
	// contentionLogEvery is how long a process stays silent about a contested target that it has logged.
	contentionLogEvery = time.Hour
	// contentionLogMax bounds how many targets a process logs, and remembers, in that time.
	contentionLogMax = 1_000
)

// contentionLog decides which contested targets a process logs: each at most once an
// hour, and at most contentionLogMax of them. It is safe for concurrent use.
type contentionLog struct {
	mu     sync.Mutex
	since  time.Time       // the hour's begin
	logged map[string]bool // the ids of the rows of targets logged in it
	full   bool            // that further targets are contested is logged
}

// admit says whether to log a contested target now, or that there are more than are logged.
func (l *contentionLog) admit(id string, now time.Time) (target, others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged == nil || now.Sub(l.since) >= contentionLogEvery {
		l.since, l.logged, l.full = now, map[string]bool{}, false
	}
	switch {
	case l.logged[id] || l.full:
		return false, false
	case len(l.logged) >= contentionLogMax:
		l.full = true
		return false, true
	}
	l.logged[id] = true
	return true, false
}

// logContention logs that several items claim one target, and which of them wins.
func (h *Host) logContention(ctx context.Context, t audit.ContestedTarget, claimants []string) {
	switch target, others := h.contentions.admit(t.RowID(), h.Now()); {
	case target:
		what := slog.String("target", t.Target.String())
		if t.Value != "" {
			what = slog.String("value", t.Value)
		}
		h.Logger.WarnContext(ctx, "several items claim one target; the smallest key wins", "rule", h.Planner.NameOf(t.ID), what,
			"claimants", len(claimants), "among_them", claimantsText(claimants), "winner", claimants[0],
			"remedy", contentionRemedy(t), "code", t.Code())
	case others:
		h.Logger.WarnContext(ctx, "further targets are contested, and not logged before the hour is over: `dynamill parked list` shows them all",
			"logged", contentionLogMax)
	}
}
