package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay"
)

const (
	replayLogInterval = 5 * time.Second  // of the JSON lines where there is no terminal
	rateWindow        = 30 * time.Second // over which the rate is taken
	barWidth          = 20
)

// replayWatch shows how far a replay is.
type replayWatch struct {
	*replayer

	mu    sync.Mutex
	now   replay.Progress
	marks []rateMark // of the pass under way, oldest first
}

// rateMark is how many items this process had looked at, at a moment.
type rateMark struct {
	at    time.Time
	pass  int
	items int64
}

func newReplayWatch(r *replayer) *replayWatch { return &replayWatch{replayer: r} }

// note takes what the replay reports.
func (w *replayWatch) note(p replay.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = p
}

// show shows it until ctx ends: on a terminal as one line, else as JSON lines.
func (w *replayWatch) show(ctx context.Context) {
	interval, lines := statusInterval, w.app.loggerAs(w.status, true)
	if !w.status.terminal {
		interval = replayLogInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			w.status.show("")
			return
		case at := <-ticker.C:
			v := w.view(at)
			if w.status.terminal {
				w.status.show(v.line())
			} else {
				lines.Info("replaying", v.attributes()...)
			}
		}
	}
}

// view is what is shown at one moment.
type view struct {
	replay.Progress
	percent    float64 // of the pass; below 0: not known
	rate       float64 // items per second
	left       time.Duration
	writeUnits float64
	writes     int64
}

func (w *replayWatch) view(at time.Time) view {
	w.mu.Lock()
	v := view{Progress: w.now, percent: -1}
	w.marks = append(w.marks, rateMark{at, v.Number, v.Items})
	for len(w.marks) > 1 && (w.marks[0].pass != v.Number || at.Sub(w.marks[0].at) > rateWindow) {
		w.marks = w.marks[1:]
	}
	first := w.marks[0]
	w.mu.Unlock()
	if took := at.Sub(first.at).Seconds(); took > 0 {
		v.rate = float64(v.Items-first.items) / took
	}
	total := w.counts.items
	if w.engine.TableOf(v.Pass) != w.env.table {
		total = w.counts.stateItems
	}
	if w.source != nil || total == 0 || v.PassItems > total { // then it is of no use
		total = 0
	}
	switch {
	case total > 0:
		v.percent = 100 * float64(v.PassItems) / float64(total)
		if v.rate > 0 {
			v.left = time.Duration(float64(total-v.PassItems) / v.rate * float64(time.Second))
		}
	case v.Pieces > 0:
		v.percent = 100 * float64(v.PiecesDone) / float64(v.Pieces)
	}
	v.writeUnits, v.writes = engineWrites(w.engine)
	return v
}

// engineWrites is what the engine has written so far, in units and requests.
func engineWrites(e *projections.Engine) (units float64, writes int64) {
	for _, rule := range e.RuleStats() {
		units += rule.WriteUnits
	}
	return units, e.Stats().Writes
}

// line is the view for people.
func (v view) line() string {
	if v.Pass == "" {
		return "looking what there is to do"
	}
	parts := []string{fmt.Sprintf("pass %d of %d", v.Number, v.Of)}
	if v.percent >= 0 {
		full := min(barWidth, int(v.percent*barWidth/100))
		parts = append(parts, fmt.Sprintf("[%s%s] %.0f%%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), v.percent))
	}
	parts = append(parts, grouped(v.PassItems)+" items", fmt.Sprintf("%.0f/s", v.rate))
	if v.left > 0 {
		parts = append(parts, v.left.Round(time.Second).String()+" left")
	}
	parts = append(parts, fmt.Sprintf("%s of %s pieces", grouped(int64(v.PiecesDone)), grouped(int64(v.Pieces))),
		grouped(int64(v.writeUnits))+" write units", grouped(int64(v.ReadUnits))+" read units")
	return strings.Join(parts, "  ")
}

// attributes are the view for programs.
func (v view) attributes() []any {
	found := []any{
		"pass", v.Pass, "number", v.Number, "of", v.Of, "items", v.PassItems, "pieces", v.Pieces, "pieces_done", v.PiecesDone,
		"items_per_second", int64(v.rate), "writes", v.writes, "write_units", v.writeUnits, "read_units", v.ReadUnits,
	}
	if v.percent >= 0 {
		found = append(found, "percent", int64(v.percent))
	}
	if v.left > 0 {
		found = append(found, "seconds_left", int64(v.left/time.Second))
	}
	return found
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
}

func (r *replayer) printReplayed(ctx context.Context, totals replay.Totals, took time.Duration) error {
	parked, err := r.engine.Parked(ctx)
	if err != nil { // the replay is done all the same
		r.logger.Warn("what is parked could not be counted", "error", err)
	}
	result := replayed{
		Table: r.env.table, Source: "scan of " + r.env.table, Passes: totals.Passes, Items: totals.Items, Skipped: totals.Skipped, Parked: len(parked),
		ReadUnits: totals.ReadUnits, Rules: map[string]float64{}, Seconds: took.Round(time.Millisecond).Seconds(),
	}
	if r.source != nil {
		result.Source = r.source.Describe()
	}
	result.WriteUnits, result.Writes = engineWrites(r.engine)
	for _, rule := range r.engine.RuleStats() {
		if rule.WriteUnits > 0 {
			result.Rules[rule.Rule] = rule.WriteUnits
		}
	}
	if r.app.options.json {
		return r.app.printJSON(result)
	}
	text := fmt.Sprintf("replayed the %s: %s in %s, %s (%s write units), in %s", result.Source, counted(int(result.Items), "item"),
		passes(result.Passes),
		counted(int(result.Writes), "write"), grouped(int64(result.WriteUnits+0.5)), took.Round(100*time.Millisecond))
	if result.Skipped > 0 {
		text += "; " + counted(int(result.Skipped), "torn line") + " skipped"
	}
	if result.Parked > 0 {
		text += "; " + grouped(int64(result.Parked)) + " parked, see `dynamill parked list`"
	}
	return r.app.print("%s\n", text)
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
