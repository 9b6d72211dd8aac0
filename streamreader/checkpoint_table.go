package streamreader

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// LeaseClient is what the lease table needs of *dynamodb.Client.
type LeaseClient interface {
	CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

var _ LeaseClient = (*dynamodb.Client)(nil)

// The attributes of a lease row. All but the last two are the Kinesis Client
// Library's (version 1); streamName holds the stream's ARN.
const (
	attrKey        = "leaseKey"
	attrOwner      = "leaseOwner"
	attrCounter    = "leaseCounter"
	attrCheckpoint = "checkpoint"
	attrSwitches   = "ownerSwitchesSinceCheckpoint"
	attrParent     = "parentShardId"
	attrChildren   = "childShardIds"
	attrStream     = "streamName"
	attrWhole      = "foundWhole"
)

// tableCreateMax bounds the wait for a new lease table to become usable.
const tableCreateMax = 2 * time.Minute

// LeaseTable keeps the leases in a DynamoDB table, one row a shard. Every write
// to a row raises its counter and is conditional on it.
type LeaseTable struct {
	client LeaseClient
	table  string
	owner  string // differs in every process
}

var _ Checkpoints = (*LeaseTable)(nil)

// NewLeaseTable returns the leases in the table of that name, by default the
// user's table's name with "-dynamill-leases" behind it. Load creates the
// table, on demand, if it does not exist.
func NewLeaseTable(client LeaseClient, tableName string) *LeaseTable {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // the random part alone tells owners apart
	}
	return &LeaseTable{client: client, table: tableName, owner: host + ":" + rand.Text()}
}

// Load reads every row, consistently. It creates the table if it is missing.
func (t *LeaseTable) Load(ctx context.Context) ([]Lease, error) {
	leases, err := t.scan(ctx)
	var missing *ddb.ResourceNotFoundException
	if !errors.As(err, &missing) {
		return leases, err
	}
	if err := t.create(ctx); err != nil {
		return nil, fmt.Errorf("creating lease table %s: %w", t.table, err)
	}
	return t.scan(ctx)
}

func (t *LeaseTable) scan(ctx context.Context) ([]Lease, error) {
	var leases []Lease
	in := &dynamodb.ScanInput{TableName: &t.table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := t.client.Scan(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("reading lease table %s: %w", t.table, err)
		}
		for _, item := range out.Items {
			lease, err := leaseFromItem(item)
			if err != nil {
				return nil, fmt.Errorf("reading lease table %s: %w", t.table, err)
			}
			leases = append(leases, lease)
		}
		if len(out.LastEvaluatedKey) == 0 {
			return leases, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func (t *LeaseTable) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tableCreateMax)
	defer cancel()
	_, err := t.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &t.table,
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String(attrKey), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String(attrKey), KeyType: ddb.KeyTypeHash}},
	})
	var exists *ddb.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	b := newBackoff()
	for {
		out, err := t.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.table})
		var notYet *ddb.ResourceNotFoundException
		switch {
		case err != nil && !errors.As(err, &notYet): // a new table may not be visible at once
			return err
		case err == nil && out.Table != nil && out.Table.TableStatus == ddb.TableStatusActive:
			return nil
		}
		if err := sleep(ctx, b.NextBackOff()); err != nil {
			return err
		}
	}
}

// Create adds a row if the shard has none.
func (t *LeaseTable) Create(ctx context.Context, lease Lease) (Lease, error) {
	_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &t.table,
		Item:                                leaseToItem(lease),
		ConditionExpression:                 aws.String("attribute_not_exists(#key)"),
		ExpressionAttributeNames:            map[string]string{"#key": attrKey},
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var exists *ddb.ConditionalCheckFailedException
	switch {
	case errors.As(err, &exists) && len(exists.Item) > 0:
		return leaseFromItem(exists.Item)
	case err != nil:
		return lease, fmt.Errorf("creating lease %s: %w", lease.Shard, err)
	}
	return lease, nil
}

// Claim makes this process the row's owner.
func (t *LeaseTable) Claim(ctx context.Context, lease Lease) (Lease, error) {
	next := lease
	if next.Owner != t.owner {
		next.Owner = t.owner
		next.Switches++
	}
	return t.update(ctx, lease, next, "claiming")
}

// Save writes the lease's Checkpoint and Children.
func (t *LeaseTable) Save(ctx context.Context, lease Lease) (Lease, error) {
	next := lease
	next.Switches = 0
	return t.update(ctx, lease, next, "checkpointing")
}

// update writes next over held if nobody else has written since. A write of
// this process whose answer was lost may have raised the counter: the owner
// tells, for it is this process's alone and each shard has one goroutine here.
func (t *LeaseTable) update(ctx context.Context, held, next Lease, doing string) (Lease, error) {
	for range updateAttemptsMax {
		next.Counter = held.Counter + 1
		_, err := t.client.UpdateItem(ctx, t.updateInput(held, next))
		var conflict *ddb.ConditionalCheckFailedException
		if !errors.As(err, &conflict) {
			if err != nil {
				return held, fmt.Errorf("%s lease %s: %w", doing, held.Shard, err)
			}
			return next, nil
		}
		now, err := leaseFromItem(conflict.Item)
		if err != nil || now.Owner != t.owner {
			break // somebody else's, or deleted
		}
		held.Counter, held.Owner = now.Counter, now.Owner
	}
	return held, fmt.Errorf("%s lease %s: %w", doing, held.Shard, ErrLeaseLost)
}

