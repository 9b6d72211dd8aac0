package main

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/replay/verify"
	"github.com/dynamill/dynamill/rules"
	"github.com/dynamill/dynamill/streamreader"
)

// unappliedStream is the table's stream with how far `run` has applied it; nil
// if the table has none. Where there is no lease table, because a function
// follows the stream, nothing of it is known to be applied.
func (env *environment) unappliedStream(ctx context.Context, keys rules.Table, lagMax time.Duration) (*verify.Stream, error) {
	table, err := env.describe(ctx)
	if err != nil {
		return nil, err
	}
	if table.StreamSpecification == nil || !aws.ToBool(table.StreamSpecification.StreamEnabled) || table.LatestStreamArn == nil {
		return nil, nil
	}
	arn := aws.ToString(table.LatestStreamArn)
	return &verify.Stream{
		Client: env.streams, ARN: arn, PartitionKey: keys.PartitionKey, SortKey: keys.SortKey, LagMax: lagMax,
		Checkpoints: func(ctx context.Context) (map[string]verify.Checkpoint, error) {
			leases, err := streamreader.NewLeaseTable(noLeaseTable{env.tables}, env.table+leasesSuffix).Load(ctx)
			if errors.Is(err, errNoLeaseTable) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			return checkpointsOf(leases, arn), nil
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
