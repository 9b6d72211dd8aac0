package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// The attributes that a write changes: a claim, a renewal, any other write of an owner, a lister's adoption. A claim
// leaves the checkpoint alone, so that one that a person corrected since the last scan stays.
var (
	claimWrites = []string{attrOwner, attrRun, attrTerm, attrCounter, attrSwitches, attrEmptyPolls}
	renewWrites = []string{attrCounter, attrTerm, attrEmptyPolls, attrNewest}
	ownerWrites = []string{attrOwner, attrRun, attrTerm, attrCounter, attrCheckpoint, attrSwitches, attrEmptyPolls, attrNewest, attrChildren,
		attrLabel, attrPartitionKey, attrSortKey}
	evictWrites = []string{attrOwner, attrRun, attrTerm, attrCounter, attrSwitches, attrEmptyPolls}
	adoptWrites = []string{attrStream, attrParent, attrStart, attrWhole, attrOrphan}
)

// Claim makes worker the row's owner.
func (t *Table) Claim(ctx context.Context, lease Lease, worker Worker) (Lease, error) {
	mine := func(row Lease) bool { return worker.mayClaim(row, lease) }
	return t.update(ctx, "claiming", lease, mine, claimWrites, func(row Lease) Lease { return row.claimedBy(worker) })
}

// Renew raises the counter.
func (t *Table) Renew(ctx context.Context, lease Lease) (Lease, error) {
	return t.update(ctx, "renewing", lease, lease.mine, renewWrites, func(row Lease) Lease { return row.renewed(lease) })
}

// Save writes what the owner has to say.
func (t *Table) Save(ctx context.Context, lease Lease) (Lease, error) {
	return t.update(ctx, "checkpointing", lease, lease.mine, ownerWrites, func(row Lease) Lease { return row.saved(lease) })
}

// Release gives the row up.
func (t *Table) Release(ctx context.Context, lease Lease) (Lease, error) {
	return t.update(ctx, "releasing", lease, lease.mine, ownerWrites, func(row Lease) Lease { return row.released(lease) })
}

// Evict releases the row of an owner that is silent.
func (t *Table) Evict(ctx context.Context, lease Lease) (Lease, error) {
	never := func(Lease) bool { return false }
	return t.update(ctx, "evicting", lease, never, evictWrites, Lease.evicted)
}

