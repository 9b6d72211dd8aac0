package replaying

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sighting"
)

type watch struct {
	*replayer

	mu    sync.Mutex
	now   replay.Progress
	items map[string]int64 // looked at in each pass, by all processes
}

func (w *watch) note(p replay.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = p
	w.items[p.Pass] = max(w.items[p.Pass], p.PassItems)
}

// state is how far the replay is now.
func (w *watch) state() progress.State {
	w.mu.Lock()
	p := w.now
	w.mu.Unlock()
	v := state{Progress: p, about: w.sourceItems == 0, work: report.WorkOf(w.engine.Stats(), w.engine.RuleStats())}
	switch {
	case w.source != nil:
		v.total = w.sourceItems
	case w.engine.TableOf(v.Pass) != w.Table:
		v.total = w.counts.StateItems
	default:
		v.total = w.counts.Items
	}
	return v.shown()
}

// state is a replay at one moment.
type state struct {
	replay.Progress
	total int64 // items of the pass; 0: not known
	about bool
	work  report.EngineWork
}

func (v state) shown() progress.State {
	if v.Pass == "" {
		return progress.State{Message: "replaying", Phase: "looking what there is to do"}
	}
	s := progress.State{
		Message: "replaying", Phase: fmt.Sprintf("pass %d of %d", v.Number, v.Of), Done: v.PassItems, Unit: "items", Total: v.total,
		About: v.about,
		Notes: []string{
			fmt.Sprintf("%s of %s pieces", printable.Grouped(v.PiecesDone), printable.Grouped(v.Pieces)),
			printable.Grouped(int64(v.work.WriteUnits)) + " write units", printable.Grouped(int64(v.ReadUnits)) + " read units",
		},
		Attributes: []any{
			"pass", v.Pass, "number", v.Number, "of", v.Of, "items", v.PassItems, "pieces", v.Pieces, "pieces_done", v.PiecesDone,
			"writes", v.work.Writes, "write_units", v.work.WriteUnits, "read_units", v.ReadUnits,
		},
	}
	if s.Done > s.Total { // the count is of no use
		s.Total = 0
	}
	if v.Pieces > 0 {
		s.Share = float64(v.PiecesDone) / float64(v.Pieces)
	}
	return s
}

// Replayed is the result of `replay`.
type Replayed struct {
	Table  string `json:"table"`
	Source string `json:"source"`
	replay.Totals
	Parked int `json:"parked"` // in all, when it had ended
	report.EngineWork
	Seconds float64 `json:"seconds"`
	report.Seen
}

func (r *replayer) printReplayed(ctx context.Context, totals replay.Totals, took time.Duration, watch *watch) {
	matches := r.engine.Matches()
	whole := r.source == nil && matches.Pass != "" && matches.Looked >= watch.items[matches.Pass]
	found, err := sighting.LookAndRecord(ctx, r.engine, whole && r.options.whole())
	found.Whole = whole
	seen := report.Sightings{Seen: found}
	if err != nil { // the replay is done all the same
		r.Logger.Warn("targets that do not exist could not be looked for", "error", err)
	}
	parked, err := r.engine.CountParked(ctx)
	if err != nil { // the replay is done all the same
		r.Logger.Warn("what is parked could not be counted", "error", err)
	}
	result := Replayed{
		Table: r.Table, Source: r.sourceName(), Totals: totals, Parked: parked,
		EngineWork: report.WorkOf(r.engine.Stats(), r.engine.RuleStats()),
		Seconds:    took.Round(time.Millisecond).Seconds(), Seen: seen.Report(),
	}
	if r.JSON {
		r.PrintJSON(result)
		return
	}
	text := fmt.Sprintf("replayed the %s: %s in %s, %s (%s write units), in %s", result.Source, lookedAt(result.Items, result.Passes),
		passes(result.Passes), printable.Counted(result.Writes, "write"), printable.Rounded(result.WriteUnits), took.Round(100*time.Millisecond))
	if _, fromParked := r.source.(*sources.Parked); fromParked && result.Skipped > 0 {
		text += "; " + printable.Counted(result.Skipped, "parked record") + " without a key left"
	} else if result.Skipped > 0 {
		text += "; " + printable.Counted(result.Skipped, "torn line") + " skipped"
	}
	if parked > 0 {
		text += "; " + printable.Grouped(parked) + " parked, see `dynamill parked list`"
	}
	seen.PrintBehind(r.Output, text, parked)
}

// openedText says that an unfinished replay was found, and what becomes of it.
func openedText(o replay.Opened) string {
	if !o.GivenUpAt.IsZero() {
		return fmt.Sprintf("begins anew: the unfinished replay has had no progress since %s, and what it did may not hold any more",
			clock(o.GivenUpAt))
	}
	place := ""
	if o.Of > 1 {
		place = fmt.Sprintf("pass %d of %d, ", o.Number, o.Of)
	}
	return fmt.Sprintf("resumes the replay begun at %s: %s%s of %s pieces done; --restart begins anew", clock(o.Begun), place,
		printable.Grouped(o.PiecesDone), printable.Grouped(o.Pieces))
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func passes(n int) string { return fmt.Sprint(n, printable.Verb(n, " pass", " passes")) }

// lookedAt counts the keys that a replay went over. Passes after the first go over rows of the state table, too.
func lookedAt(n int64, passes int) string {
	if passes > 1 {
		return printable.Grouped(n) + " items and state rows"
	}
	return printable.Counted(n, "item")
}
