package projections

import (
	"context"
	"errors"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// errCursorMoved says that another process seeds too: its place counts.
var errCursorMoved = errors.New("another process moved the seeding cursor")

// readCursor reads the stored cursor.
func (rd *ruleReader) readCursor(ctx context.Context) (state.Cursor, error) {
	rows, err := rd.reader.ReadState(ctx, "reading the seeding cursor", []table.Key{state.CursorKey()})
	if err != nil {
		return state.Cursor{}, err
	}
	return state.ReadCursor(rd.reader, rd.planner, rows[state.CursorKey()]), nil
}

func (e *Engine) saveCursor(ctx context.Context, cursor *state.Cursor) error {
	err := e.storeCursor(ctx, *cursor)
	cursor.Changes = state.Raised(cursor.Changes)
	return err
}

// dropCursor ends a level: no scan is under way any more.
func (e *Engine) dropCursor(ctx context.Context, cursor state.Cursor) error {
	return e.storeCursor(ctx, state.Cursor{Changes: cursor.Changes})
}

func (e *Engine) storeCursor(ctx context.Context, cursor state.Cursor) error {
	c := table.NewExpression()
	err := e.tables.PutState(ctx, "", "saving the seeding cursor", cursor.Row(e.planner), state.CursorIs(c, cursor), c)
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return errCursorMoved
	}
	return err
}
