package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/host"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/registry"
	"github.com/dynamill/dynamill/projections/internal/sightings"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/rules"
)

// A pass is one look at every item of a table. Those that bring rules into
// force follow each other, and Aim tells the next; Seed works them off one page
// after the other. Other drivers may work off the same pass at the same time, in
// parallel and in any order: what they do with an item is the same, and a pass
// is ended by the first worker that finds nothing left.

// pass is a pass taken apart. Its text survives restarts.
type pass struct {
	phase state.Phase
	epoch int      // of the rules; 0 for a pass that is always possible
	level int      // derive, show
	rules []string // rederive: names; none for all
}

// ErrUnknownPass is returned for a text that names no pass, or a rule that there is not.
var ErrUnknownPass = errors.New("there is no such pass")

func (p pass) String() string {
	text := string(p.phase)
	if p.epoch > 0 {
		text += "/" + strconv.Itoa(p.epoch)
	}
	if p.phase == state.PhaseDerive || p.phase == state.PhaseShow {
		text += "/" + strconv.Itoa(p.level)
	}
	if len(p.rules) > 0 {
		text += "/" + strings.Join(p.rules, ",")
	}
	return text
}

// parsePass reads what String wrote.
func parsePass(text string) (pass, error) {
	head, rest, more := strings.Cut(text, "/")
	p := pass{phase: state.Phase(head)}
	var err error
	switch p.phase {
	case state.PhaseRederive:
		if more {
			p.rules = strings.Split(rest, ",")
		}
	case state.PhaseDerive, state.PhaseShow:
		epoch, level, _ := strings.Cut(rest, "/")
		if p.level, err = strconv.Atoi(level); err == nil {
			p.epoch, err = strconv.Atoi(epoch)
		}
	case state.PhaseClean:
		p.epoch, err = strconv.Atoi(rest)
	case state.PhaseSweep:
		if more {
			p.epoch, err = strconv.Atoi(rest)
		}
	default:
		err = ErrUnknownPass
	}
	if err != nil || p.String() != text {
		return pass{}, fmt.Errorf("pass %q: %w", text, ErrUnknownPass)
	}
	return p, nil
}

// isOver reports whether a pass was of older rules, so that nothing is left of
// it. One of newer rules is not this engine's to work off.
func (e *Engine) isOver(p pass) (bool, error) {
	if p.epoch > e.planner.Epoch {
		return false, registry.ErrEpochMoved
	}
	return p.epoch > 0 && p.epoch < e.planner.Epoch, nil
}

// passOf is the pass of a cursor that was aimed.
func (e *Engine) passOf(c state.Cursor) pass {
	return pass{phase: c.Phase, epoch: e.planner.Epoch, level: c.Level}
}

// Aim says what is left to do to bring the rules into force: the pass to work off
// next, and how many are left with it; 0: nothing.
func (e *Engine) Aim(ctx context.Context) (text string, left int, err error) {
	cursor, left, err := e.aimed(ctx)
	if err != nil || left == 0 {
		return "", 0, err
	}
	return e.passOf(cursor).String(), left, nil
}

// TableOf is the table whose items a pass goes over: the user's, or the state table.
func (e *Engine) TableOf(text string) string {
	if p, err := parsePass(text); err == nil && p.phase == state.PhaseSweep {
		return e.tables.StateTable
	}
	return e.tables.Table
}

// RulesOf names the rules that a pass is for.
func (e *Engine) RulesOf(text string) []string {
	p, err := parsePass(text)
	if err != nil {
		return nil
	}
	return e.namesOf(p)
}

// Work works off some items of a pass, given by key only: of a pass over the state
// table, by pk and sk of its rows. It may be called for any items in any order, by
// any process, and more than once. It returns ErrEpochMoved where newer rules are in force.
func (e *Engine) Work(ctx context.Context, text string, keys []change.Key) error {
	p, err := parsePass(text)
	if err != nil {
		return err
	}
	if over, err := e.isOver(p); err != nil || over {
		return err
	}
	return e.workPass(ctx, p, keys)
}

