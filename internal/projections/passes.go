package projections

import (
	"context"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/rules"
)

// Aim says which pass is next to bring the rules into force, and how many are left with it; 0: nothing.
func (e *Engine) Aim(ctx context.Context) (text string, left int, err error) {
	cursor, left, err := e.seeding.Aimed(ctx)
	if err != nil || left == 0 {
		return "", 0, err
	}
	return e.seeding.PassOf(cursor).String(), left, nil
}

// TableOf is the table whose items a pass goes over: the user's, or the state table.
func (e *Engine) TableOf(text string) string {
	if p, err := seeding.ParsePass(text); err == nil && p.Phase == state.PhaseSweep {
		return e.tables.StateTable
	}
	return e.tables.Table
}

// RulesOf names the rules that a pass is for.
func (e *Engine) RulesOf(text string) []string {
	p, err := seeding.ParsePass(text)
	if err != nil {
		return nil
	}
	return p.RuleNames(e.planner)
}

// Work works off some items of a pass, given by key: rows, of a pass over the state table. It may be called in any order, by any
// process, and more than once. It returns ErrEpochMoved where newer rules are in force.
func (e *Engine) Work(ctx context.Context, text string, keys []change.Key) error {
	p, err := seeding.ParsePass(text)
	if err != nil {
		return err
	}
	if over, err := p.IsOver(e.planner.Epoch); err != nil || over {
		return err
	}
	return e.background(replays).workPass(ctx, p, keys)
}

func (e *Engine) workPass(ctx context.Context, p seeding.Pass, keys []change.Key) error {
	var do func([]change.Key) error
	switch p.Phase {
	case state.PhaseDerive:
		return e.rederivePage(ctx, p, keys, e.planner.Derives, plan.Sources)
	case state.PhaseShow:
		do = func(keys []change.Key) error {
			return e.applyPlan(ctx, func() (*plan.Changes, error) { return e.planShow(ctx, p, keys) })
		}
	case state.PhaseRederive:
		concerns, err := p.Concerns(e.planner.Set)
		if err != nil {
			return err
		}
		return e.rederivePage(ctx, p, keys, concerns, plan.Itself)
	case state.PhaseClean:
		do = func(keys []change.Key) error {
			return e.applyPlan(ctx, func() (*plan.Changes, error) { return e.planClean(ctx, keys) })
		}
	case state.PhaseSweep:
		do = func(keys []change.Key) error {
			return e.registry.Under(ctx, func() error { return e.sweep.Work(ctx, keys) })
		}
	default:
		return fmt.Errorf("pass %q: %w", p, seeding.ErrUnknownPass)
	}
	return e.inPieces(ctx, keys, do)
}

// rederivePage rederives the items of a page that concern a pass, and counts all of them, the others by their key.
func (e *Engine) rederivePage(ctx context.Context, p seeding.Pass, keys []change.Key, concerns func(change.Key) bool, sc plan.Scope) error {
	seen := sightings.Page{Looked: int64(len(keys))}
	var wanted []change.Key
	for _, k := range keys {
		if concerns(k) {
			wanted = append(wanted, k)
		} else {
			e.planner.SeeKey(&seen.Items, k)
		}
	}
	err := e.inPieces(ctx, wanted, func(keys []change.Key) error { return e.rederive(ctx, keys, sc, nil, &seen) })
	if err != nil {
		return err
	}
	e.seen.AddPage(p.String(), seen, len(e.planner.Set.Rules))
	return nil
}

// Complete ends a pass of which every item was given to Work, by any process, unless another process has ended it.
func (e *Engine) Complete(ctx context.Context, text string) error {
	return e.seeding.Complete(ctx, text)
}

// applyPlan applies what is planned under the rules in force.
func (e *Engine) applyPlan(ctx context.Context, planned func() (*plan.Changes, error)) error {
	return e.registry.Under(ctx, func() error {
		pl, err := planned()
		if err != nil {
			return err
		}
		return e.apply(ctx, pl, 0).Err
	})
}

// planShow plans the roll-up of what items display.
func (e *Engine) planShow(ctx context.Context, p seeding.Pass, keys []change.Key) (*plan.Changes, error) {
	c := state.Cursor{Level: p.Level, Phase: p.Phase}
	wanted := slices.DeleteFunc(slices.Clone(keys), func(k change.Key) bool {
		return !slices.ContainsFunc(e.planner.Set.Entities, func(ent *rules.Entity) bool {
			return slices.ContainsFunc(ent.Displays, c.IsFor) && ent.HasKey(k)
		})
	})
	items, err := e.tables.ReadItems(ctx, "reading items that display a total", wanted)
	pl := &plan.Changes{}
	for _, key := range wanted {
		m, ok := e.planner.Set.Identify(key, items[key])
		if !ok {
			continue
		}
		for _, rule := range m.Entity.Displays {
			if c.IsFor(rule) {
				host.GathererOf(rule).Display(pl, e.planner.Of(rule), key, &m, items[key])
			}
		}
	}
	return pl, err
}

// planClean plans to take back what retired rules left on items.
func (e *Engine) planClean(ctx context.Context, keys []change.Key) (*plan.Changes, error) {
	wrote := slices.DeleteFunc(slices.Clone(keys), func(k change.Key) bool { return !e.planner.WroteAt(k) })
	items, err := e.tables.ReadItems(ctx, "reading items to clean", wrote)
	pl := &plan.Changes{}
	for _, k := range wrote {
		if items[k] != nil {
			e.planner.Formerly(pl, k, items[k])
		}
	}
	return pl, err
}
