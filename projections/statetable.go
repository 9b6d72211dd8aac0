package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
)

// stateTableWait bounds how long a new state table may take to become active.
const stateTableWait = 2 * time.Minute

// describe learns the keys of the user's table, and what tells it from another of the same name.
func (ts *tables) describe(ctx context.Context) (keys tableKeys, id string, err error) {
	out, err := ts.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &ts.table})
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return keys, "", &SetupError{fmt.Sprintf("table %s does not exist", ts.table), "check --table, --region and --endpoint", err}
	}
	if err != nil {
		return keys, "", fmt.Errorf("describing table %s: %w", ts.table, err)
	}
	t := out.Table
	ts.streamLabel.Store(t.LatestStreamLabel)
	keys = keysOf(t)
	ts.partitionKey, ts.sortKey = keys.partition, keys.sort
	ts.partitionN, ts.sortN = keys.partitionKind == change.KindNumber, keys.sortKind == change.KindNumber
	if t.TableId != nil && *t.TableId != "" {
		return keys, *t.TableId, nil
	}
	id = ts.table
	if t.CreationDateTime != nil { // some emulators give no table id
		id += "@" + t.CreationDateTime.UTC().Format(time.RFC3339Nano)
	}
	return keys, id, nil
}

// ensureStateTable creates the state table, on demand, if it is missing.
func (ts *tables) ensureStateTable(ctx context.Context, mustExist bool) (created bool, err error) {
	active, err := ts.stateTableActive(ctx)
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		if mustExist {
			return false, &SetupError{fmt.Sprintf("state table %s does not exist", ts.stateTable), "start `dynamill run` first, or check --state-table", err}
		}
		created, err = true, ts.createStateTable(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("state table %s: %w", ts.stateTable, err)
	}
	for deadline := time.Now().Add(stateTableWait); !active; {
		if active, err = ts.stateTableActive(ctx); err != nil {
			return false, fmt.Errorf("waiting for state table %s: %w", ts.stateTable, err)
		}
		if !active && time.Now().After(deadline) {
			return false, fmt.Errorf("state table %s is still not active after %s", ts.stateTable, stateTableWait)
		}
		if !active {
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
	return created, nil
}

// ensureTTL turns on the state table's time to live. It comes before the
// registry is founded, so that the next start makes good what a crash left out.
func (ts *tables) ensureTTL(ctx context.Context) error {
	if on, err := ts.ttlIsOn(ctx); err != nil || on {
		return err
	}
	_, err := attempt(ctx, ts.reader, "turning on TTL of the state table", func() (*dynamodb.UpdateTimeToLiveOutput, error) {
		return ts.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &ts.stateTable,
			TimeToLiveSpecification: &ddb.TimeToLiveSpecification{AttributeName: new("ttl"), Enabled: new(true)},
		})
	})
	if err == nil {
		return nil
	}
	on, unknown := ts.ttlIsOn(ctx)
	if on || unknown != nil { // another process was faster, or the reply got lost
		return unknown
	}
	return err
}

func (ts *tables) ttlIsOn(ctx context.Context) (bool, error) {
	out, err := attempt(ctx, ts.reader, "describing TTL of the state table", func() (*dynamodb.DescribeTimeToLiveOutput, error) {
		return ts.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &ts.stateTable})
	})
	if err != nil || out.TimeToLiveDescription == nil {
		return false, err
	}
	status := out.TimeToLiveDescription.TimeToLiveStatus
	return status == ddb.TimeToLiveStatusEnabled || status == ddb.TimeToLiveStatusEnabling, nil
}

func (ts *tables) stateTableActive(ctx context.Context) (bool, error) {
	out, err := ts.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &ts.stateTable})
	if err != nil {
		return false, err
	}
	return out.Table.TableStatus == ddb.TableStatusActive, ts.checkStateKeys(out.Table)
}

// holdsItems reports whether DynamoDB has counted items in the state table. It counts every six hours or so.
func (ts *tables) holdsItems(ctx context.Context) (bool, error) {
	out, err := attempt(ctx, ts.reader, "describing state table "+ts.stateTable, func() (*dynamodb.DescribeTableOutput, error) {
		return ts.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &ts.stateTable})
	})
	return err == nil && out.Table.ItemCount != nil && *out.Table.ItemCount > 0, err
}

// checkStateKeys refuses a table whose keys are not those of a state table.
func (ts *tables) checkStateKeys(t *ddb.TableDescription) error {
	good := len(t.KeySchema) == 2
	for _, k := range t.KeySchema {
		name, want := *k.AttributeName, map[ddb.KeyType]string{ddb.KeyTypeHash: statePartition, ddb.KeyTypeRange: stateSort}[k.KeyType]
		text := slices.ContainsFunc(t.AttributeDefinitions, func(d ddb.AttributeDefinition) bool {
			return *d.AttributeName == name && d.AttributeType == ddb.ScalarAttributeTypeS
		})
		good = good && name == want && text
	}
	if good {
		return nil
	}
	return &SetupError{
		Problem: fmt.Sprintf("table %s is no state table: its keys are not the texts %s and %s", ts.stateTable, statePartition, stateSort),
		Remedy:  "name another one with --state-table, or none",
	}
}

func (ts *tables) createStateTable(ctx context.Context) error {
	_, err := ts.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &ts.stateTable, BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{
			{AttributeName: new(statePartition), AttributeType: ddb.ScalarAttributeTypeS},
			{AttributeName: new(stateSort), AttributeType: ddb.ScalarAttributeTypeS},
		},
		KeySchema: []ddb.KeySchemaElement{
			{AttributeName: new(statePartition), KeyType: ddb.KeyTypeHash},
			{AttributeName: new(stateSort), KeyType: ddb.KeyTypeRange},
		},
	})
	if inUse := new(ddb.ResourceInUseException); errors.As(err, &inUse) {
		return nil // another process was faster
	}
	return err
}
