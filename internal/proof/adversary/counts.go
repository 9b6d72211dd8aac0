package adversary

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// Miscounted is what a count has found of one rule.
type Miscounted struct {
	Rule string
	counting.Result
}

// Recount has an operator ask that rules be counted anew.
func (c *Crew) Recount() {
	c.Counts[Recounted]++
	world := c.World
	w := c.hire(func(ctx context.Context, w *Worker) error {
		set, engine, err := w.attach(ctx, world)
		if engine == nil {
			return err
		}
		names := set.Folded()
		return engine.Recount(ctx, names[:1+w.number%len(names)])
	})
	w.errand = true
}

// attach opens an engine on rules that are in force; nil if they are not, or none of them counts by stream position.
func (w *Worker) attach(ctx context.Context, world World) (*rules.Set, *projections.Engine, error) {
	set, err := w.sets.load(world.RuleFile)
	if err != nil || len(set.Folded()) == 0 {
		return nil, nil, err
	}
	engine, err := projections.OpenAttached(ctx, w.config(world, set))
	if refused := new(projections.SetupError); errors.As(err, &refused) {
		return nil, nil, nil
	}
	return set, engine, err
}

// verifiesCounts has rules counted, as `dynamill verify` does, or `dynamill verify --repair`.
func (w *Worker) verifiesCounts(ctx context.Context, world World, v *verifying) error {
	set, engine, err := w.attach(ctx, world)
	if engine == nil {
		return err
	}
	purpose := counting.Verify
	if v.repairs {
		purpose = counting.Repair
	}
	for _, g := range engine.Generations() {
		found, err := counting.Run(ctx, w.counting(world, set, g, purpose))
		switch missing := new(ddb.ResourceNotFoundException); {
		case errors.Is(err, projections.ErrEpochMoved):
			return nil // rules are counted anew
		case errors.As(err, &missing):
			return nil // no process has followed the stream
		case err != nil:
			return err
		}
		v.Miscounted = append(v.Miscounted, Miscounted{g.Rule(), found})
	}
	return nil
}

// SetBack has a person set the checkpoint of a shard back: to its start, or to a record that was read once. Records of the shard come again
// alone if a child of it was read. alone allows that: after rules were added, a record must come with all that follow it
// (docs/adr/0011-positions-before-epochs.md).
func (c *Crew) SetBack(alone bool) {
	ctx := context.Background()
	out, err := c.Sim.Scan(ctx, &dynamodb.ScanInput{TableName: &c.World.LeaseTable, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return // there is no lease table yet
	}
	var shards, parents []string
	for _, item := range out.Items {
		row := attributes.ItemFromTable(item)
		for _, parent := range row["parentShardId"].List() {
			parents = append(parents, parent.Text())
		}
		if key := row["leaseKey"].Text(); key != c.World.StreamARN && row["checkpoint"].Text() != leases.TrimHorizon {
			shards = append(shards, key)
		}
	}
	if !alone {
		shards = slices.DeleteFunc(shards, func(shard string) bool { return slices.Contains(parents, shard) })
	}
	if len(shards) == 0 {
		return
	}
	slices.Sort(shards)
	shard := shards[c.r.IntN(len(shards))]
	before, places := c.lease(shard)["checkpoint"].Text(), []string{leases.TrimHorizon}
	for _, position := range slices.Sorted(maps.Keys(c.homes)) {
		if c.homes[position] == shard && isBehind(position, before) {
			places = append(places, position)
		}
	}
	to := places[c.r.IntN(len(places))]
	c.Counts[SetBack]++
	c.Log("a person sets the checkpoint of %s back to %s", shard, to)
	c.editLease(ctx, shard, "ADD leaseCounter :one SET checkpoint = :to", change.Item{":to": change.String(to)})
}
