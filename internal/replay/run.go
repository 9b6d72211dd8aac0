package replay

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/replay/internal/progress"
)

// Run replays: it works off what rules need that are not in force yet; if they
// all are, or the Config asks for less than everything, it brings every item to
// what it asks for, and, after a scan of the whole table, sweeps up after items
// that have vanished. Several processes with the same Config share the pieces.
//
// When ctx ends, Run finishes the pages in hand, notes its place and returns the
// context's cause; the next Run goes on from there. Pieces that fail do not keep
// the others from being done: the error names them all.
func Run(ctx context.Context, cfg Config) (Totals, error) {
	d, err := newDriver(cfg)
	if err != nil {
		return Totals{}, err
	}
	var last Step
	for {
		step, err := d.next(ctx, last)
		if err == nil && !step.Done() {
			err = d.workStep(ctx, step)
		}
		if err != nil || step.Done() {
			return d.reported.Totals, err
		}
		d.reported.Passes++
		last = step
	}
}

// workStep works off a step's pieces together with other workers: first those that no other
// process works on, and then what is left of the others.
func (d *driver) workStep(ctx context.Context, step Step) error {
	source, _, err := d.sourceOf(ctx, step.Pass, step.Segments)
	if err != nil {
		return err
	}
	pieces, err := source.Pieces(ctx)
	if err != nil {
		return fmt.Errorf("listing the pieces of the %s: %w", step.Source, err)
	}
	b := &board{driver: d, step: step, pieces: pieces, failed: map[string]error{}}
	if err := b.readRows(ctx); err != nil {
		return err
	}
	d.report(func(p *Progress) {
		p.Pass, p.Rules, p.Number, p.Of = step.Pass, d.Engine.RulesOf(step.Pass), p.Passes+1, p.Passes+step.Left
		p.Pieces, p.PassItems = len(pieces), 0
		b.count(p)
	})
	var assignments []assignment
	for _, p := range fromAnywhere(pieces, d.owner) {
		assignments = append(assignments, assignment{step: step, source: source, piece: p, watch: progress.NewWatch(d.Term)})
	}
	for _, waits := range []bool{false, true} {
		group, working := errgroup.WithContext(ctx)
		group.SetLimit(d.Parallel)
		for _, a := range assignments {
			if b.over(a.piece.Name) {
				continue
			}
			group.Go(func() error {
				if working.Err() != nil {
					return nil
				}
				row, err := d.workPiece(working, a, time.Time{}, waits)
				return b.note(working, a.piece.Name, row, err)
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return b.failures(ctx)
}

// fromAnywhere turns the list, so that processes that begin together do not all
// reach for the same piece.
func fromAnywhere(pieces []Piece, owner string) []Piece {
	if len(pieces) == 0 {
		return nil
	}
	h := fnv.New32a()
	h.Write([]byte(owner))
	at := int(h.Sum32()) % len(pieces)
	return append(slices.Clone(pieces[at:]), pieces[:at]...)
}

// board is what one process knows of a step's pieces.
type board struct {
	*driver
	step   Step
	pieces []Piece

	lock   sync.Mutex
	rows   map[string]progress.Piece // as last seen
	failed map[string]error          // in this process
}

// readRows reads how far the pieces are.
func (b *board) readRows(ctx context.Context) error {
	rows, err := b.store.Pieces(ctx, b.step.run(), b.step.Number, namesOf(b.pieces))
	if err == nil {
		b.lock.Lock()
		defer b.lock.Unlock()
		b.rows = rows
	}
	return err
}

// over reports whether a piece is done, or has failed here.
func (b *board) over(name string) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.rows[name].Done || b.failed[name] != nil
}

// note records the end of the work on a piece, and returns an error that ends all work.
func (b *board) note(ctx context.Context, name string, row progress.Piece, err error) error {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.rows[name] = row
	b.report(b.count)
	switch {
	case errors.Is(err, errEngine):
		return err
	case err != nil && ctx.Err() == nil:
		b.failed[name] = fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// count counts the pieces that are done, and the items of the pass.
func (b *board) count(p *Progress) {
	items := int64(0)
	p.PiecesDone = 0
	for _, row := range b.rows {
		items += row.Items
		if row.Done {
			p.PiecesDone++
		}
	}
	p.PassItems = max(p.PassItems, items)
}

// failures names the pieces that have failed here and that no other worker has done.
func (b *board) failures(ctx context.Context) error {
	if len(b.failed) == 0 {
		return nil
	}
	if err := b.readRows(ctx); err != nil {
		return err
	}
	var all []error
	for _, p := range b.pieces {
		if err := b.failed[p.Name]; err != nil && !b.rows[p.Name].Done {
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &PiecesError{Source: b.step.Source, Pieces: len(b.pieces), Errors: all}
}

// PiecesError says that some pieces of a source could not be worked off. All others are done.
type PiecesError struct {
	Source string
	Pieces int // of the source
	Errors []error
}

func (e *PiecesError) Error() string {
	return fmt.Sprintf("%d of %d pieces of the %s failed, the others are done:\n%v", len(e.Errors), e.Pieces, e.Source,
		errors.Join(e.Errors...))
}

// Unwrap returns the errors of the pieces.
func (e *PiecesError) Unwrap() []error { return e.Errors }
