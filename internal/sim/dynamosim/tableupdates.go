package dynamosim

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// UpdateTable is the SDK client's method. It turns the stream on and off, and
// deletion protection; billing settings are remembered; the rest is refused.
func (s *Sim) UpdateTable(ctx context.Context, in *dynamodb.UpdateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTableOutput,
	error) {
	return call(ctx, s, tableService, "UpdateTable", in, s.updateTable)
}

func (s *Sim) updateTable(in *dynamodb.UpdateTableInput) (*dynamodb.UpdateTableOutput, error) {
	if err := refuse(map[string]bool{"AttributeDefinitions": in.AttributeDefinitions != nil,
		"GlobalSecondaryIndexUpdates": in.GlobalSecondaryIndexUpdates != nil, "ReplicaUpdates": in.ReplicaUpdates != nil}); err != nil {
		return nil, err
	}
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if in.StreamSpecification != nil {
		view, err := viewType(in.StreamSpecification)
		switch {
		case err != nil:
			return nil, err
		case view != "" && t.streaming():
			return nil, invalid("Table already has an enabled stream: TableName: %s", t.name)
		case view == "" && !t.streaming():
			return nil, invalid("Table is already in the desired state: the stream of %s is not enabled", t.name)
		case view != "":
			s.openStream(t, view)
		default:
			s.closeStream(t)
		}
	}
	if in.DeletionProtectionEnabled != nil {
		t.protected = *in.DeletionProtectionEnabled
		t.definition.DeletionProtectionEnabled = aws.Bool(t.protected)
	}
	if p := in.ProvisionedThroughput; p != nil {
		t.definition.ProvisionedThroughput = &types.ProvisionedThroughputDescription{ReadCapacityUnits: p.ReadCapacityUnits,
			WriteCapacityUnits: p.WriteCapacityUnits}
	}
	if in.BillingMode != "" {
		t.definition.BillingModeSummary = &types.BillingModeSummary{BillingMode: in.BillingMode}
	}
	return &dynamodb.UpdateTableOutput{TableDescription: t.describe()}, nil
}

// UpdateTimeToLive is the SDK client's method. It takes effect at once; items
// expire when ExpireItems is called.
func (s *Sim) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return call(ctx, s, tableService, "UpdateTimeToLive", in, func(in *dynamodb.UpdateTimeToLiveInput) (*dynamodb.UpdateTimeToLiveOutput,
		error) {
		t, err := s.table(in.TableName)
		if err != nil {
			return nil, err
		}
		spec := in.TimeToLiveSpecification
		if spec == nil || aws.ToString(spec.AttributeName) == "" || spec.Enabled == nil {
			return nil, invalid("TimeToLiveSpecification: must have an AttributeName and Enabled")
		}
		switch {
		case *spec.Enabled && t.ttlAttribute != "":
			return nil, invalid("TimeToLive is already enabled")
		case !*spec.Enabled && t.ttlAttribute == "":
			return nil, invalid("TimeToLive is already disabled")
		case !*spec.Enabled && t.ttlAttribute != *spec.AttributeName:
			return nil, invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttlAttribute)
		case *spec.Enabled:
			t.ttlAttribute, t.expiresFrom = *spec.AttributeName, keyValue{}
		default:
			t.ttlAttribute = ""
		}
		return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: spec}, nil
	})
}

// DescribeTimeToLive is the SDK client's method.
func (s *Sim) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return call(ctx, s, tableService, "DescribeTimeToLive", in,
		func(in *dynamodb.DescribeTimeToLiveInput) (*dynamodb.DescribeTimeToLiveOutput, error) {
			t, err := s.table(in.TableName)
			if err != nil {
				return nil, err
			}
			d := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
			if t.ttlAttribute != "" {
				d.AttributeName, d.TimeToLiveStatus = aws.String(t.ttlAttribute), types.TimeToLiveStatusEnabled
			}
			return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d}, nil
		})
}
