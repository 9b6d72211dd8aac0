package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// A hot rule has generations (docs/adr/0036-hot-counters-count-by-position.md). Each is named by the rules epoch in which it
// began: a worker of an older epoch does not fold for it, and cannot report records done any more.

// Recount begins a new generation of rules, and always returns an error: ErrEpochMoved if the generation has begun, or newer rules
// have. The engine must be opened again. What targets display stays until the new generation is counted.
func (reg *Registry) Recount(ctx context.Context, rules []*plan.Binding) error {
	next := reg.Planner.Epoch + 1
	if next > stamp.EpochMax {
		return fmt.Errorf("state table %s has rules epoch %d, the highest: no recount can begin; start over (docs/state-table.md)",
			reg.tables.StateTable, reg.Planner.Epoch)
	}
	writes := []ddb.TransactWriteItem{reg.epochWrite(next)}
	for _, b := range rules[:min(len(rules), plan.TransactActionsMax-1)] { // the others are found again
		writes = append(writes, reg.RuleWrite(b.ID, state.GenerationAttribute, table.Number(int64(next))))
	}
	err := reg.tables.Transact(ctx, "beginning a new generation", []string{""}, writes)
	if err != nil && !table.LostRace(err) {
		return err
	}
	return ErrEpochMoved
}

// ReadRule reads what the registry says of a rule now.
func (reg *Registry) ReadRule(ctx context.Context, b *plan.Binding) (state.Rule, error) {
	row, err := reg.tables.GetState(ctx, "reading rule "+b.Rule.Name, state.RuleKey(b.ID))
	return state.ReadRule(row), err
}

// Begin notes that a count has looked at every shard of a stream for a generation: what a shard that is found later holds from its start
// on belongs to the generation. A generation is of one stream: if it has begun on another one, records may be lost that were written
// between the two, and a new generation begins. A count that works for a former state table notes nothing.
func (reg *Registry) Begin(ctx context.Context, b *plan.Binding, generation int64, streamARN string) error {
	c, own := table.NewExpression(), table.NewExpression()
	number, stream := table.Number(generation), table.Text(streamARN)
	set := c.Format("SET %n = %v, %n = %v", state.BegunAttribute, number, state.StreamAttribute, stream)
	is := c.Format("%n = %v AND (attribute_not_exists(%n) OR %n < %v OR %n = %v)", state.GenerationAttribute, number,
		state.BegunAttribute, state.BegunAttribute, number, state.StreamAttribute, stream)
	same := own.Format("%n = %v", "incarnation", table.Text(reg.Planner.Incarnation))
	doing := "noting that a count of " + b.Rule.Name + " has begun"
	return table.Contend(ctx, doing, func() (table.Round, error) {
		err := reg.tables.Transact(ctx, doing, []string{"", ""}, []ddb.TransactWriteItem{
			reg.tables.UpdatePart(state.RuleKey(b.ID), set, is, c), reg.tables.CheckPart(state.TableKey(), same, own),
		})
		switch {
		case table.LostRace(err) && awscall.Passes(err): // no condition failed
			return table.Lost, nil
		case table.LostRace(err):
			return table.Lost, reg.Recount(ctx, []*plan.Binding{b})
		}
		return table.Finished, err
	})
}

// BegunPart is a check, for a transaction, that a generation has begun or that it has not. One that is displayed has, whatever newer
// ones have.
func (reg *Registry) BegunPart(b *plan.Binding, generation int64, begun bool) ddb.TransactWriteItem {
	format := "attribute_exists(pk) AND (attribute_not_exists(%n) OR %n < %v)"
	if begun {
		format = "attribute_exists(%n) AND %n >= %v"
	}
	c := table.NewExpression()
	condition := c.Format(format, state.BegunAttribute, state.BegunAttribute, table.Number(generation))
	return reg.tables.CheckPart(state.RuleKey(b.ID), condition, c)
}

// Announce has every engine read the registry again with its next batch, and work this batch off again.
func (reg *Registry) Announce(ctx context.Context) error {
	c := table.NewExpression()
	raise := c.Format("ADD %n %v", "live", table.Number(1))
	done, err := reg.tables.UpdateState(ctx, "", "announcing a change of the registry", state.TableKey(), raise, reg.RulesStand(c), c)
	if err == nil && !done {
		return ErrEpochMoved
	}
	return err
}

// readCountExtents reads how far the counts of a rule's newest generation have read, if the rule is hot.
func (reg *Registry) readCountExtents(ctx context.Context, b *plan.Binding) error {
	if !b.Rule.Folds() {
		return nil
	}
	found, rows := map[string]*lanes.CountExtent{}, state.CountExtentsOf(b, b.Generation.Load())
	err := reg.tables.EachRow(ctx, "reading how far counts have read", rows, func(r table.Row) { state.ReadCountExtent(found, r) })
	if err != nil {
		return err
	}
	extents := make([]lanes.CountExtent, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		extents = append(extents, *found[id])
	}
	b.CountExtents.Store(&extents)
	return nil
}
