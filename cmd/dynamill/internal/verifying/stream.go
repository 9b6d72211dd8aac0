package verifying

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/replay/verify"
	"github.com/dynamill/dynamill/rules"
	"github.com/dynamill/dynamill/streamreader"
)

// unappliedStream is the table's stream with how far `run` has applied it; nil
// if the table has none. Where there is no lease table, because a function
// follows the stream, nothing of it is known to be applied. The watch is shown
// the leases at each reading.
func unappliedStream(ctx context.Context, env *environment.Environment, keys rules.Table, lagMax time.Duration, watch *followed.Watch) (*verify.Stream, error) {
	table, err := env.Describe(ctx)
	if err != nil {
		return nil, err
	}
	arn := following.EnabledStream(table)
	if arn == "" {
		return nil, nil
	}
	return &verify.Stream{
		Client: env.Streams, ARN: arn, PartitionKey: keys.PartitionKey, SortKey: keys.SortKey, LagMax: lagMax,
		Checkpoints: func(ctx context.Context) (map[string]verify.Checkpoint, error) {
			leases, err := env.ReadLeases(ctx)
			if err != nil || !leases.Exists {
				return nil, err
			}
			watch.Observe(leases.Rows, arn, time.Now())
			return checkpointsOf(leases.Rows, arn), nil
		},
	}, nil
}

// checkpointsOf are the checkpoints of one stream's shards.
func checkpointsOf(leases []streamreader.Lease, stream string) map[string]verify.Checkpoint {
	found := map[string]verify.Checkpoint{}
	for _, l := range leases {
		if l.OfStream() || l.Stream != stream {
			continue
		}
		c := verify.Checkpoint{After: l.Checkpoint, Done: l.Finished()}
		if l.Checkpoint == streamreader.TrimHorizon {
			c.After = ""
		}
		found[l.Shard] = c
	}
	return found
}
