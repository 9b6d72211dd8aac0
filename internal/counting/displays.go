package counting

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// display is a target that seems wrong to a Verify.
type display struct {
	group string
	lanes.WrongDisplay
}

// lookAtDisplays compares targets once more. One that a worker writes meanwhile is not wrong: it lags. One that no worker has
// written, although all of them are done with every record that the count has read, is.
func (c *count) lookAtDisplays(ctx context.Context, suspects []display) error {
	read := c.reader.positions()
	for looks := 2; len(suspects) > 0 && looks <= looksMax; looks++ {
		if pace.Sleep(ctx, c.Margin) != nil {
			return context.Cause(ctx)
		}
		passed, err := c.workersReached(ctx, read)
		if err != nil {
			return err
		}
		var left []display
		for _, before := range suspects {
			wrong, err := c.Generation.WrongDisplays(ctx, before.group)
			if err != nil {
				return fmt.Errorf("comparing the displays of %s: %w", before.group, err)
			}
			i := slices.IndexFunc(wrong, func(d lanes.WrongDisplay) bool { return d.Item == before.Item && d.Stamp == before.Stamp })
			switch {
			case i < 0:
			case wrong[i].Parked:
				c.result.Parked++
			case wrong[i].StampLater: // no roll-up writes over it
				c.addFinding(Finding{Group: before.group, Display: &wrong[i]})
			case wrong[i].PutOff.After(time.Now()): // it lags, as its rule says
			case !wrong[i].PutOff.IsZero():
				left = append(left, display{before.group, wrong[i]})
			case passed:
				c.addFinding(Finding{Group: before.group, Display: &wrong[i]})
			default:
				left = append(left, before)
			}
		}
		suspects = left
	}
	if len(suspects) > 0 && !suspects[0].PutOff.IsZero() {
		c.result.Undecided = "the roll-up of " + suspects[0].group + " was put off, is due, and no process has done it"
	} else if len(suspects) > 0 {
		c.result.Undecided = "what " + suspects[0].Item.String() + " shows may still change: records of the stream are not applied yet"
	}
	return nil
}

// workersReached reports whether workers are done with all records up to some positions, by shard.
func (c *count) workersReached(ctx context.Context, read map[string]string) (bool, error) {
	rows, err := awscall.Persist(ctx, retryTime, func() ([]leases.Lease, error) { return c.Leases.Load(ctx) })
	if err != nil {
		return false, fmt.Errorf("reading the leases: %w", err)
	}
	upTo := map[string]string{}
	for _, l := range rows {
		if l.Stream == c.StreamARN && l.OfShard() {
			upTo[l.Shard] = doneUpTo(l)
		}
	}
	for shard, position := range read {
		if c.reader.shards[shard].holds(position) && upTo[shard] < position {
			return false, nil
		}
	}
	return true, nil
}
