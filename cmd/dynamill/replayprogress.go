package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay"
)

// replayWatch holds how far a replay is.
type replayWatch struct {
	*replayer

	mu    sync.Mutex
	now   replay.Progress
	items map[string]int64 // looked at in each pass, by all processes
}

func newReplayWatch(r *replayer) *replayWatch { return &replayWatch{replayer: r} }

// note takes what the replay reports.
func (w *replayWatch) note(p replay.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = p
	if w.items == nil {
		w.items = map[string]int64{}
	}
	w.items[p.Pass] = max(w.items[p.Pass], p.PassItems)
}

// itemsLooked is how many items all processes together looked at in a pass, as far as this process knows.
func (w *replayWatch) itemsLooked(pass string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.items[pass]
}

// state is how far the replay is now.
func (w *replayWatch) state() progress.State {
	w.mu.Lock()
	p := w.now
	w.mu.Unlock()
	v := replayState{Progress: p, total: w.total(p.Pass), unit: "items", about: true}
	if w.sourceItems > 0 {
		v.total, v.about = w.sourceItems, false
	}
	v.writeUnits, v.writes = engineWrites(w.engine)
	return v.shown()
}

// total is about how many items a pass goes over; 0 if that is not known.
func (w *replayWatch) total(pass string) int64 {
	switch {
	case w.source != nil:
		return 0
	case w.engine.TableOf(pass) != w.env.table:
		return w.counts.stateItems
	}
	return w.counts.items
}

// replayState is a replay at one moment.
type replayState struct {
	replay.Progress
	total      int64 // items of the pass; 0: not known
	about      bool
	unit       string
	writeUnits float64
	writes     int64
}

// shown is the state for the terminal and the log.
func (v replayState) shown() progress.State {
	if v.Pass == "" {
		return progress.State{Message: "replaying", Phase: "looking what there is to do"}
	}
	s := progress.State{
		Message: "replaying", Phase: fmt.Sprintf("pass %d of %d", v.Number, v.Of), Done: v.PassItems, Unit: v.unit, Total: v.total, About: v.about,
		Notes: []string{
			fmt.Sprintf("%s of %s pieces", grouped(int64(v.PiecesDone)), grouped(int64(v.Pieces))),
			grouped(int64(v.writeUnits)) + " write units", grouped(int64(v.ReadUnits)) + " read units",
		},
		Attributes: []any{
			"pass", v.Pass, "number", v.Number, "of", v.Of, "items", v.PassItems, "pieces", v.Pieces, "pieces_done", v.PiecesDone,
			"writes", v.writes, "write_units", v.writeUnits, "read_units", v.ReadUnits,
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

// engineWrites is what the engine has written so far, in units and requests.
func engineWrites(e *projections.Engine) (units float64, writes int64) {
	for _, rule := range e.RuleStats() {
		units += rule.WriteUnits
	}
	return units, e.Stats().Writes
}

// replayed is the result of `replay`.
type replayed struct {
	Table  string `json:"table"`
	Source string `json:"source"`
	Passes int    `json:"passes"`
	Items  int64  `json:"items"`
	// Skipped lines were left torn by a process that was killed.
	Skipped    int64              `json:"skipped"`
	Parked     int                `json:"parked"` // in all, when it had ended
	Writes     int64              `json:"writes"`
	WriteUnits float64            `json:"writeUnits"`
	ReadUnits  float64            `json:"readUnits"` // of the scan
	Rules      map[string]float64 `json:"writeUnitsByRule,omitempty"`
	Seconds    float64            `json:"seconds"`
	Matched    matchReport        `json:"matched"`
	Missing    []missingReport    `json:"missingTargets"`
	Warnings   []string           `json:"warnings"`
}

func (r *replayer) printReplayed(ctx context.Context, totals replay.Totals, took time.Duration, watch *replayWatch) error {
	matches := r.engine.Matches()
	whole := r.source == nil && matches.Pass != "" && matches.Looked >= watch.itemsLooked(matches.Pass)
	found, err := sighting.LookAndRecord(ctx, r.engine, whole && r.options.whole())
	seen := sightings{Seen: found}
	seen.Whole = whole
	if err != nil { // the replay is done all the same
		r.logger.Warn("targets that do not exist could not be looked for", "error", err)
	}
	parked, err := r.engine.CountParked(ctx)
	if err != nil { // the replay is done all the same
		r.logger.Warn("what is parked could not be counted", "error", err)
	}
	result := replayed{
		Table: r.env.table, Source: "scan of " + r.env.table, Passes: totals.Passes, Items: totals.Items, Skipped: totals.Skipped, Parked: parked,
		ReadUnits: totals.ReadUnits, Rules: unitsByRule(r.engine), Seconds: took.Round(time.Millisecond).Seconds(),
		Matched: seen.matched(), Missing: seen.missing(), Warnings: seen.Warnings(true),
	}
	if r.source != nil {
		result.Source = r.source.Describe()
	}
	result.WriteUnits, result.Writes = engineWrites(r.engine)
	if r.app.options.json {
		return r.app.printJSON(result)
	}
	text := fmt.Sprintf("replayed the %s: %s in %s, %s (%s write units), in %s", result.Source, lookedAt(result.Items, result.Passes),
		passes(result.Passes),
		counted(int(result.Writes), "write"), grouped(int64(result.WriteUnits+0.5)), took.Round(100*time.Millisecond))
	if result.Skipped > 0 {
		text += "; " + counted(int(result.Skipped), "torn line") + " skipped"
	}
	if result.Parked > 0 {
		text += "; " + grouped(int64(result.Parked)) + " parked, see `dynamill parked list`"
	}
	if err := r.app.printOutcome(outcomeColour(result.Parked), printable.Text(text)+"\n"); err != nil {
		return err
	}
	return r.app.printText(seen.text())
}

// unitsByRule are the write units of the rules that wrote anything.
func unitsByRule(e *projections.Engine) map[string]float64 {
	units := map[string]float64{}
	for _, rule := range e.RuleStats() {
		if rule.WriteUnits > 0 {
			units[rule.Rule] = rule.WriteUnits
		}
	}
	return units
}

// openedText says that an unfinished replay was found, and what becomes of it.
func openedText(o replay.Opened) string {
	if !o.GivenUpAt.IsZero() {
		return fmt.Sprintf("begins anew: the unfinished replay has had no progress since %s, and what it did may not hold any more", clock(o.GivenUpAt))
	}
	place := ""
	if o.Of > 1 {
		place = fmt.Sprintf("pass %d of %d, ", o.Number, o.Of)
	}
	return fmt.Sprintf("goes on with the replay begun at %s: %s%s of %s pieces done; --restart begins anew", clock(o.Begun), place,
		grouped(int64(o.PiecesDone)), grouped(int64(o.Pieces)))
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func passes(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

// lookedAt counts the keys that a replay went over. Passes after the first go over rows of the state table, too.
func lookedAt(n int64, passes int) string {
	if passes > 1 {
		return grouped(n) + " items and state rows"
	}
	return counted(int(n), "item")
}