// EvictOwners clears the owner of each unfinished shard row of a stream, once, even if the owner keeps writing, and returns all
// its shard rows as it left them. An owner cannot save a checkpoint before it has claimed the shard anew. A worker that read
// the row before cannot claim it.
func EvictOwners(ctx context.Context, store Store, streamARN string) ([]Lease, error) {
	rows, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(l Lease) bool { return !l.OfShard() || l.Stream != streamARN })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(CallsMax)
	for i := range rows {
		group.Go(func() error {
			for rows[i].Shard != "" && !rows[i].Finished() { // it has no shard if it was deleted meanwhile
				if rows[i].Owner != "" { // the claim that follows tells of no crash
					rows[i].Switches = max(0, rows[i].Switches-1)
				}
				var err error
				if rows[i], err = store.Evict(ctx, rows[i]); !errors.Is(err, ErrLost) {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return slices.DeleteFunc(rows, func(l Lease) bool { return l.Shard == "" }), err
}

// mine reports whether the row names the process that l names as its owner.
func (l Lease) mine(row Lease) bool {
	return l.Owner != "" && row.Owner == l.Owner && row.Run == l.Run
}

// update writes to the row if no other process has since it was read. An earlier write of this process may have raised
// the counter though its answer was lost: mine tells such a row by its owner.
func (t *Table) update(ctx context.Context, doing string, row Lease, mine func(Lease) bool, writes []string,
	change func(Lease) Lease) (Lease, error) {
	lost, shard := ErrLost, row.Shard
	for range updateAttemptsMax {
		out, err := t.client.UpdateItem(ctx, t.ownerUpdate(row, change(row), writes))
		var conflict *ddb.ConditionalCheckFailedException
		if !errors.As(err, &conflict) {
			if err == nil {
				return leaseFromItem(out.Attributes)
			}
			return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, err)
		}
		if len(conflict.Item) == 0 {
			row = Lease{} // deleted
			break
		}
		now, err := leaseFromItem(conflict.Item)
		if err != nil {
			return row, fmt.Errorf("%s lease %s: %w", doing, shard, err)
		}
		if !mine(now) && !row.holds(now) {
			lost, row = row.lostTo(now), now
			break // another process has it
		}
		row = now
	}
	return row, fmt.Errorf("%s lease %s: %w", doing, shard, lost)
}

// updateAttemptsMax: the second attempt knows the counter that the first one found; a
// third would mean that another process keeps writing.
const updateAttemptsMax = 2

// ownerUpdate makes next of a row, if that is in the state in which it was read. The owner is part of
// that: the counter alone begins anew where the table was deleted and made again.
func (t *Table) ownerUpdate(row, next Lease, writes []string) *dynamodb.UpdateItemInput {
	in := t.updateInput(next, writes, "#leaseCounter = :before AND attribute_not_exists(#leaseOwner)")
	in.ExpressionAttributeNames["#leaseOwner"] = attrOwner
	in.ExpressionAttributeValues[":before"] = number(row.Counter)
	if row.Owner != "" {
		in.ConditionExpression = aws.String("#leaseCounter = :before AND #leaseOwner = :holder")
		in.ExpressionAttributeValues[":holder"] = text(row.Owner)
	}
	return in
}

// updateInput sets the named attributes as next has them, and removes those
// that it has not. In expressions an attribute has a # before its name.
func (t *Table) updateInput(next Lease, writes []string, condition string) *dynamodb.UpdateItemInput {
	names, values := map[string]string{}, map[string]ddb.AttributeValue{}
	var set, remove []string
	item := leaseToItem(next)
	for _, name := range writes {
		names["#"+name] = name
		if av, ok := item[name]; ok {
			values[":"+name] = av
			set = append(set, "#"+name+" = :"+name)
		} else {
			remove = append(remove, "#"+name)
		}
	}
	expression := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		expression += " REMOVE " + strings.Join(remove, ", ")
	}
	return &dynamodb.UpdateItemInput{
		TableName:                           &t.table,
		Key:                                 keyOf(next.Shard),
		UpdateExpression:                    &expression,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        ddb.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Adopt writes what is known of the shard. The counter stays as it is: the row may have an owner.
func (t *Table) Adopt(ctx context.Context, lease Lease) (Lease, error) {
	lease.Unadopted = false
	in := t.updateInput(lease, adoptWrites, "attribute_exists(leaseKey) AND attribute_not_exists(#foundWhole)")
	out, err := t.client.UpdateItem(ctx, in)
	var conflict *ddb.ConditionalCheckFailedException
	switch {
	case errors.As(err, &conflict) && len(conflict.Item) > 0: // another lister was faster
		return leaseFromItem(conflict.Item)
	case errors.As(err, &conflict):
		return lease, fmt.Errorf("adopting lease %s: %w", lease.Shard, ErrLost)
	case err != nil:
		return lease, fmt.Errorf("adopting lease %s: %w", lease.Shard, err)
	}
	return leaseFromItem(out.Attributes)
}

// Announce raises the News of the stream's own row, whatever else it says.
func (t *Table) Announce(ctx context.Context, streamARN string) error {
	_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &t.table,
		Key:                       keyOf(streamARN),
		UpdateExpression:          aws.String("ADD #news :one"),
		ConditionExpression:       aws.String("attribute_exists(#key)"),
		ExpressionAttributeNames:  map[string]string{"#news": attrNews, "#key": attrKey},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": number(1)},
	})
	if _, none := errors.AsType[*ddb.ConditionalCheckFailedException](err); err != nil && !none {
		return fmt.Errorf("announcing news of stream %s: %w", streamARN, err)
	}
	return nil
}
