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
)

// The attributes that each write changes.
var (
	claimWrites   = []string{attrOwner, attrRun, attrTerm, attrCheckpointOwner, attrCounter, attrSwitches, attrEmptyPolls}
	renewWrites   = []string{attrCounter, attrTerm, attrEmptyPolls, attrNewest}
	saveWrites    = append(slices.Clone(renewWrites), attrCheckpoint, attrSwitches, attrChildren, attrLabel, attrPartitionKey, attrSortKey)
	releaseWrites = append(slices.Clone(saveWrites), attrOwner, attrRun, attrCheckpointOwner)
	requestWrites = []string{attrOwner, attrCheckpointOwner}
	adoptWrites   = []string{attrStream, attrParent, attrStart, attrWhole, attrOrphan}
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
	return t.update(ctx, "checkpointing", lease, lease.mine, saveWrites, func(row Lease) Lease { return row.saved(lease) })
}

// Release gives the row up.
func (t *Table) Release(ctx context.Context, lease Lease) (Lease, error) {
	return t.update(ctx, "releasing", lease, lease.mine, releaseWrites, func(row Lease) Lease { return row.released(lease) })
}

// Evict releases the row of an owner that is silent.
func (t *Table) Evict(ctx context.Context, lease Lease) (Lease, error) {
	nobody := func(Lease) bool { return false }
	return t.update(ctx, "releasing for its owner", lease, nobody, releaseWrites, Lease.evicted)
}

// mine reports whether the row names the process that l names as its owner.
func (l Lease) mine(row Lease) bool {
	return l.Owner != "" && row.Owner == l.Owner && row.Run == l.Run
}

// update writes to the row if no other process has since it was read. A write of
// this worker whose answer was lost may have raised the counter: the owner
// tells, for each shard has one goroutine here: mine says whether it is this
// process. A request that came between changes neither.
func (t *Table) update(ctx context.Context, doing string, row Lease, mine func(Lease) bool, writes []string, change func(Lease) Lease) (Lease, error) {
	lost := ErrLost
	for range updateAttemptsMax {
		out, err := t.client.UpdateItem(ctx, t.updateInput(row, change(row), writes, ownerCondition(writes, row)))
		var conflict *ddb.ConditionalCheckFailedException
		if !errors.As(err, &conflict) {
			if err == nil {
				return leaseFromItem(out.Attributes)
			}
			return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, err)
		}
		now, err := leaseFromItem(conflict.Item)
		if err != nil {
			break // deleted
		}
		if !mine(now) && !row.holds(now) {
			lost, row = row.lostTo(now), now
			break // another process has it
		}
		row = now
	}
	return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, lost)
}

// updateAttemptsMax: the second attempt knows the counter that the first one
// found, a third the request that has come since; a fourth would mean that
// another process keeps writing.
const updateAttemptsMax = 3

// ownerCondition says in which state the row must be. A write of the owner's
// attributes must know both as they are; else one of them must name the owner.
// The counter alone begins anew where the table was deleted and made again.
func ownerCondition(writes []string, row Lease) string {
	const counter = "#counter = :counter AND "
	switch {
	case row.Owner == "":
		return counter + "attribute_not_exists(#owner)"
	case !slices.Contains(writes, attrOwner):
		return counter + "(#current = :held OR attribute_not_exists(#current) AND #owner = :held)"
	case row.Next == "":
		return counter + "attribute_not_exists(#current) AND #owner = :held"
	}
	return counter + "#current = :held AND #owner = :asked"
}