// updateAttemptsMax: the second attempt knows the counter that the first one
// found; a third would mean that somebody keeps raising it.
const updateAttemptsMax = 2

func (t *LeaseTable) updateInput(held, next Lease) *dynamodb.UpdateItemInput {
	set := "SET #owner = :owner, #counter = :next, #checkpoint = :checkpoint, #switches = :switches"
	names := map[string]string{"#owner": attrOwner, "#counter": attrCounter, "#checkpoint": attrCheckpoint, "#switches": attrSwitches}
	values := map[string]ddb.AttributeValue{
		":owner":      text(next.Owner),
		":counter":    number(held.Counter),
		":next":       number(next.Counter),
		":checkpoint": text(next.Checkpoint),
		":switches":   number(next.Switches),
	}
	if len(next.Children) > 0 {
		set += ", #children = :children"
		names["#children"] = attrChildren
		values[":children"] = &ddb.AttributeValueMemberSS{Value: next.Children}
	}
	// The counter alone begins anew where the table was deleted and made again.
	condition := "#counter = :counter AND attribute_not_exists(#owner)"
	if held.Owner != "" {
		condition = "#counter = :counter AND #owner = :held"
		values[":held"] = text(held.Owner)
	}
	return &dynamodb.UpdateItemInput{
		TableName:                           &t.table,
		Key:                                 map[string]ddb.AttributeValue{attrKey: text(held.Shard)},
		UpdateExpression:                    &set,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Delete removes one row.
func (t *LeaseTable) Delete(ctx context.Context, lease Lease) error {
	_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &t.table,
		Key:                       map[string]ddb.AttributeValue{attrKey: text(lease.Shard)},
		ConditionExpression:       aws.String("#counter = :counter"),
		ExpressionAttributeNames:  map[string]string{"#counter": attrCounter},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":counter": number(lease.Counter)},
	})
	var conflict *ddb.ConditionalCheckFailedException
	if errors.As(err, &conflict) {
		err = ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("deleting lease %s: %w", lease.Shard, err)
	}
	return nil
}

// Forget deletes every row of a stream.
func (t *LeaseTable) Forget(ctx context.Context, streamARN string) error {
	leases, err := t.Load(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if l.Stream != streamARN {
			continue
		}
		_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &t.table,
			Key:       map[string]ddb.AttributeValue{attrKey: text(l.Shard)},
		})
		if err != nil {
			return fmt.Errorf("forgetting lease %s: %w", l.Shard, err)
		}
	}
	return nil
}

func text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }
func number(n int64) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func leaseToItem(l Lease) map[string]ddb.AttributeValue {
	item := map[string]ddb.AttributeValue{
		attrKey:        text(l.Shard),
		attrCounter:    number(l.Counter),
		attrCheckpoint: text(l.Checkpoint),
		attrSwitches:   number(l.Switches),
		attrStream:     text(l.Stream),
		attrWhole:      &ddb.AttributeValueMemberBOOL{Value: l.Whole},
	}
	if l.Owner != "" {
		item[attrOwner] = text(l.Owner)
	}
	if l.Parent != "" {
		item[attrParent] = &ddb.AttributeValueMemberSS{Value: []string{l.Parent}}
	}
	if len(l.Children) > 0 {
		item[attrChildren] = &ddb.AttributeValueMemberSS{Value: l.Children}
	}
	return item
}

// leaseFromItem refuses a row without a checkpoint: to take it for the start
// or the end of the shard would both be guesses.
func leaseFromItem(item map[string]ddb.AttributeValue) (Lease, error) {
	l := Lease{
		Shard:      textOf(item[attrKey]),
		Stream:     textOf(item[attrStream]),
		Owner:      textOf(item[attrOwner]),
		Checkpoint: textOf(item[attrCheckpoint]),
	}
	if l.Shard == "" || l.Checkpoint == "" {
		return Lease{}, permanentf("row %q has no %s or no %s", l.Shard, attrKey, attrCheckpoint)
	}
	var err error
	if l.Counter, err = numberOf(item[attrCounter]); err != nil {
		return Lease{}, permanentf("row %q: %s: %w", l.Shard, attrCounter, err)
	}
	if l.Switches, err = numberOf(item[attrSwitches]); err != nil {
		return Lease{}, permanentf("row %q: %s: %w", l.Shard, attrSwitches, err)
	}
	if parents, ok := item[attrParent].(*ddb.AttributeValueMemberSS); ok && len(parents.Value) > 0 {
		l.Parent = parents.Value[0] // a stream's shard has at most one parent
	}
	if children, ok := item[attrChildren].(*ddb.AttributeValueMemberSS); ok {
		l.Children = children.Value
	}
	if whole, ok := item[attrWhole].(*ddb.AttributeValueMemberBOOL); ok {
		l.Whole = whole.Value
	}
	return l, nil
}

func textOf(av ddb.AttributeValue) string {
	if s, ok := av.(*ddb.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(av ddb.AttributeValue) (int64, error) {
	n, ok := av.(*ddb.AttributeValueMemberN)
	if !ok {
		return 0, errors.New("want a number")
	}
	return strconv.ParseInt(n.Value, 10, 64)
}
