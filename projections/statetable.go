package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// stateTableWait bounds how long a new state table may take to become active.
const stateTableWait = 2 * time.Minute

// ensureStateTable creates the state table, on demand, if it is missing.
func (e *Engine) ensureStateTable(ctx context.Context, mustExist bool) (created bool, err error) {
	active, err := e.stateTableActive(ctx)
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		if mustExist {
			return false, &SetupError{fmt.Sprintf("state table %s does not exist", e.stateTable), "start `dynamill run` first, or check --state-table", err}
		}
		created, err = true, e.createStateTable(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("state table %s: %w", e.stateTable, err)
	}
	for deadline := time.Now().Add(stateTableWait); !active; {
		if active, err = e.stateTableActive(ctx); err != nil {
			return false, fmt.Errorf("waiting for state table %s: %w", e.stateTable, err)
		}
		if !active && time.Now().After(deadline) {
			return false, fmt.Errorf("state table %s is still not active after %s", e.stateTable, stateTableWait)
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
func (e *Engine) ensureTTL(ctx context.Context) error {
	if on, err := e.ttlIsOn(ctx); err != nil || on {
		return err
	}
	_, err := attempt(ctx, &e.counters, "turning on TTL of the state table", func() (*dynamodb.UpdateTimeToLiveOutput, error) {
		return e.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &e.stateTable,
			TimeToLiveSpecification: &ddb.TimeToLiveSpecification{AttributeName: ptr("ttl"), Enabled: ptr(true)},
		})
	})
	if err == nil {
		return nil
	}
	on, unknown := e.ttlIsOn(ctx)
	if on || unknown != nil { // another process was faster, or the reply got lost
		return unknown
	}
	return err
}

func (e *Engine) ttlIsOn(ctx context.Context) (bool, error) {
	out, err := attempt(ctx, &e.counters, "describing TTL of the state table", func() (*dynamodb.DescribeTimeToLiveOutput, error) {
		return e.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &e.stateTable})
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

// checkForeign refuses a table without a registry that belongs to another program: it has
// items in it. It reports whether the registry is there by now.
func (e *Engine) checkForeign(ctx context.Context) (founded bool, err error) {
	out, err := attempt(ctx, &e.counters, "describing state table "+e.stateTable, func() (*dynamodb.DescribeTableOutput, error) {
		return e.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &e.stateTable})
	})
	if err != nil || out.Table.ItemCount == nil || *out.Table.ItemCount == 0 { // DynamoDB counts every six hours or so
		return false, err
	}
	if table, err := e.readTableItem(ctx); err != nil || table != nil { // another process was faster
		return true, err
	}
	return false, &SetupError{
		Problem: fmt.Sprintf("table %s holds items, but not dynamill's state", e.stateTable), Remedy: "name another one with --state-table, or none",
	}
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

func (e *Engine) createStateTable(ctx context.Context) error {
	_, err := e.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &e.stateTable, BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{
			{AttributeName: ptr(statePartition), AttributeType: ddb.ScalarAttributeTypeS},
			{AttributeName: ptr(stateSort), AttributeType: ddb.ScalarAttributeTypeS},
		},
		KeySchema: []ddb.KeySchemaElement{
			{AttributeName: ptr(statePartition), KeyType: ddb.KeyTypeHash},
			{AttributeName: ptr(stateSort), KeyType: ddb.KeyTypeRange},
		},
	})
	if inUse := new(ddb.ResourceInUseException); errors.As(err, &inUse) {
		return nil // another process was faster
	}
	return err
}
