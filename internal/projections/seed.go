package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// Seeding brings new rules into force over all items that are there already, beside the stream (promise 10), level by level: what a
// level's rules write is there when the next level's scan begins. Each level takes up to three passes: one derives, one counts for hot
// rules, one shows. Then former rules retire, and two more passes take back what they wrote.

// seedPageMax is how many items are worked off between two places of the cursor.
const seedPageMax = 500

// Seed seeds every rule that is not live yet, from where a former run stopped. Several processes may do so at the same time.
func (e *Engine) Seed(ctx context.Context, progress func(SeedProgress)) error {
	if progress == nil {
		progress = func(SeedProgress) {}
	}
	for done := 0; ; {
		cursor, left, err := e.seeding.NextPass(ctx)
		if err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
		if left == 0 {
			if done > 0 {
				progress(SeedProgress{Pass: done, Passes: done, Done: true})
			}
			return nil
		}
		names := e.seeding.PassOf(cursor).RuleNames(e.planner)
		work := e.seedPass
		if cursor.Phase == state.PhaseCount {
			work = e.seedCount
		}
		err = work(ctx, &cursor, func(items int64) {
			progress(SeedProgress{Rules: names, Pass: done + 1, Passes: done + left, Items: items})
		})
		if err == nil {
			if cursor.Phase == state.PhaseDerive {
				e.seen.EndSeeding(e.seeding.PassOf(cursor).String(), cursor.Items)
			}
			err = e.endPass(ctx, cursor)
		}
		switch {
		case err == nil:
			done++
		case !errors.Is(err, seeding.ErrCursorMoved):
			return fmt.Errorf("seeding: %w", err)
		}
	}
}

// seedPass goes over a table once, from the cursor on.
func (e *Engine) seedPass(ctx context.Context, cursor *state.Cursor, report func(int64)) error {
	p := e.seeding.PassOf(*cursor)
	scanned := &tablescan.Table{Client: e.tables.Client, TableName: e.TableOf(p.String()), Segments: 1,
		Attributes: []string{e.tables.PartitionKey}}
	keyOf := e.tables.KeyOf
	if scanned.TableName == e.tables.StateTable {
		keyOf, scanned.Attributes = func(r table.Row) change.Key { return change.Key(table.KeyOf(r)) }, []string{table.PK, table.SK}
	} else if e.tables.SortKey != "" {
		scanned.Attributes = append(scanned.Attributes, e.tables.SortKey)
	}
	for {
		page, err := table.Attempt(ctx, e.tables.Reader, "scanning the table", func() (tablescan.Page, error) {
			return scanned.Read(ctx, 0, cursor.Last, seedPageMax)
		})
		if err != nil {
			return err
		}
		keys := make([]change.Key, len(page.Items))
		for i, r := range page.Items {
			keys[i] = keyOf(r)
		}
		if err := (pass{e.background(seeds), p}).work(ctx, keys); err != nil {
			return err
		}
		cursor.Items += int64(len(page.Items))
		report(cursor.Items)
		if cursor.Last = page.Next; cursor.Last == nil {
			return nil
		}
		if err := e.seeding.Save(ctx, cursor); err != nil {
			return err
		}
	}
}
