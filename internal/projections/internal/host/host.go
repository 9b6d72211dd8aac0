package host

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// Host is one engine as the kinds of rules see it. It is safe for concurrent use.
type Host struct {
	Process string // drawn at random
	Tables  *table.Tables
	Planner *plan.Planner
	Targets *target.Writer
	Ledger  Ledger
	Missing map[*plan.Binding]*sightings.MissingTracker // of every rule that makes no items; the map does not change
	Logger  *slog.Logger
	Now     func() time.Time

	HealsMax  int64 // corrections of one rule's attributes on one item in ten minutes
	FanOutMax int   // children that a fan-out writes at once; the rest becomes a task
	RangesMin int   // children of a fan-out that one worker looks at; those behind are cut into ranges, each a quarter as large
	Counters  *Counters
	TaskKept  func() // is called whenever the rest of a fan-out has become a task, or a roll-up was put off

	DisplayEvery time.Duration // a display that many records change is written no more often; 0: as they come

	contentions *contentionLog
	deferrals   *rollupDebouncer
}

// New returns a host that has not counted or logged anything.
func New(h Host) Host {
	h.Counters, h.contentions, h.deferrals = &Counters{}, &contentionLog{}, &rollupDebouncer{}
	return h
}

// Counters count what the engine does.
type Counters struct {
	Records, Relevant, Unmatched, Rollups, Children, Made, Deleted, Parked, Heals, Tasks, TaskPieces atomic.Int64
}

// Run is the application of one plan. A part that fails holds up the record that asked for it first, and every later one.
type Run struct {
	*Host
	Suffix int // the write suffix of accumulators
	Done   int // records before the first one that is held up
	Err    error

	Shard     *Shard              // from which the records come; nil: the driver does not tell
	MayPutOff bool                // roll-ups may be put off
	Pointing  []plan.GroupRef     // targets at which items were found to point, beside those of their effects
	UpToDate  map[change.Key]bool // items that rules of several families make, and that one of these has brought up to date
	Found     sync.Map            // what a family has found out while the plan is applied; each has keys of a type of its own
}

// MarkUpToDate notes that an item which several families may make is up to date under all of its rules.
func (r *Run) MarkUpToDate(item change.Key) {
	if r.UpToDate == nil {
		r.UpToDate = map[change.Key]bool{}
	}
	r.UpToDate[item] = true
}

// Failed notes that a part did not succeed. The failure of the first record counts, and of that the one noted first.
func (r *Run) Failed(first int, err error) {
	if err == nil {
		return
	}
	if r.Err == nil || first < r.Done {
		r.Done, r.Err = max(0, min(first, r.Done)), err
	}
}

// Ended notes the outcome of a part. A write that DynamoDB refuses for good parks its (item, rule) and counts as done.
func (r *Run) Ended(ctx context.Context, first int, b *plan.Binding, item change.Key, err error) {
	r.Failed(first, r.ParkRefused(ctx, b, item, err))
}
