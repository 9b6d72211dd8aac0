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
)

// How the work on a piece can end without being done.
var (
	errGivenUp = errors.New("stopped between two pages")
	// errEngine marks what the engine could not do: it would fail for every piece alike.
	errEngine = errors.New("working off a page")
)

const (
	// sliceKeys of a page are given to the engine at a time: where writes are held
	// back, a page may take minutes.
	sliceKeys = 50
	// stopGrace is how long the slice in hand may take once the context has ended.
	stopGrace = 5 * time.Second
)

// assignment is one piece of a step, for this process to work off.
type assignment struct {
	step   Step
	source Source
	piece  Piece
	seen   progress.Piece // its row, as it was last seen
}

func (a assignment) place() progress.Place {
	return progress.Place{Pass: a.step.Number, Name: a.piece.Name}
}

// workOff takes a piece and works it off, page by page, until it is done, lost
// to another process, or stopped: by the context, or at the given time unless
// that is zero. A page of which only a part was worked off is worked off again
// by the next worker: it does no harm.
func (d *driver) workOff(ctx context.Context, a assignment, until time.Time) (progress.Piece, error) {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	held, row, err := d.store.Claim(working, a.step.run(), a.place(), a.seen, d.owner)
	if err != nil {
		return row, err
	}
	var renewals sync.WaitGroup
	renewing, stopRenewing := context.WithCancel(working)
	renewals.Go(func() { held.Renew(renewing, d.Term, func(err error) { cancel(err) }) })
	reading, stopReading := pace.Graceful(ctx, working, 0)
	defer stopReading()
	slices, stopSlices := pace.Graceful(ctx, working, stopGrace)
	defer stopSlices()
	w := pageWork{driver: d, assignment: a, held: held, until: until, given: ctx, working: working, reading: reading, slices: slices}
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
	if lost := context.Cause(working); lost != nil {
		err = lost
	}
	if err != nil && !errors.Is(err, progress.ErrLost) {
		if free := held.Release(working); free != nil && !errors.Is(free, progress.ErrLost) {
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
	// given is the caller's; reading ends with it, slices some seconds after it, and
	// working only if the piece is lost.
	given, reading, slices, working context.Context
}

// over reports whether it is time to stop.
func (w pageWork) over() bool {
	return w.given.Err() != nil || !w.until.IsZero() && !time.Now().Before(w.until)
}

// pageMax is how many items the next page may have where the time is short: one at
// first, then up to twice as many, as far as half of the time that is left is enough
// for them. A page of which the time allows only a part would come again, and so would
// all of it after that; of however slow items, some are done each time.
func (w pageWork) pageMax() int {
	if w.until.IsZero() {
		return 0
	}
	before := w.piece.PageMax
	most := min(2*before, pageItemsMax)
	if left := time.Until(w.until); w.took > 0 {
		most = min(most, int(float64(before)*float64(left)/2/float64(w.took)))
	}
	return max(most, 1)
}

// page works off the next page of the piece and saves the place behind it.
func (w pageWork) page() (last bool, err error) {
	page, err := progress.Attempt(w.reading, func() (Page, error) { return w.source.Read(w.reading, w.piece, w.held.Row().Cursor) })
	if err != nil {
		if w.reading.Err() != nil {
			return false, errGivenUp
		}
		if IsDamage(err) { // a file that is mended, or put in its place, is another one also up to there
			err = errors.Join(err, w.held.Forget(w.working))
		}
		return false, err
	}
	worked := int64(0) // keys are fewer than items if the last line breaks off
	w.report(func(p *Progress) { p.ReadUnits += page.ReadUnits })
	for keys := range slices.Chunk(page.Keys, sliceKeys) {
		if worked > 0 && w.over() {
			return false, errGivenUp
		}
		if err := w.Engine.Work(w.slices, w.step.Pass, keys); err != nil {
			if w.slices.Err() != nil {
				return false, errGivenUp
			}
			return false, fmt.Errorf("%w of %s: %w", errEngine, w.piece.Name, err)
		}
		n := int64(len(keys))
		worked += n
		w.report(func(p *Progress) { p.PassItems, p.Items = p.PassItems+n, p.Items+n })
	}
	if err := w.held.Save(w.working, page.Next, page.Items, page.Last); err != nil {
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

// WorkPiece works off one piece of a step that Next returned, from where
// any process has left it, until it is done or the time has come. Some 50 items that
// are begun are finished first: leave time for that. done false says that the piece
// is to be given to WorkPiece again. Where another process works on the piece,
// it waits until that is done, or has not been heard of for Config.Term.
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
	a := assignment{step: step}
	var err error
	if a.source, _, err = d.sourceOf(ctx, step.Pass, step.Segments); err != nil {
		return a, err
	}
	if got := a.source.Describe(); got != step.Source {
		return a, fmt.Errorf("the step is of the %s, but the source is the %s", step.Source, got)
	}
	if scan, ok := a.source.(*Scan); ok {
		a.piece = Piece{Name: name}
		if _, err := scan.segment(a.piece); err != nil { // a list of all, for each of them, would be long
			return a, err
		}
		return a, nil
	}
	pieces, err := a.source.Pieces(ctx)
	if err != nil {
		return a, fmt.Errorf("listing the pieces of the %s: %w", step.Source, err)
	}
	for _, p := range pieces {
		if p.Name == name {
			a.piece = p
			return a, nil
		}
	}
	return a, fmt.Errorf("the %s has no piece %q", step.Source, name)
}

// pause is the wait between two readings of the rows of pieces that other processes work on.
func (d *driver) pause() time.Duration { return d.Term / readsPerTerm }

const readsPerTerm = 4
