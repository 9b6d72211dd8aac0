package hot

import (
	"context"
	"errors"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

var _ host.Kind = (*kind)(nil)

// job is what a batch adds to one row.
type job struct {
	group      plan.GroupRef
	generation int64
	lane       string
	first      int // the record that asked first
	entries    []Entry
}

// Apply implements host.Kind: it adds what a batch changes to the rows of the batch's shard, for each generation of a rule, and asks
// for the displays. Records that do not come from a shard that this worker has opened are not added: the reader of their shard adds
// them.
func (k *kind) Apply(ctx context.Context, r *host.Run, pl *plan.Changes) {
	changes := plan.PartOf[Changes](pl)
	k.updateParking(ctx, r, changes)
	if r.Shard == nil {
		return
	}
	var jobs []job
	for g, fold := range changes.Folds.All() {
		for _, lane := range r.Shard.Lanes[g.Binding] {
			if lane.Generation < g.Counted.Load() {
				continue // another one is displayed
			}
			j := job{group: g, generation: lane.Generation, lane: lane.Lane, first: fold.First}
			i := slices.IndexFunc(fold.Entries, func(e Entry) bool { return e.Position > lane.From })
			if i < 0 {
				continue
			}
			j.entries = fold.Entries[i:] // a shard's records come in the order of their positions
			if lane.Generation == g.Generation.Load() && slices.ContainsFunc(j.entries, func(e Entry) bool {
				return r.Shard.IsLate(g.Binding, e.Position, e.Created)
			}) {
				r.Shard.NoteLost(g.Binding, "a record of shard "+r.Shard.ID+" came after a count had read on")
			}
			jobs = append(jobs, j)
		}
	}
	outcomes := r.Tables.Every(ctx, len(jobs), func(ctx context.Context, i int) error { return fold(ctx, r.Host, jobs[i]) })
	for i, err := range outcomes {
		r.Failed(jobs[i].first, err)
		if err == nil { // a worker that crashed may have added them, and shown nothing
			ru := pl.Rollups.OrPut(jobs[i].group, plan.Rollup{First: jobs[i].first})
			ru.First, ru.Asked = min(ru.First, jobs[i].first), true
		}
	}
}

// fold adds the entries of a job that its row does not have yet. DynamoDB decides: the row's answer to a refused update says up to where
// they were added before.
func fold(ctx context.Context, h *host.Host, j job) error {
	doing := "adding to " + j.group.Group
	for entries := j.entries; len(entries) > 0; {
		first, last := entries[0].Position, entries[len(entries)-1].Position
		sum, c := sumOf(entries), table.NewExpression()
		update, condition := state.Fold(c, j.group, sum, first, last)
		var err error
		if !sum.Overflow {
			err = send(ctx, h, doing, j, update, condition, c)
		}
		// If no number holds the sum, the row says so, and so does the display, until rows are counted anew.
		if sum.Overflow || table.Refusal(err) != "" {
			c := table.NewExpression()
			update, condition := state.RefuseFold(c, j.group, first, last)
			err = send(ctx, h, doing, j, update, condition, c)
		}
		refused, lost := errors.AsType[*ddb.ConditionalCheckFailedException](err)
		if !lost {
			return err
		}
		hw := table.TextOf(refused.Item["hw"])
		entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Position <= hw })
	}
	return nil
}

func send(ctx context.Context, h *host.Host, doing string, j job, update, condition string, c *table.Expression) error {
	in := h.Tables.StateUpdate(state.FoldedKey(j.group, j.generation, j.lane), update, condition, c)
	in.ReturnValuesOnConditionCheckFailure = ddb.ReturnValuesOnConditionCheckFailureAllOld
	_, err := h.Tables.UpdateItem(ctx, j.group.ID, doing, in)
	return err
}

func sumOf(entries []Entry) tally.Amount {
	all := make([]tally.Amount, len(entries))
	for i, e := range entries {
		all[i] = e.Difference
	}
	return tally.Sum(all...)
}

// updateParking parks items that rules cannot read, and clears what is parked of those that they can.
func (k *kind) updateParking(ctx context.Context, r *host.Run, changes *Changes) {
	keys := changes.Unread.Keys()
	outcomes := r.Tables.Every(ctx, len(keys), func(ctx context.Context, i int) error {
		id := keys[i]
		return r.ParkUnread(ctx, id, changes.Unread.Of(id).Position, id.Rule.Reads, func(img change.Image) *rules.ItemError {
			return unreadable(r.Planner, id, img)
		})
	})
	for i, err := range outcomes {
		r.Failed(changes.Unread.Of(keys[i]).First, err)
	}
}

// unreadable says why a rule cannot read an item; nil if it can, or has nothing to do with it.
func unreadable(p *plan.Planner, id plan.ItemRule, img change.Image) *rules.ItemError {
	if img == nil {
		return nil
	}
	m, ok := p.Set.Identify(id.Key, img)
	if !ok || m.Entity != id.Rule.Source {
		return nil
	}
	_, why := Of(id.Rule).read(&m, img)
	return why
}
