package progress

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// renewalsPerTerm is how often a holder raises the counter: two may go missing before another takes the piece.
const renewalsPerTerm = 3

// Held is a piece that this process works on. Save and Release are for one goroutine.
type Held struct {
	store *Store
	run   Run
	at    Place
	owner string

	writing chan struct{} // holds a token while no write is under way: each write is conditional on the one before
	row     Piece         // for the holder of the token
}

// Claim takes a piece; ErrLost, with the row in force, if another process has written it since it was seen.
func (s *Store) Claim(ctx context.Context, run Run, at Place, seen Piece, owner string) (*Held, Piece, error) {
	next := seen
	next.Owner = owner
	row, err := s.write(ctx, run, at, seen, next, owner)
	if err != nil {
		return nil, row, fmt.Errorf("taking piece %s: %w", at.Name, err)
	}
	h := &Held{store: s, run: run, at: at, owner: owner, row: row, writing: make(chan struct{}, 1)}
	h.writing <- struct{}{}
	return h, row, nil
}

// Row returns the row as it was last written.
func (h *Held) Row() Piece {
	<-h.writing
	defer func() { h.writing <- struct{}{} }()
	return h.row
}

// Save notes that the pages up to the cursor are done, and with done all of the piece.
func (h *Held) Save(ctx context.Context, cursor string, items int64, done bool) error {
	return h.write(ctx, "saving the place in", func(p *Piece) {
		p.Cursor, p.Done = cursor, done
		p.Items += items
		if done {
			p.Owner = ""
		}
	})
}

// Forget takes the place back to before the first page.
func (h *Held) Forget(ctx context.Context) error {
	return h.write(ctx, "forgetting the place in", func(p *Piece) { p.Cursor, p.Items = "", 0 })
}

// Release gives the piece up for others to go on from its place.
func (h *Held) Release(ctx context.Context) error {
	return h.write(ctx, "giving up", func(p *Piece) { p.Owner = "" })
}

func (h *Held) write(ctx context.Context, doing string, change func(*Piece)) error {
	<-h.writing
	defer func() { h.writing <- struct{}{} }()
	next := h.row
	change(&next)
	row, err := h.store.write(ctx, h.run, h.at, h.row, next, h.owner)
	if err != nil {
		return fmt.Errorf("%s piece %s: %w", doing, h.at.Name, err)
	}
	h.row = row
	return nil
}

// Renew raises the counter several times a term until ctx ends, and calls lost if the piece is another's. After any other
// error the next renewal or save shows whether it is still held.
func (h *Held) Renew(ctx context.Context, term time.Duration, lost func(error)) {
	ticker := time.NewTicker(term / renewalsPerTerm)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if ctx.Err() != nil { // or chance would say whether the row is written
			return
		}
		if err := h.write(ctx, "renewing", func(*Piece) {}); errors.Is(err, ErrLost) {
			lost(err)
			return
		}
	}
}

// Watch finds pieces whose owners are gone: whose counter it has itself seen stand still for a term.
type Watch struct {
	term time.Duration
	seen map[string]sighting
}

type sighting struct {
	row   Piece
	since time.Time
}

// NewWatch returns a watch for owners that renew within term.
func NewWatch(term time.Duration) *Watch { return &Watch{term: term, seen: map[string]sighting{}} }

// Free reports whether the piece may be taken, given its row as it is now.
func (w *Watch) Free(name string, row Piece, now time.Time) bool {
	if row.Done || row.Owner == "" {
		return !row.Done
	}
	last, known := w.seen[name]
	if !known || !last.row.same(row) {
		w.seen[name] = sighting{row, now}
		return false
	}
	return now.Sub(last.since) >= w.term
}
