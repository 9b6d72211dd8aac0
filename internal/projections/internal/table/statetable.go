package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/pace"
)

// stateTableWait bounds how long a new state table takes to become active; stateTableEvery is between two looks.
const (
	stateTableWait  = 2 * time.Minute
	stateTableEvery = 500 * time.Millisecond
)

// Describe learns the keys of the user's table, and what tells it from another of the same name.
func (ts *Tables) Describe(ctx context.Context) (id string, err error) {
	out, err := ts.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &ts.Table})
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return "", &SetupError{Problem: fmt.Sprintf("table %s does not exist", ts.Table), Remedy: "check --table, --region and --endpoint",
			Err: err}
	}
	if err != nil {
		return "", fmt.Errorf("describing table %s: %w", ts.Table, err)
	}
	t := out.Table
	ts.streamLabel.Store(t.LatestStreamLabel)
	ts.Schema = SchemaOf(t)
	if id := aws.ToString(t.TableId); id != "" {
		return id, nil
	}
	id = ts.Table
	if t.CreationDateTime != nil { // some emulators give no table id
		id += "@" + t.CreationDateTime.UTC().Format(time.RFC3339Nano)
	}
	return id, nil
}

// EnsureStateTable creates the state table, on demand, if it is missing. While DynamoDB makes it, creating is called.
func (ts *Tables) EnsureStateTable(ctx context.Context, mustExist bool, creating func()) (created bool, err error) {
	for deadline := time.Now().Add(stateTableWait); ; {
		active, err := ts.StateTableActive(ctx)
		missing := new(ddb.ResourceNotFoundException)
		switch {
		case errors.As(err, &missing) && mustExist:
			return false, &SetupError{Problem: fmt.Sprintf("state table %s does not exist", ts.StateTable),
				Remedy: "start `dynamill run` first, or check --state-table", Err: err}
		case errors.As(err, &missing) && !created:
			if created, err = true, ts.CreateStateTable(ctx); err == nil {
				creating()
				continue
			}
		case errors.As(err, &missing): // DescribeTable may not know yet what was created (API reference, DescribeTable)
			err = nil
		}
		switch {
		case err != nil:
			return false, fmt.Errorf("state table %s: %w", ts.StateTable, err)
		case active:
			return created, nil
		case time.Now().After(deadline):
			return false, fmt.Errorf("state table %s is still not active after %s", ts.StateTable, stateTableWait)
		case pace.Sleep(ctx, stateTableEvery) != nil:
			return false, ctx.Err()
		}
	}
}

// EnsureTTL turns on TTL, before the registry is founded: the next start makes good what a crash left out.
func (ts *Tables) EnsureTTL(ctx context.Context) error {
	if on, err := ts.ttlIsOn(ctx); err != nil || on {
		return err
	}
	_, err := Attempt(ctx, ts.Reader, "turning on TTL of the state table", func() (*dynamodb.UpdateTimeToLiveOutput, error) {
		return ts.Client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &ts.StateTable,
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

func (ts *Tables) ttlIsOn(ctx context.Context) (bool, error) {
	out, err := Attempt(ctx, ts.Reader, "describing TTL of the state table", func() (*dynamodb.DescribeTimeToLiveOutput, error) {
		return ts.Client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &ts.StateTable})
	})
	if err != nil || out.TimeToLiveDescription == nil {
		return false, err
	}
	status := out.TimeToLiveDescription.TimeToLiveStatus
	return status == ddb.TimeToLiveStatusEnabled || status == ddb.TimeToLiveStatusEnabling, nil
}

// StateTableActive reports whether the state table is there, and refuses one with other keys than a state table's.
func (ts *Tables) StateTableActive(ctx context.Context) (bool, error) {
	out, err := ts.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &ts.StateTable})
	if err != nil {
		return false, err
	}
	if SchemaOf(out.Table) != stateSchema {
		err = &SetupError{
			Problem: fmt.Sprintf("table %s is no state table: its keys are not the texts %s and %s", ts.StateTable, PK, SK),
			Remedy:  "name another one with --state-table, or leave it out",
		}
	}
	return out.Table.TableStatus == ddb.TableStatusActive, err
}

// HoldsItems reports whether DynamoDB has counted items in the state table. It counts every six hours or so.
func (ts *Tables) HoldsItems(ctx context.Context) (bool, error) {
	out, err := Attempt(ctx, ts.Reader, "describing state table "+ts.StateTable, func() (*dynamodb.DescribeTableOutput, error) {
		return ts.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &ts.StateTable})
	})
	return err == nil && aws.ToInt64(out.Table.ItemCount) > 0, err
}

// CreateStateTable creates the state table. It may not be active yet.
func (ts *Tables) CreateStateTable(ctx context.Context) error {
	_, err := ts.Client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &ts.StateTable, BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{
			{AttributeName: new(PK), AttributeType: ddb.ScalarAttributeTypeS},
			{AttributeName: new(SK), AttributeType: ddb.ScalarAttributeTypeS},
		},
		KeySchema: []ddb.KeySchemaElement{
			{AttributeName: new(PK), KeyType: ddb.KeyTypeHash},
			{AttributeName: new(SK), KeyType: ddb.KeyTypeRange},
		},
	})
	if inUse := new(ddb.ResourceInUseException); errors.As(err, &inUse) {
		return nil // another process was faster
	}
	return err
}
