// Package folding keeps the lanes and generations of hot rules (docs/adr/0036-hot-counters-count-by-position.md): to
// which rows a worker adds the records of a shard, and what a count of the table reads and writes. It knows no kind.
package folding

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Folding is one engine's part in generations.
type Folding struct {
	Tables   *table.Tables
	Planner  *plan.Planner
	Registry *registry.Registry
}

// Rules are the hot rules in force.
func (f *Folding) Rules() (all []*plan.Binding) {
	for _, b := range f.Planner.InForce {
		if b.Rule.Folds() {
			all = append(all, b)
		}
	}
	return all
}

// Claim is a shard that a worker has claimed and not read from yet.
type Claim struct {
	Stream     string // its ARN
	Shard      string
	Parent     string // "" if the shard has none any more
	Orphan     bool   // the stream had dropped the parent when the shard was first listed
	Checkpoint string // sequence number of the last record done; "" if none is
	// Trimmed returns the sequence number up to which the stream has dropped records behind the checkpoint; "" if it holds all of them.
	Trimmed func(ctx context.Context) (upTo string, err error)
}

// Open returns the lanes of a shard for each generation that is displayed, or is to be. It makes the rows that are missing. If the
// stream has dropped records of a generation, or may have, or is another one than that of the generation, a new one begins, and it
// returns registry.ErrEpochMoved.
func (f *Folding) Open(ctx context.Context, c Claim) (*host.Shard, error) {
	s := &host.Shard{ID: c.Shard, Lanes: map[*plan.Binding][]host.Lane{}}
	folding := f.Rules()
	if len(folding) == 0 {
		return s, nil
	}
	upTo, err := c.Trimmed(ctx)
	if err != nil {
		return nil, err
	}
	start := lanes.Start{Shard: c.Shard, Parent: c.Parent, From: max(lanes.Pad(c.Checkpoint), lanes.Pad(upTo))}
	lost := map[*plan.Binding]string{} // why
	for _, b := range folding {
		newest, counted := b.Generation.Load(), b.Counted.Load()
		for _, generation := range []int64{counted, newest} {
			if generation == 0 || generation == newest && len(s.Lanes[b]) > 0 && s.Lanes[b][0].Generation == newest {
				continue
			}
			behind, err := f.isBehindGone(ctx, b, generation, c)
			if err != nil {
				return nil, err
			}
			if generation == newest && behind { // no row is made, so that this stays to be seen after a crash
				lost[b] = "no row tells whether the records of its dropped parent shard were applied"
				break
			}
			lane, err := f.Lane(ctx, b, generation, start)
			if err != nil {
				return nil, err
			}
			s.Lanes[b] = append(s.Lanes[b], host.Lane{Generation: generation, Shard: lane})
			dropped := lanes.Pad(upTo) > lane.From
			replaced := b.Stream != "" && b.Stream != c.Stream
			switch {
			case generation != newest:
			case dropped:
				lost[b] = "the stream has dropped records of shard " + c.Shard
			case replaced:
				lost[b] = "the table has a new stream"
			}
		}
	}
	if len(lost) > 0 {
		return nil, f.Recount(ctx, lost)
	}
	return s, nil
}

// Recount begins a new generation of each rule that lost records, and logs why. Like registry.Recount it always returns an error.
func (f *Folding) Recount(ctx context.Context, lost map[*plan.Binding]string) error {
	var rules []*plan.Binding
	for _, b := range f.Rules() {
		if reason, ok := lost[b]; ok {
			f.Tables.Logger.WarnContext(ctx, "recounting a rule", "rule", b.Rule.Name, "reason", reason)
			rules = append(rules, b)
		}
	}
	return f.Registry.Recount(ctx, rules)
}

// isBehindGone reports whether a generation that has begun does not know a shard, of which no record is done, behind one that the stream
// has dropped: whether that one's records were applied, no row tells.
func (f *Folding) isBehindGone(ctx context.Context, b *plan.Binding, generation int64, c Claim) (bool, error) {
	if !c.Orphan || c.Checkpoint != "" {
		return false, nil
	}
	lane, rule := state.LaneKey(b, generation, c.Shard), state.RuleKey(b.ID)
	rows, err := f.Tables.ReadState(ctx, "reading the lane of shard "+c.Shard, []table.Key{lane, rule})
	_, there := state.ReadLane(rows[lane])
	return !there && int64(state.ReadRule(rows[rule]).Begun) >= generation, err
}

// Lane returns the row of a shard in a generation, and makes it if there is none. Once the generation has begun, all that the shard
// holds is the generation's; before, what follows start.From.
func (f *Folding) Lane(ctx context.Context, b *plan.Binding, generation int64, start lanes.Start) (found lanes.Shard, err error) {
	key := state.LaneKey(b, generation, start.Shard)
	return found, table.Contend(ctx, "opening shard "+start.Shard, func() (table.Round, error) {
		keys := []table.Key{key, state.RuleKey(b.ID)}
		if start.Parent != "" {
			keys = append(keys, state.LaneKey(b, generation, start.Parent))
		}
		rows, err := f.Tables.ReadState(ctx, "reading the lane of shard "+start.Shard, keys)
		if err != nil {
			return table.Lost, err
		}
		if there, ok := state.ReadLane(rows[key]); ok {
			found = there
			return table.Finished, nil
		}
		found = lanes.Shard{Shard: start.Shard, Lane: start.Shard, From: start.From}
		begun := int64(state.ReadRule(rows[state.RuleKey(b.ID)]).Begun) >= generation
		if begun {
			found.From = ""
		}
		if start.Parent != "" {
			inherits, lost, err := f.inherit(ctx, b, rows[keys[2]], start)
			if err != nil || lost {
				return table.Lost, err
			}
			if inherits != "" {
				found.Lane = inherits
			}
		}
		err = f.Tables.Transact(ctx, "opening shard "+start.Shard, []string{b.ID, b.ID}, []ddb.TransactWriteItem{
			f.Tables.PutPart(state.LaneRow(b, generation, found), "attribute_not_exists(pk)", table.NewExpression()),
			f.Registry.BegunPart(b, generation, begun),
		})
		if table.LostRace(err) {
			return table.Lost, nil
		}
		return table.Finished, err
	})
}

// inherit returns the lane of a shard's parent if the shard goes on with it: one child does, the first that asks. It reports lost if
// the row has changed since it was read.
func (f *Folding) inherit(ctx context.Context, b *plan.Binding, parent table.Row, start lanes.Start) (lane string, lost bool, err error) {
	p, ok := state.ReadLane(parent)
	switch {
	case !ok, state.Heir(parent) != "" && state.Heir(parent) != start.Shard:
		return "", false, nil
	case state.Heir(parent) == start.Shard:
		return p.Lane, false, nil
	}
	c := table.NewExpression()
	update, condition := state.Inherit(c, start.Shard)
	done, err := f.Tables.UpdateState(ctx, b.ID, "handing on the lane of shard "+start.Parent, table.KeyOf(parent), update, condition, c)
	return p.Lane, !done, err
}
