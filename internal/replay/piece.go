package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/replay/internal/progress"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

// How the work on a piece can end without being done.
var (
	errGivenUp = errors.New("stopped before the piece was done")
	// errEngine marks what the engine could not do: it would fail for every piece alike.
	errEngine = errors.New("working off a page")
)

const (
	sliceKeys = 50              // of a page, given to the engine at a time: under a budget a page may take minutes
	stopGrace = 5 * time.Second // for the slice in hand once the context has ended
)

// assignment is one piece of a step, for this process to work off.
type assignment struct {
	step   Step
	source sources.Source
	piece  sources.Piece
	seen   progress.Piece // its row, as it was last seen
}

func (a assignment) place() progress.Place {
	return progress.Place{Pass: a.step.Number, Name: a.piece.Name}
}

// workOff takes a piece and works it off, page by page, until it is done, lost to another process, or stopped: by the
// context, or at the given time unless that is zero. The next worker repeats a page that was not finished.
func (d *driver) workOff(ctx context.Context, a assignment, until time.Time) (progress.Piece, error) {
	rowCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	held, row, err := d.store.Claim(rowCtx, a.step.run(), a.place(), a.seen, d.owner)
	if err != nil {
		return row, err
	}
	var renewals sync.WaitGroup
	renewing, stopRenewing := context.WithCancel(rowCtx)
	renewals.Go(func() { held.Renew(renewing, d.Term, func(err error) { cancel(err) }) })
	readCtx, stopReading := pace.Graceful(ctx, rowCtx, 0)
	defer stopReading()
	engineCtx, stopEngine := pace.Graceful(ctx, rowCtx, stopGrace)
	defer stopEngine()
	w := pageWork{driver: d, assignment: a, held: held, until: until, callerCtx: ctx, rowCtx: rowCtx, readCtx: readCtx, engineCtx: engineCtx}
	for last := false; err == nil && !last; {
		w.piece.PageMax = w.pageMax()
		if w.over() {
			err = errGivenUp
			break
		}
		began := time.Now()
		last, err = w.page()
		w.took = time.Since(began)
	}
	stopRenewing()
	renewals.Wait()
	if lost := context.Cause(rowCtx); lost != nil {
		err = lost
	}
	if err != nil && !errors.Is(err, progress.ErrLost) {
		if free := held.Release(rowCtx); !errors.Is(free, progress.ErrLost) {
			err = errors.Join(err, free)
		}
	}
	return held.Row(), err
}

// pageWork is work on the pages of a piece, under contexts that end one after another.
type pageWork struct {
	*driver
	assignment
	held  *progress.Held
	until time.Time
	took  time.Duration // by the page before
	// callerCtx is the caller's. readCtx ends with it, engineCtx stopGrace later, rowCtx once the piece is lost.
	callerCtx, readCtx, engineCtx, rowCtx context.Context
}

// over reports whether it is time to stop.
func (w pageWork) over() bool {
	return w.callerCtx.Err() != nil || !w.until.IsZero() && !time.Now().Before(w.until)
}

// pageMax is how many items the next page may have if the time is bounded: one at first, then up to twice as many, as
// far as half of the time that is left allows. A larger page would not be finished, and would come again each time.
func (w pageWork) pageMax() int {
	if w.until.IsZero() {
		return 0
	}
	before := w.piece.PageMax
	most := min(2*before, sources.PageItemsMax)
	if left := time.Until(w.until); w.took > 0 {
		most = min(most, int(float64(before)*float64(left)/2/float64(w.took)))
	}
	return max(most, 1)
}

// page works off the next page of the piece and saves the place behind it.
func (w pageWork) page() (last bool, err error) {
	page, err := progress.Attempt(w.readCtx, func() (sources.Page, error) { return w.source.Read(w.readCtx, w.piece, w.held.Row().Cursor) })
	if err != nil {
		if w.readCtx.Err() != nil {
			return false, errGivenUp
		}
		if sources.IsDamage(err) { // a file that is mended, or put in its place, is another one also up to there
			err = errors.Join(err, w.held.Forget(w.rowCtx))
		}
		return false, err
	}
	worked := int64(0) // keys are fewer than items if the last line breaks off
	w.report(func(p *Progress) { p.ReadUnits += page.ReadUnits })
	for keys := range slices.Chunk(page.Keys, sliceKeys) {
		if worked > 0 && w.over() {
			return false, errGivenUp
		}
		if err := w.Engine.Work(w.engineCtx, w.step.Pass, keys); err != nil {
			if w.engineCtx.Err() != nil {
				return false, errGivenUp
			}
			return false, fmt.Errorf("%w of %s: %w", errEngine, w.piece.Name, err)
		}
		n := int64(len(keys))
		worked += n
		w.report(func(p *Progress) { p.PassItems, p.Items = p.PassItems+n, p.Items+n })
	}
	if err := w.held.Save(w.rowCtx, page.Next, page.Items, page.Last); err != nil {
		return false, err
	}
	w.report(func(p *Progress) {
		p.PassItems += page.Items - worked
		p.Items += page.Items - worked
		p.Skipped += page.Skipped
	})
	return page.Last, nil
}

func (d *driver) report(change func(*Progress)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.reported)
	if d.Report != nil {
		d.Report(d.reported)
	}
}

// WorkPiece works off one piece of a step that Next returned, from where any process has left it, until it is done or the
// time has come. It finishes some 50 items that are begun: leave time for that. If done is false, the piece is to be
// given to WorkPiece again. WorkPiece waits while another process, heard of within Config.Term, works on the piece.
func WorkPiece(ctx context.Context, cfg Config, step Step, name string, until time.Time) (done bool, err error) {
	d, err := newDriver(cfg)
	if err != nil {
		return false, err
	}
	a, err := d.assign(ctx, step, name)
	if err != nil {
		return false, err
	}
	for watch := progress.NewWatch(d.Term); ; {
		if a.seen, err = d.store.Piece(ctx, step.run(), a.place()); err != nil || a.seen.Done {
			return a.seen.Done, err
		}
		if watch.Free(name, a.seen, time.Now()) {
			row, err := d.workOff(ctx, a, until)
			switch {
			case errors.Is(err, errGivenUp):
				return false, context.Cause(ctx)
			case !errors.Is(err, progress.ErrLost):
				return row.Done, err
			}
		}
		wait := d.pause()
		if !until.IsZero() && time.Now().Add(wait).After(until) {
			return false, nil
		}
		if err := pace.Sleep(ctx, wait); err != nil {
			return false, err
		}
	}
}

// assign finds a step's source and piece.
func (d *driver) assign(ctx context.Context, step Step, name string) (assignment, error) {
	source, pieces, err := d.piecesOf(ctx, step)
	if err != nil {
		return assignment{}, err
	}
	if got := source.Describe(); got != step.Source {
		return assignment{}, fmt.Errorf("the step is of the %s, but the source is the %s", step.Source, got)
	}
	at := slices.IndexFunc(pieces, func(p sources.Piece) bool { return p.Name == name })
	if at < 0 {
		return assignment{}, fmt.Errorf("%q is no piece of the %s", name, step.Source)
	}
	return assignment{step: step, source: source, piece: pieces[at]}, nil
}

// pause is the wait between two readings of the rows of pieces that other processes work on.
func (d *driver) pause() time.Duration { return d.Term / readsPerTerm }

const readsPerTerm = 4
