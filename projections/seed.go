package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/tablescan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
	"github.com/dynamill/dynamill/rules"
)

// Seeding brings rules that are new to a table into force over all items that
// are there already, beside the stream (promise 10). Rules that read what
// others write are seeded after them, level by level: the items that a level's
// rules write are in the table when the next level's scan begins. Each level
// takes a scan that derives and, once that is complete, a scan that shows.
// Then what former rules wrote is taken back: retire.go.

// SeedProgress is how far seeding has come.
type SeedProgress struct {
	Rules        []string // being seeded
	Pass, Passes int      // scans of the table, from 1
	Items        int64    // in this pass
	Done         bool
}

// seedPageMax is how many items are worked off between two places of the
// cursor: what a restart does again, and how often progress is told.
const seedPageMax = 500

// Seed seeds every rule that is not live yet, resuming where a former run
// stopped. It returns at once when there is nothing to seed. Several processes
// may seed at the same time; they go on from each other's place.
func (e *Engine) Seed(ctx context.Context, progress func(SeedProgress)) error {
	if progress == nil {
		progress = func(SeedProgress) {}
	}
	for done := 0; ; {
		cursor, left, err := e.aimed(ctx)
		if err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
		if left == 0 {
			if done > 0 {
				progress(SeedProgress{Pass: done, Passes: done, Done: true})
			}
			return nil
		}
		names := e.namesOf(e.passOf(cursor))
		err = e.seedPass(ctx, &cursor, func(items int64) {
			progress(SeedProgress{Rules: names, Pass: done + 1, Passes: done + left, Items: items})
		})
		if err == nil {
			if cursor.Phase == state.PhaseDerive {
				e.seen.EndSeeding(e.passOf(cursor).String(), cursor.Items)
			}
			err = e.endPass(ctx, cursor)
		}
		switch {
		case err == nil:
			done++
		case !errors.Is(err, errCursorMoved):
			return fmt.Errorf("seeding: %w", err)
		}
	}
}

// aimed reads where seeding stands, and turns the cursor to the pass that is to be
// worked off. It returns how many are left with it. Retiring takes no pass: it is
// done on the way.
func (e *Engine) aimed(ctx context.Context) (state.Cursor, int, error) {
	for {
		cursor, err := e.readSeeding(ctx)
		if err != nil {
			return cursor, 0, err
		}
		left := e.aim(&cursor)
		if cursor.Phase != state.PhaseRetire {
			return cursor, left, nil
		}
		if err := e.retire(ctx, cursor); err != nil && !errors.Is(err, errCursorMoved) {
			return cursor, 0, err
		}
	}
}

// readSeeding reads the cursor, and which rules are live, as they were at one moment.
func (e *Engine) readSeeding(ctx context.Context) (cursor state.Cursor, err error) {
	err = e.registry.Under(ctx, func() error {
		cursor, err = e.readCursor(ctx)
		return err
	})
	return cursor, err
}

// aim turns the cursor to the next pass, unless it is in the middle of it, and
// returns how many are left: none if everything is live and shown, and nothing is
// left of former rules.
func (e *Engine) aim(cursor *state.Cursor) int {
	var levels []int
	for _, r := range e.planner.Set.Rules {
		if !e.planner.Of(r).Live.Load() && !slices.Contains(levels, r.Level) {
			levels = append(levels, r.Level)
		}
	}
	slices.Sort(levels)
	left := len(levels)
	for _, level := range levels {
		if e.showsAnything(state.Cursor{Level: level}) {
			left++
		}
	}
	retiring, uncleaned := e.formersLeft()
	if retiring || uncleaned {
		left += 2
	}
	start := func(phase state.Phase, level int) {
		if cursor.Phase != phase || cursor.Level != level {
			*cursor = state.Cursor{Level: level, Phase: phase, Changes: cursor.Changes}
		}
	}
	switch {
	case cursor.Phase == state.PhaseShow && e.showsAnything(*cursor):
		left++
	case len(levels) > 0:
		start(state.PhaseDerive, levels[0])
	case retiring:
		start(state.PhaseRetire, state.EveryLevel)
	case uncleaned && cursor.Phase == state.PhaseSweep:
		left--
	case uncleaned:
		start(state.PhaseClean, state.EveryLevel)
	}
	return left
}

// formersLeft reports whether former rules are still to retire, and whether what
// retired ones wrote is still to be taken back.
func (e *Engine) formersLeft() (retiring, uncleaned bool) {
	for _, b := range e.planner.Formers() {
		retiring = retiring || !b.Retired.Load()
		uncleaned = uncleaned || b.Retired.Load() && !b.Cleaned.Load()
	}
	return retiring, uncleaned
}

// endPass ends the cursor's pass, provided that the cursor has not moved.
func (e *Engine) endPass(ctx context.Context, cursor state.Cursor) error {
	switch cursor.Phase {
	case state.PhaseDerive:
		return e.goLive(ctx, cursor)
	case state.PhaseClean:
		return e.storeCursor(ctx, state.Cursor{Level: state.EveryLevel, Phase: state.PhaseSweep, Changes: cursor.Changes})
	case state.PhaseSweep:
		return e.endFormers(ctx, cursor)
	}
	return e.dropCursor(ctx, cursor)
}

// seedPass goes over a table once, from the cursor on.
func (e *Engine) seedPass(ctx context.Context, cursor *state.Cursor, report func(int64)) error {
	p := e.passOf(*cursor)
	scanned := &tablescan.Table{Client: e.tables.Client, TableName: e.TableOf(p.String()), Segments: 1, Attributes: []string{e.tables.PartitionKey}}
	keyOf := e.tables.KeyOf
	if scanned.TableName == e.tables.StateTable {
		keyOf, scanned.Attributes = stateRowKey, []string{table.PK, table.SK}
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
		if err := e.workPass(ctx, p, keys); err != nil {
			return err
		}
		cursor.Items += int64(len(page.Items))
		report(cursor.Items)
		if cursor.Last = page.Next; cursor.Last == nil {
			return nil
		}
		if err := e.saveCursor(ctx, cursor); err != nil {
			return err
		}
	}
}

// stateRowKey is the key of a row of the state table, as drivers are given it.
func stateRowKey(r table.Row) change.Key {
	return change.Key{Partition: table.TextOf(r[table.PK]), Sort: table.TextOf(r[table.SK])}
}

func (e *Engine) showsAnything(cursor state.Cursor) bool {
	return slices.ContainsFunc(e.planner.Set.Entities, func(ent *rules.Entity) bool {
		return slices.ContainsFunc(ent.Displays, cursor.IsFor)
	})
}
