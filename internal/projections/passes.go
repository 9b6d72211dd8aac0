package projections

import (
	"context"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// NextPass names the next pass that brings the rules into force, and says how many passes are left with it. 0: every rule is in force.
func (e *Engine) NextPass(ctx context.Context) (text string, left int, err error) {
	cursor, left, err := e.seeding.NextPass(ctx)
	if err != nil || left == 0 {
		return "", 0, err
	}
	if cursor.Phase == state.PhaseCount {
		return "", 0, needsCount(e.seeding.PassOf(cursor).RuleNames(e.planner))
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
	return pass{e.background(replays), p}.work(ctx, keys)
}

// Complete ends a pass after any processes gave all its items to Work, unless another process has ended it.
func (e *Engine) Complete(ctx context.Context, text string) error {
	return e.seeding.Complete(ctx, text, e.endPass)
}

// pass is the engine at work on one pass.
type pass struct {
	*Engine
	seeding.Pass
}

func (p pass) work(ctx context.Context, keys []change.Key) error {
	var do func([]change.Key) error
	switch p.Phase {
	case state.PhaseDerive:
		return p.rederiveConcerned(ctx, keys, p.planner.Derives, plan.Sources)
	case state.PhaseShow:
		do = func(keys []change.Key) error { return p.applyPlanned(ctx, keys, p.show) }
	case state.PhaseRederive:
		concerns, err := p.Concerns(p.planner.Set)
		if err != nil {
			return err
		}
		return p.rederiveConcerned(ctx, keys, concerns, plan.Itself)
	case state.PhaseClean:
		do = func(keys []change.Key) error { return p.applyPlanned(ctx, keys, p.clean) }
	case state.PhaseSweep:
		do = func(keys []change.Key) error {
			return p.registry.Under(ctx, func() error { return p.sweep.Work(ctx, keys) })
		}
	default:
		return fmt.Errorf("pass %q: %w", p, seeding.ErrUnknownPass)
	}
	return p.inPieces(ctx, keys, do)
}

// rederiveConcerned rederives the items of a page that concern the pass, and counts all of them, the others by their key.
func (p pass) rederiveConcerned(ctx context.Context, keys []change.Key, concerns func(change.Key) bool, sc plan.Scope) error {
	seen := sightings.Page{Looked: int64(len(keys))}
	var wanted []change.Key
	for _, k := range keys {
		if concerns(k) {
			wanted = append(wanted, k)
		} else {
			p.planner.SeeKey(&seen.Items, k)
		}
	}
	err := p.inPieces(ctx, wanted, func(keys []change.Key) error { return p.Engine.rederive(ctx, keys, sc, nil, &seen) })
	if err != nil {
		return err
	}
	p.seen.AddPage(p.String(), seen, len(p.planner.Set.Rules))
	return nil
}

// applyPlanned applies what is planned for items under the rules in force.
func (p pass) applyPlanned(ctx context.Context, keys []change.Key,
	planned func(context.Context, []change.Key) (*plan.Changes, error)) error {
	return p.registry.Under(ctx, func() error {
		pl, err := planned(ctx, keys)
		if err != nil {
			return err
		}
		return p.Engine.apply(ctx, pl, 0, nil).Err
	})
}

// show plans the roll-up of what items display.
func (p pass) show(ctx context.Context, keys []change.Key) (*plan.Changes, error) {
	c := state.Cursor{Level: p.Level, Phase: p.Phase}
	shown := slices.DeleteFunc(slices.Clone(p.planner.Set.Rules), func(r *rules.Rule) bool { return !r.Displays() || !c.IsFor(r) })
	concerns := func(r *rules.Rule, k change.Key) bool { return r.Target.HasKey(k) || r.Derives() && r.Source.HasKey(k) }
	wanted := slices.DeleteFunc(slices.Clone(keys), func(k change.Key) bool {
		return !slices.ContainsFunc(shown, func(r *rules.Rule) bool { return concerns(r, k) })
	})
	items, err := p.tables.ReadItems(ctx, "reading items that display a total", wanted)
	pl := &plan.Changes{}
	for _, key := range wanted {
		m := p.planner.MatchOf(key, table.Image(items[key]))
		for _, rule := range shown {
			if concerns(rule, key) {
				groups.Display(pl, p.planner.Of(rule), key, &m, table.Image(items[key]))
			}
		}
	}
	return pl, err
}

// clean plans to take back what retired rules left on items.
func (p pass) clean(ctx context.Context, keys []change.Key) (*plan.Changes, error) {
	wrote := slices.DeleteFunc(slices.Clone(keys), func(k change.Key) bool { return !leftovers.WroteAt(p.planner, k) })
	items, err := p.tables.ReadItems(ctx, "reading items to clean", wrote)
	pl := &plan.Changes{}
	for _, k := range wrote {
		if items[k] != nil {
			leftovers.PlanRetired(p.planner, pl, k, items[k])
		}
	}
	return pl, err
}