// updateInput sets the named attributes as next has them, and removes those
// that it has not.
func (t *Table) updateInput(row, next Lease, writes []string, condition string) *dynamodb.UpdateItemInput {
	names, values := map[string]string{}, map[string]ddb.AttributeValue{}
	var set, remove []string
	item := leaseToItem(next)
	for i, name := range writes {
		place := fmt.Sprintf("#w%d", i)
		names[place] = name
		if av, ok := item[name]; ok {
			value := fmt.Sprintf(":w%d", i)
			values[value] = av
			set = append(set, place+" = "+value)
		} else {
			remove = append(remove, place)
		}
	}
	expression := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		expression += " REMOVE " + strings.Join(remove, ", ")
	}
	for place, name := range map[string]string{"#counter": attrCounter, "#owner": attrOwner, "#current": attrCheckpointOwner} {
		if strings.Contains(condition, place) {
			names[place] = name
		}
	}
	for place, value := range map[string]ddb.AttributeValue{":counter": number(row.Counter), ":held": text(row.Owner), ":asked": text(row.Next)} {
		if strings.Contains(condition, place) {
			values[place] = value
		}
	}
	return &dynamodb.UpdateItemInput{
		TableName:                           &t.table,
		Key:                                 keyOf(row.Shard),
		UpdateExpression:                    &expression,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        ddb.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Request names the next owner. The counter stays as it is: only what the
// owner itself writes may make it look alive.
func (t *Table) Request(ctx context.Context, lease Lease, worker string) (Lease, error) {
	if lease.Owner == "" {
		return lease, fmt.Errorf("asking for lease %s, which nobody has: %w", lease.Shard, ErrLost)
	}
	lease.Next = ""
	next := lease
	next.Next = worker
	return t.rename(ctx, "asking for", lease, next)
}

// Withdraw takes a request back.
func (t *Table) Withdraw(ctx context.Context, lease Lease, worker Worker) error {
	lease.Next = worker.Name
	next := lease
	next.Next = ""
	now, err := t.rename(ctx, "withdrawing from", lease, next)
	if errors.Is(err, ErrLost) && worker.has(now) {
		_, err = t.Release(ctx, now)
	}
	return err
}

// rename writes the owner and the next owner, whatever the counter.
func (t *Table) rename(ctx context.Context, doing string, row, next Lease) (Lease, error) {
	condition, _ := strings.CutPrefix(ownerCondition(requestWrites, row), "#counter = :counter AND ")
	out, err := t.client.UpdateItem(ctx, t.updateInput(row, next, requestWrites, condition))
	var conflict *ddb.ConditionalCheckFailedException
	switch {
	case errors.As(err, &conflict):
		if now, broken := leaseFromItem(conflict.Item); broken == nil {
			row = now
		}
		return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, ErrLost)
	case err != nil:
		return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, err)
	}
	return leaseFromItem(out.Attributes)
}

// Adopt writes what is known of the shard. The counter stays as it is: the row may have an owner.
func (t *Table) Adopt(ctx context.Context, lease Lease) (Lease, error) {
	in := t.updateInput(lease, lease.adopted(lease), adoptWrites, "attribute_exists(#key) AND attribute_not_exists(#whole)")
	in.ExpressionAttributeNames["#key"], in.ExpressionAttributeNames["#whole"] = attrKey, attrWhole
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
func (t *Table) Announce(ctx context.Context, streamARN string, lost Loss) error {
	in := &dynamodb.UpdateItemInput{
		TableName:                 &t.table,
		Key:                       keyOf(streamARN),
		UpdateExpression:          aws.String("ADD #news :one"),
		ConditionExpression:       aws.String("attribute_exists(#key)"),
		ExpressionAttributeNames:  map[string]string{"#news": attrNews, "#key": attrKey},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": number(1)},
	}
	if lost.Shard != "" {
		*in.UpdateExpression += " SET #lostNews = if_not_exists(#news, :zero) + :one, #lostShard = :shard, #lostBehind = :behind"
		for place, name := range map[string]string{"#lostNews": attrLostNews, "#lostShard": attrLostShard, "#lostBehind": attrLostBehind} {
			in.ExpressionAttributeNames[place] = name
		}
		for place, value := range map[string]ddb.AttributeValue{":zero": number(0), ":shard": text(lost.Shard), ":behind": text(lost.Checkpoint)} {
			in.ExpressionAttributeValues[place] = value
		}
	}
	_, err := t.client.UpdateItem(ctx, in)
	var none *ddb.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &none) {
		return fmt.Errorf("announcing news of stream %s: %w", streamARN, err)
	}
	return nil
}
