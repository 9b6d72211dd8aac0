package seeding

import (
	"context"
	"errors"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ErrCursorMoved says that another process seeds too: its place counts.
var ErrCursorMoved = errors.New("another process moved the seeding cursor")

// ReadCursor reads the stored cursor.
func ReadCursor(ctx context.Context, rd *table.Reader, p *plan.Planner) (state.Cursor, error) {
	rows, err := rd.ReadState(ctx, "reading the seeding cursor", []table.Key{state.CursorKey()})
	if err != nil {
		return state.Cursor{}, err
	}
	return state.ReadCursor(rd, p, rows[state.CursorKey()]), nil
}

// Save saves the place of a cursor. It returns ErrCursorMoved if another process has moved it.
func (s *Seeding) Save(ctx context.Context, cursor *state.Cursor) error {
	err := s.store(ctx, *cursor)
	cursor.Changes = state.Raised(cursor.Changes)
	return err
}

// drop ends a level: no scan is under way any more.
func (s *Seeding) drop(ctx context.Context, cursor state.Cursor) error {
	return s.store(ctx, state.Cursor{Changes: cursor.Changes})
}

func (s *Seeding) store(ctx context.Context, cursor state.Cursor) error {
	c := table.NewExpression()
	err := s.Tables.PutState(ctx, "", "saving the seeding cursor", cursor.Row(s.Planner), state.CursorIs(c, cursor), c)
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return ErrCursorMoved
	}
	return err
}
