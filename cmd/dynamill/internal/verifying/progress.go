package verifying

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

// Watch holds how far a verification is. It says once that the verification waits, for what and for how long.
type Watch struct {
	Message      string           // of the log line
	screen       *progress.Screen // nil: a wait is not announced
	wait, settle time.Duration
	leases       *followed.Watch
	announced    bool // the wait
	absence      bool // that no process applies the stream

	Counts environment.Counts // of the two tables

	now atomic.Pointer[verify.Progress] // nil before the first report
}

// Note takes what the verification reports.
func (w *Watch) Note(p verify.Progress) {
	if p.Phase == verify.PhaseWaiting && w.screen != nil {
		w.announce(p)
	}
	w.now.Store(&p)
}

// Verify verifies with an audit, shows how far that is, and looks for targets that do not exist.
func (w *Watch) Verify(ctx context.Context, s *session.Session, audit *audits.Audit, cfg verify.Config) (summary *verify.Summary,
	seen report.Sightings, err error) {
	cfg.Auditor, cfg.Logger, cfg.Progress = audit, s.Logger, w.Note
	stop := progress.Start(ctx, s.Screen, s.Logger, w.State)
	defer stop()
	if summary, err = verify.Run(ctx, cfg); err == nil {
		seen, err = report.SightingsOfAudit(ctx, audit)
	}
	return summary, seen, err
}

// State is how far the verification is now. The scans of both tables have a total, and every later look at what they found.
func (w *Watch) State() progress.State {
	p := cmp.Or(w.now.Load(), &verify.Progress{})
	s := progress.State{
		Message: w.Message, Phase: cmp.Or(p.Phase, "opening both tables"),
		Attributes: []any{"phase", p.Phase, "items", p.Items, "rows", p.Rows, "suspects", p.Suspects, "open", p.Open, "found", p.Found},
	}
	looked := []string{"items " + printable.Grouped(p.Items), "state rows " + printable.Grouped(p.Rows)}
	if p.Suspects == 0 {
		s.Done, s.Unit, s.Notes = p.Items+p.Rows, "items and rows", looked
		if total := w.Counts.Items + w.Counts.StateItems; s.Done <= total {
			s.Total, s.About = total, true
		}
		return s
	}
	s.Done, s.Unit, s.Total = p.Suspects-p.Open, "differences", p.Suspects
	if p.Phase == verify.PhaseWaiting {
		s.Message = "waiting"
		s.Attributes = []any{"open", p.Open, "left", p.WaitLeft.Round(time.Second), "for", awaited(p.Reasons), "found", p.Found}
		s.Notes = []string{"waits " + p.WaitLeft.Round(time.Second).String() + " at most", "drift " + printable.Grouped(p.Found),
			awaited(p.Reasons)}
		return s
	}
	s.Notes = append([]string{"drift " + printable.Grouped(p.Found)}, looked...)
	return s
}

// announce says what the wait is for when it begins. It says once that no process applies the stream.
func (w *Watch) announce(p verify.Progress) {
	if !w.announced {
		w.announced = true
		fmt.Fprintf(w.screen, "%s to decide: waits up to %s (--wait) until each has stayed the same for %s (--settle) and records of the "+
			"stream that may explain it are applied\n", printable.Counted(p.Open, "difference"), w.wait, w.settle)
	}
	if !w.absence && p.Reasons[verify.WhyRecords] > 0 && w.leases.Unfollowed() {
		w.absence = true
		fmt.Fprintln(w.screen, followed.NoFollower)
	}
}

// awaited says how many differences wait, and for what.
func awaited(reasons map[string]int64) string {
	counts := map[string]int64{}
	for why, n := range reasons {
		counts[verify.Awaited(why)] += n
	}
	parts := make([]string, 0, len(counts))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, printable.Grouped(counts[what])+": "+what)
	}
	return strings.Join(parts, "; ")
}
