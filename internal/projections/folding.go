package projections

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/folding"
	"github.com/dynamill/dynamill/internal/projections/internal/groupaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// What a driver that reads shards, and a count of the table, know of hot rules.
type (
	ShardClaim = folding.Claim
	Generation = folding.Generation
)

// Shard applies the records of one shard, which a worker has claimed. Other drivers skip the records of hot rules.
type Shard struct {
	engine *Engine
	shard  *host.Shard
}

// OpenShard prepares to apply the records of a shard, before the first of them. It returns ErrEpochMoved if newer rules are in force, or
// if records were lost that a rule must have: the engine must be opened again.
func (e *Engine) OpenShard(ctx context.Context, c ShardClaim) (*Shard, error) {
	s, err := e.folding.Open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("opening shard %s: %w", c.Shard, err)
	}
	return &Shard{e, s}, nil
}

// Process is Engine.Process of records of the shard, in their order.
func (s *Shard) Process(ctx context.Context, records []change.Record) (done int, err error) {
	return s.engine.process(ctx, records, s.shard)
}

// recountLost begins a new generation of each rule whose records came too late.
func (e *Engine) recountLost(ctx context.Context, from *host.Shard) error {
	lost := from.TakeLost()
	if len(lost) == 0 {
		return nil
	}
	return e.folding.Recount(ctx, lost)
}

// Folds reports whether a hot rule is in force: a driver must then tell the shard of each record.
func (e *Engine) Folds() bool { return len(e.folding.Rules()) > 0 }

// GenerationOf is the number of the newest generation of a hot rule, counted or not; 0 for any other rule.
func (e *Engine) GenerationOf(rule string) int {
	for _, b := range e.folding.Rules() {
		if b.Rule.Name == rule {
			return int(b.Generation.Load())
		}
	}
	return 0
}

// Recount begins a new count of hot rules, by name. Like registering newer rules, it ends with ErrEpochMoved.
func (e *Engine) Recount(ctx context.Context, names []string) error {
	var rules []*plan.Binding
	for _, name := range names {
		i := slices.IndexFunc(e.folding.Rules(), func(b *plan.Binding) bool { return b.Rule.Name == name })
		if i < 0 {
			return &table.SetupError{Problem: fmt.Sprintf("rule %q does not count by stream position: only rules that do are recounted", name),
				Remedy: "name a rule that counts by stream position, or run `dynamill replay --rule " + name + "`"}
		}
		rules = append(rules, e.folding.Rules()[i])
	}
	return e.registry.Recount(ctx, rules)
}

// Generations are the newest generations of the hot rules, for a count that verifies or repairs them. One that is not
// counted yet is left out.
func (e *Engine) Generations() (all []*Generation) {
	for _, b := range e.folding.Rules() {
		if !seeding.IsUncounted(b) {
			all = append(all, e.generation(b))
		}
	}
	return all
}

func (e *Engine) generation(b *plan.Binding) *Generation {
	compare := func(ctx context.Context, g plan.GroupRef) ([]lanes.WrongDisplay, error) {
		wrong, err := groupaudit.WrongDisplays(ctx, e.host, g)
		if err == nil && slices.ContainsFunc(wrong, func(d lanes.WrongDisplay) bool { return d.StampLater }) {
			err = e.registry.Under(ctx, func() error { return nil }) // the stamp may be of newer rules
		}
		return wrong, err
	}
	return &Generation{Folding: e.folding, Binding: b, Number: b.Generation.Load(), Show: e.showGroups, Now: e.host.Now,
		Compare: compare, TakeOff: e.takeOffStamps, Rederive: e.Rederive, Shown: groupaudit.Shown,
		OperationsShown: groupaudit.OperationsShown, Wanted: groupaudit.Wanted}
}

// takeOffStamps takes stamps off targets that are still as they were read. The next roll-up of their groups writes there.
func (e *Engine) takeOffStamps(ctx context.Context, b *plan.Binding, stamped []lanes.WrongDisplay) error {
	if len(stamped) == 0 {
		return nil
	}
	return e.registry.Under(ctx, func() error {
		for _, d := range stamped {
			w := target.On(b, "taking a stamp off "+d.Item.String()+" that is later than its rows", d.Item)
			w.TakeOff(b.Stamp)
			w.Condition = table.Whole(w.Same(b.Stamp, change.String(d.Stamp)))
			if _, _, err := e.host.Targets.Write(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// showGroups rolls groups up, whatever changed.
func (e *Engine) showGroups(ctx context.Context, groups []plan.GroupRef) error {
	return e.registry.Under(ctx, func() error {
		pl := &plan.Changes{}
		for _, g := range groups {
			pl.Rollups.Put(g, &plan.Rollup{Asked: true})
		}
		return e.apply(ctx, pl, 0, nil).Err
	})
}

// countNoted is how often a count says in the state table how far it is.
const countNoted = 5 * time.Second

// seedCount has each rule of a level counted that waits for it.
func (e *Engine) seedCount(ctx context.Context, cursor *state.Cursor, report func(int64)) error {
	p := e.seeding.PassOf(*cursor)
	if e.count == nil {
		return needsCount(p.RuleNames(e.planner))
	}
	worker := e.background(seeds)
	var noted time.Time
	counted := int64(0) // of the rules before this one
	for _, b := range e.folding.Rules() {
		if !cursor.IsFor(b.Rule) || !seeding.IsUncounted(b) {
			continue
		}
		err := e.count(ctx, worker.generation(b), func(items int64) {
			cursor.Items = counted + items
			report(cursor.Items)
			if now := e.host.Now(); now.Sub(noted) >= countNoted {
				noted = now
				if err := e.seeding.Note(ctx, *cursor); err != nil {
					e.host.Logger.WarnContext(ctx, "cannot write the progress of a count: `status` does not show it", "error", err)
				}
			}
		})
		if err != nil {
			return fmt.Errorf("counting rule %s: %w", b.Rule.Name, err)
		}
		counted = cursor.Items
	}
	return nil
}

// endPass ends the cursor's pass. After a pass that shows generations, it deletes the rows of those before them: a worker that is about
// to show a group by such rows might otherwise read a part of them. What a worker still writes there goes behind the next such pass.
func (e *Engine) endPass(ctx context.Context, cursor state.Cursor) error {
	shown := e.recounted(cursor) // before another count can end
	if err := e.seeding.End(ctx, cursor); err != nil {
		return err
	}
	if len(shown) == 0 {
		return nil
	}
	if err := e.folding.DropOlder(ctx, shown); err != nil {
		return fmt.Errorf("deleting the rows of former generations: %w", err)
	}
	return nil
}

// recounted are the generations that a cursor's pass shows, and that replace others: the first one is that with which a rule is registered.
func (e *Engine) recounted(cursor state.Cursor) (all []*Generation) {
	for _, b := range e.folding.Rules() {
		again := !seeding.IsUncounted(b) && b.Counted.Load() > int64(b.Epoch)
		if cursor.Phase == state.PhaseShow && cursor.IsFor(b.Rule) && again {
			all = append(all, e.generation(b))
		}
	}
	return all
}

// needsCount says that this program cannot bring rules into force.
func needsCount(rules []string) error {
	noun := "rule "
	if len(rules) > 1 {
		noun = "rules "
	}
	return &table.SetupError{
		Problem: noun + strings.Join(rules, ", ") + ": only a process that reads the stream can count by stream position",
		Remedy:  "start `dynamill run`; it counts beside the live traffic",
	}
}