func (e *Engine) workPass(ctx context.Context, p pass, keys []change.Key) error {
	switch p.phase {
	case state.PhaseDerive:
		return e.rederivePage(ctx, p, keys, e.derives, plan.Sources)
	case state.PhaseShow:
		return e.registry.Under(ctx, func() error { return e.showKeys(ctx, p, keys) })
	case state.PhaseRederive:
		concerns, err := e.concern(p.rules)
		if err != nil {
			return err
		}
		return e.rederivePage(ctx, p, keys, concerns, plan.Itself)
	case state.PhaseClean:
		return e.registry.Under(ctx, func() error { return e.clean(ctx, keys) })
	case state.PhaseSweep:
		return e.registry.Under(ctx, func() error { return e.sweep(ctx, keys) })
	}
	return fmt.Errorf("pass %q: %w", p, ErrUnknownPass)
}

// rederivePage rederives the items of a page that concern a pass, and counts all of them: an item
// that the pass has no need to read is counted by its key.
func (e *Engine) rederivePage(ctx context.Context, p pass, keys []change.Key, concerns func(change.Key) bool, sc plan.Scope) error {
	seen := sightings.Page{Looked: int64(len(keys))}
	var wanted []change.Key
	for _, k := range keys {
		if concerns(k) {
			wanted = append(wanted, k)
		} else {
			e.planner.SeeKey(&seen.Items, k)
		}
	}
	if err := e.rederive(ctx, wanted, sc, nil, &seen); err != nil {
		return err
	}
	e.seen.AddPage(p.String(), seen, len(e.planner.Set.Rules))
	return nil
}

// Complete ends a pass: every item that was in the table when Aim gave it has been
// given to Work, by whomever. It does nothing if another process has ended it already.
func (e *Engine) Complete(ctx context.Context, text string) error {
	p, err := parsePass(text)
	if err != nil || p.epoch == 0 {
		return err
	}
	if over, err := e.isOver(p); err != nil || over {
		return err
	}
	for {
		cursor, left, err := e.aimed(ctx)
		if err != nil || left == 0 || e.passOf(cursor).String() != text {
			return err
		}
		if err := e.endPass(ctx, cursor); !errors.Is(err, errCursorMoved) {
			return err
		}
	}
}

// derives reports whether deriving looks at items with a key.
func (e *Engine) derives(key change.Key) bool {
	return slices.ContainsFunc(e.planner.Set.Entities, func(ent *rules.Entity) bool {
		return (plan.FeedsLedger(ent) || len(ent.Children) > 0) && ent.HasKey(key)
	})
}

// concern is whether rules read or write items with a key; without names, whether any rule may.
func (e *Engine) concern(names []string) (func(change.Key) bool, error) {
	var entities []*rules.Entity
	for _, name := range names {
		i := slices.IndexFunc(e.planner.Set.Rules, func(r *rules.Rule) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("rule %q: %w", name, ErrUnknownPass)
		}
		r := e.planner.Set.Rules[i]
		entities = append(entities, r.Source, r.Target)
	}
	return func(key change.Key) bool {
		return len(names) == 0 || slices.ContainsFunc(entities, func(ent *rules.Entity) bool { return ent.HasKey(key) })
	}, nil
}

// namesOf are the rules that a pass is for.
func (e *Engine) namesOf(p pass) []string {
	if len(p.rules) > 0 {
		return p.rules
	}
	var names []string
	if p.epoch > 0 && (p.phase == state.PhaseClean || p.phase == state.PhaseSweep) {
		for _, b := range e.planner.Formers() {
			if !b.Cleaned.Load() {
				names = append(names, b.Rule.Name)
			}
		}
		return names
	}
	for _, r := range e.planner.Set.Rules {
		c := state.Cursor{Level: p.level, Phase: p.phase}
		switch p.phase {
		case state.PhaseDerive:
			if !c.IsFor(r) || e.planner.Of(r).Live.Load() {
				continue
			}
		case state.PhaseShow:
			if !c.IsFor(r) {
				continue
			}
		}
		names = append(names, r.Name)
	}
	return names
}

// showKeys rolls up what items display.
func (e *Engine) showKeys(ctx context.Context, p pass, keys []change.Key) error {
	c := state.Cursor{Level: p.level, Phase: p.phase}
	wanted := slices.DeleteFunc(slices.Clone(keys), func(k change.Key) bool {
		return !slices.ContainsFunc(e.planner.Set.Entities, func(ent *rules.Entity) bool {
			return slices.ContainsFunc(ent.Displays, c.IsFor) && ent.HasKey(k)
		})
	})
	items, err := e.tables.ReadItems(ctx, "reading items that show counts and sums", wanted)
	if err != nil {
		return err
	}
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
	w := e.newWork(0)
	defer w.release()
	w.rollUp(ctx, pl, nil)
	return w.Err
}
