package adversary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// cameFrom notes the shard that records came from.
func (c *Crew) cameFrom(iterator string, out *dynamodbstreams.GetRecordsOutput) {
	shard := c.shards[iterator]
	if out.NextShardIterator != nil {
		c.shards[*out.NextShardIterator] = shard
	}
	for _, rec := range out.Records {
		c.homes[*rec.Dynamodb.SequenceNumber] = shard
	}
}

// judgeReading makes sure that no worker begins a batch of a shard that is
// another's. It holds for workers that share the stream, while the rows are
// those that they knew: deleted rows announce themselves to no worker. A worker that
// sleeps over the end of its lease is not at work.
func (c *Crew) judgeReading(call *Call, records []change.Record) {
	if c.World.LeasesTaken || c.leasesLost || call.adrift || len(records) == 0 {
		return
	}
	w, shard := call.Worker, c.homes[records[0].Position.SequenceNumber()]
	row := c.lease(shard)
	owner := row["leaseOwner"].Text()
	if owner != "" && owner != w.name && !c.evicted[eviction{shard, w.name}] {
		c.strange = append(c.strange, fmt.Errorf("%s, as %s, works on shard %s, which is %s's", w, w.name, shard, owner))
	}
}

// takeLeases has an operator clear the leases of a worker that crashes or sleeps, so
// that other workers take them at once. A sleeper notices at its next write to a row.
// If NoneStops, all workers' leases are taken when one starts. Otherwise the list of
// the shards stays with a sleeper: a row is made only by a worker that no other one can replace.
func (c *Crew) takeLeases(w *Worker) {
	if !c.World.LeasesTaken || w == nil && !c.World.NoneStops {
		return
	}
	ctx := context.Background()
	out, err := c.Sim.Scan(ctx, &dynamodb.ScanInput{TableName: &c.World.LeaseTable, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return // there is no lease table yet
	}
	for _, item := range out.Items {
		row := attributes.ItemFromTable(item)
		key, owner := row["leaseKey"].Text(), row["leaseOwner"].Text()
		if owner == "" || w != nil && owner != w.name || key == c.World.StreamARN && !c.World.NoneStops && !w.dead {
			continue
		}
		c.editLease(ctx, key, "ADD leaseCounter :one REMOVE leaseOwner, ownerRun, leaseTerm, emptyPolls", nil)
	}
	c.editLease(ctx, c.World.StreamARN, "ADD news :one", nil)
}

// editLease updates a row, in which :one is 1.
func (c *Crew) editLease(ctx context.Context, key, expression string, values change.Item) {
	given := itemKey{":one": &ddb.AttributeValueMemberN{Value: "1"}}
	for name, v := range values {
		given[name] = attributes.ToTable(v)
	}
	_, err := c.Sim.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &c.World.LeaseTable, Key: itemKey{"leaseKey": &ddb.AttributeValueMemberS{Value: key}},
		UpdateExpression: &expression, ConditionExpression: aws.String("attribute_exists(leaseKey)"),
		ExpressionAttributeValues: given,
	})
	var missing *ddb.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &missing) {
		c.strange = append(c.strange, fmt.Errorf("editing the lease %s: %w", key, err))
	}
}

// LeasesLost says that the lease table was deleted while workers were at work.
func (c *Crew) LeasesLost() { c.leasesLost = true }

// eviction is a shard that a count took from a worker.
type eviction struct{ shard, worker string }

// judgeLease makes sure that a checkpoint never goes back. It notes whom a count takes a shard from: that worker learns it with its next
// write to the row.
func (c *Crew) judgeLease(call *Call, was, is change.Item) {
	if was == nil || is == nil {
		return
	}
	shard, owner := was["leaseKey"].Text(), was["leaseOwner"].Text()
	switch {
	case is["leaseOwner"].Text() == call.Worker.name:
		delete(c.evicted, eviction{shard, call.Worker.name})
	case is["leaseOwner"].Text() == "" && owner != "" && !strings.Contains(call.String(), "checkpoint = "): // its owner saves one
		c.evicted[eviction{shard, owner}] = true
	}
	if before, after := was["checkpoint"].Text(), is["checkpoint"].Text(); isBehind(after, before) {
		c.strange = append(c.strange, fmt.Errorf("%s takes the checkpoint of %s back from %s to %s", call.Worker, was["leaseKey"].Text(), before,
			after))
	}
}

// isBehind reports whether a checkpoint comes before another of the same row.
func isBehind(a, b string) bool {
	rank := func(checkpoint string) int {
		switch checkpoint {
		case leases.TrimHorizon:
			return 0
		case leases.ShardEnd, leases.Latest:
			return 2
		}
		return 1
	}
	if rank(a) != rank(b) || rank(a) != 1 {
		return rank(a) < rank(b)
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) < 0 // integers
}

// leaseWritten is the key of the lease that a request changes; "" if it changes none.
func (c *Crew) leaseWritten(input any) string {
	if in, ok := input.(*dynamodb.UpdateItemInput); ok && aws.ToString(in.TableName) == c.World.LeaseTable {
		return attributes.FromTable(in.Key["leaseKey"]).Text()
	}
	return ""
}

// lease is a row of the lease table; nil if there is none.
func (c *Crew) lease(key string) change.Item {
	if key == "" {
		return nil
	}
	out, err := c.Sim.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: &c.World.LeaseTable, Key: itemKey{"leaseKey": &ddb.AttributeValueMemberS{Value: key}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil || len(out.Item) == 0 {
		return nil
	}
	return attributes.ItemFromTable(out.Item)
}
