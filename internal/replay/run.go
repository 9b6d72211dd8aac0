package replay

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/replay/internal/progress"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

// Run works off what rules need that are not in force yet. If all are, or the Config asks for less than everything, it
// rederives every item, and after a scan of the whole table sweeps up after items that have vanished. Several
// processes with the same Config share the pieces.
//
// When ctx ends, Run finishes the pages in hand, saves its place and returns the context's cause; the next Run resumes
// there. The error names all pieces that failed; the others are done.
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

// workStep works off a step's pieces together with other workers.
func (d *driver) workStep(ctx context.Context, step Step) error {
	source, pieces, err := d.piecesOf(ctx, step)
	if err != nil {
		return err
	}
	b := &pieceBoard{
		driver: d, step: step, source: source, pieces: rotated(pieces, d.owner), rows: map[string]progress.Piece{},
		busy: map[string]bool{}, failed: map[string]error{}, watch: progress.NewWatch(d.Term), ended: make(chan ending),
	}
	d.report(func(p *Progress) {
		p.Pass, p.Rules, p.Number, p.Of = step.Pass, d.Engine.RulesOf(step.Pass), p.Passes+1, p.Passes+step.Left
		p.Pieces, p.PassItems = len(pieces), 0
	})
	return b.run(ctx)
}

// rotated returns the list begun at a place that follows from the owner, so that processes that begin together do not all
// reach for the same piece.
func rotated(pieces []sources.Piece, owner string) []sources.Piece {
	if len(pieces) == 0 {
		return nil
	}
	h := fnv.New32a()
	h.Write([]byte(owner))
	at := int(h.Sum32() % uint32(len(pieces))) //nolint:gosec // there are at most 1,000,000 pieces
	return append(slices.Clone(pieces[at:]), pieces[:at]...)
}

// pieceBoard is what one process knows of a step's pieces. Its goroutine alone touches it; the workers send endings.
type pieceBoard struct {
	*driver
	step   Step
	source sources.Source
	pieces []sources.Piece
	rows   map[string]progress.Piece // as last seen
	busy   map[string]bool           // worked on by this process
	failed map[string]error
	fatal  error // ends everything
	watch  *progress.Watch
	ended  chan ending
}

// ending is what came of working on a piece.
type ending struct {
	name string
	row  progress.Piece
	err  error
}

// run ends when every piece is done, by any process, or has failed here.
func (b *pieceBoard) run(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer b.stopWorkers(stop)
	if err := b.refresh(ctx); err != nil {
		return err
	}
	for b.fatal == nil && ctx.Err() == nil {
		b.fill(working)
		if len(b.busy) == 0 && b.finished() {
			return b.failures(ctx)
		}
		var refresh <-chan time.Time
		if len(b.busy) < b.Parallel {
			refresh = time.After(b.pause())
		}
		select {
		case <-ctx.Done():
		case e := <-b.ended:
			b.note(e)
		case <-refresh:
			if err := b.refresh(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
	b.stopWorkers(stop)
	if b.fatal != nil {
		return b.fatal
	}
	return context.Cause(ctx)
}

// stopWorkers tells the workers to stop after the keys in hand, and waits for them.
func (b *pieceBoard) stopWorkers(stop func()) {
	stop()
	for len(b.busy) > 0 {
		b.note(<-b.ended)
	}
}

// fill starts work on free pieces.
func (b *pieceBoard) fill(ctx context.Context) {
	now := time.Now()
	for _, p := range b.pieces {
		if len(b.busy) >= b.Parallel {
			return
		}
		if b.busy[p.Name] || b.failed[p.Name] != nil || !b.watch.Free(p.Name, b.rows[p.Name], now) {
			continue
		}
		b.busy[p.Name] = true
		a := assignment{step: b.step, source: b.source, piece: p, seen: b.rows[p.Name]}
		go func() {
			row, err := b.workOff(ctx, a, time.Time{})
			b.ended <- ending{a.piece.Name, row, err}
		}()
	}
}

func (b *pieceBoard) note(e ending) {
	delete(b.busy, e.name)
	b.rows[e.name] = e.row
	switch {
	case e.err == nil, errors.Is(e.err, errGivenUp):
	case errors.Is(e.err, progress.ErrLost): // the row in force says to whom
	case errors.Is(e.err, errEngine):
		b.fatal = errors.Join(b.fatal, e.err)
	default:
		b.failed[e.name] = fmt.Errorf("%s: %w", e.name, e.err)
	}
	b.reportPieces()
}

// refresh reads how far others are.
func (b *pieceBoard) refresh(ctx context.Context) error {
	rows, err := b.store.Pieces(ctx, b.step.run(), b.step.Number, namesOf(b.pieces))
	if err != nil {
		return err
	}
	for name, row := range rows {
		if !b.busy[name] {
			b.rows[name] = row
		}
	}
	b.reportPieces()
	return nil
}

// reportPieces reports how many pieces are done, and how many items of the pass.
func (b *pieceBoard) reportPieces() {
	done, items := 0, int64(0)
	for _, row := range b.rows {
		items += row.Items
		if row.Done {
			done++
		}
	}
	b.report(func(p *Progress) {
		p.PiecesDone = done
		if len(b.busy) == 0 || items > p.PassItems {
			p.PassItems = items
		}
	})
}

// finished reports whether nothing is left that could still be done.
func (b *pieceBoard) finished() bool {
	return !slices.ContainsFunc(b.pieces, func(p sources.Piece) bool { return !b.rows[p.Name].Done && b.failed[p.Name] == nil })
}

// failures names the pieces that have failed here and that no other worker has done.
func (b *pieceBoard) failures(ctx context.Context) error {
	if len(b.failed) == 0 {
		return nil
	}
	if err := b.refresh(ctx); err != nil {
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
