package dynamosim

import (
	"context"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// CreateTable is the SDK client's method. The table is ACTIVE at once.
// Writes are held to the keys of indexes; querying an index is refused.
func (s *Sim) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput,
	error) {
	return call(ctx, s, tableService, "CreateTable", in, s.createTable)
}

func (s *Sim) createTable(in *dynamodb.CreateTableInput) (*dynamodb.CreateTableOutput, error) {
	name := aws.ToString(in.TableName)
	if !tableName.MatchString(name) {
		return nil, invalid("TableName must be 3 to 255 characters of a-z, A-Z, 0-9, '_', '-' and '.': %q", name)
	}
	t := &table{
		name: name, arn: "arn:aws:dynamodb:" + region + ":" + account + ":table/" + name, created: s.options.Now(),
		protected: aws.ToBool(in.DeletionProtectionEnabled), collections: map[string]*collection{}, deleted: map[string]values.Item{},
	}
	if err := t.setKeys(in); err != nil {
		return nil, err
	}
	if in.BillingMode != types.BillingModePayPerRequest && in.ProvisionedThroughput == nil {
		return nil, invalid("No provisioned throughput specified for the table")
	}
	if in.BillingMode == types.BillingModePayPerRequest && in.ProvisionedThroughput != nil {
		return nil, invalid("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	}
	view, err := viewType(in.StreamSpecification)
	if err != nil {
		return nil, err
	}
	if s.tables[name] != nil {
		return nil, &types.ResourceInUseException{Message: aws.String("Table already exists: " + name)}
	}
	t.id = fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", s.random.Uint32(), s.random.Uint32()&0xffff, s.random.Uint32()&0xfff,
		s.random.Uint32()&0xfff, s.random.Uint64()&0xffffffffffff)
	t.define(in)
	s.tables[name] = t
	if view != "" {
		s.openStream(t, view)
	}
	return &dynamodb.CreateTableOutput{TableDescription: t.describe()}, nil
}

func (t *table) setKeys(in *dynamodb.CreateTableInput) error {
	kinds := map[string]string{}
	for _, d := range in.AttributeDefinitions {
		switch d.AttributeType {
		case types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB:
			kinds[aws.ToString(d.AttributeName)] = string(d.AttributeType)
		default:
			return invalid("AttributeDefinitions: %q is not one of B, N, S", d.AttributeType)
		}
	}
	used := map[string]bool{}
	read := func(schema []types.KeySchemaElement) (partition, sort keyAttribute, err error) {
		for i, k := range schema {
			name := aws.ToString(k.AttributeName)
			kind := kinds[name]
			used[name] = true
			switch {
			case kind == "":
				return partition, sort,
					invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s]",
						name)
			case i == 0 && k.KeyType == types.KeyTypeHash:
				partition = keyAttribute{name, kind}
			case i == 1 && k.KeyType == types.KeyTypeRange && name != partition.name:
				sort = keyAttribute{name, kind}
			default:
				return partition, sort, invalid("Invalid KeySchema: want a HASH key and at most one RANGE key after it")
			}
		}
		if partition.name == "" {
			return partition, sort, invalid("Invalid KeySchema: no HASH key")
		}
		return partition, sort, nil
	}
	var err error
	if t.partition, t.sort, err = read(in.KeySchema); err != nil {
		return err
	}
	addIndex := func(name *string, schema []types.KeySchemaElement) error {
		partition, sort, err := read(schema)
		t.indexes = append(t.indexes, index{aws.ToString(name), partition, sort})
		return err
	}
	for _, x := range in.GlobalSecondaryIndexes {
		if err := addIndex(x.IndexName, x.KeySchema); err != nil {
			return err
		}
	}
	for _, x := range in.LocalSecondaryIndexes {
		if err := addIndex(x.IndexName, x.KeySchema); err != nil {
			return err
		}
	}
	if len(used) != len(kinds) {
		return invalid("One or more parameter values were invalid: Some AttributeDefinitions are not used. AttributeDefinitions: %v, keys "+
			"used: %v", sortedNames(kinds), sortedNames(used))
	}
	return nil
}

func (t *table) define(in *dynamodb.CreateTableInput) {
	t.definition = types.TableDescription{
		TableName: aws.String(t.name), TableArn: aws.String(t.arn), TableId: aws.String(t.id), CreationDateTime: aws.Time(t.created),
		TableStatus: types.TableStatusActive, KeySchema: in.KeySchema, AttributeDefinitions: in.AttributeDefinitions,
		DeletionProtectionEnabled: aws.Bool(t.protected),
		ProvisionedThroughput:     &types.ProvisionedThroughputDescription{ReadCapacityUnits: aws.Int64(0), WriteCapacityUnits: aws.Int64(0)},
	}
	if p := in.ProvisionedThroughput; p != nil {
		t.definition.ProvisionedThroughput = &types.ProvisionedThroughputDescription{ReadCapacityUnits: p.ReadCapacityUnits,
			WriteCapacityUnits: p.WriteCapacityUnits}
	} else {
		t.definition.BillingModeSummary = &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest}
	}
	for _, x := range in.GlobalSecondaryIndexes {
		t.definition.GlobalSecondaryIndexes = append(t.definition.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName: x.IndexName, KeySchema: x.KeySchema, Projection: x.Projection, IndexStatus: types.IndexStatusActive,
			IndexArn: aws.String(t.arn + "/index/" + aws.ToString(x.IndexName)),
		})
	}
	for _, x := range in.LocalSecondaryIndexes {
		t.definition.LocalSecondaryIndexes = append(t.definition.LocalSecondaryIndexes, types.LocalSecondaryIndexDescription{
			IndexName: x.IndexName, KeySchema: x.KeySchema, Projection: x.Projection,
			IndexArn: aws.String(t.arn + "/index/" + aws.ToString(x.IndexName)),
		})
	}
}

func (t *table) describe() *types.TableDescription {
	d := t.definition
	items, bytes := t.count()
	d.ItemCount, d.TableSizeBytes = aws.Int64(items), aws.Int64(bytes)
	if t.stream != nil {
		d.LatestStreamArn, d.LatestStreamLabel = aws.String(t.stream.arn), aws.String(t.stream.label)
	}
	if t.streaming() {
		d.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(t.stream.view)}
	}
	return &d
}

// viewType reads a stream specification; "" for a stream that is off.
func viewType(spec *types.StreamSpecification) (types.StreamViewType, error) {
	if spec == nil || !aws.ToBool(spec.StreamEnabled) {
		if spec != nil && spec.StreamViewType != "" {
			return "", invalid("One or more parameter values were invalid: StreamViewType is given although StreamEnabled is false")
		}
		return "", nil
	}
	switch spec.StreamViewType {
	case types.StreamViewTypeKeysOnly, types.StreamViewTypeNewImage, types.StreamViewTypeOldImage, types.StreamViewTypeNewAndOldImages:
		return spec.StreamViewType, nil
	}
	return "", invalid("One or more parameter values were invalid: Invalid StreamViewType: %q", spec.StreamViewType)
}

// DescribeTable is the SDK client's method.
func (s *Sim) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return call(ctx, s, tableService, "DescribeTable", in, func(in *dynamodb.DescribeTableInput) (*dynamodb.DescribeTableOutput, error) {
		t, err := s.table(in.TableName)
		if err != nil {
			return nil, err
		}
		return &dynamodb.DescribeTableOutput{Table: t.describe()}, nil
	})
}

// DeleteTable is the SDK client's method. The table is gone at once; its
// stream stays readable for 24 hours.
func (s *Sim) DeleteTable(ctx context.Context, in *dynamodb.DeleteTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput,
	error) {
	return call(ctx, s, tableService, "DeleteTable", in, func(in *dynamodb.DeleteTableInput) (*dynamodb.DeleteTableOutput, error) {
		t, err := s.table(in.TableName)
		if err != nil {
			return nil, err
		}
		if t.protected {
			return nil, invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
		}
		if t.streaming() {
			s.closeStream(t)
		}
		delete(s.tables, t.name)
		d := t.describe()
		d.TableStatus = types.TableStatusDeleting
		return &dynamodb.DeleteTableOutput{TableDescription: d}, nil
	})
}

// listTablesMax bounds a page of ListTables (API reference).
const listTablesMax = 100

// ListTables is the SDK client's method.
func (s *Sim) ListTables(ctx context.Context, in *dynamodb.ListTablesInput, _ ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput,
	error) {
	return call(ctx, s, tableService, "ListTables", in, func(in *dynamodb.ListTablesInput) (*dynamodb.ListTablesOutput, error) {
		limit, err := bounded(in.Limit, listTablesMax)
		if err != nil {
			return nil, err
		}
		out := &dynamodb.ListTablesOutput{TableNames: []string{}}
		for _, name := range sortedNames(s.tables) {
			if name <= aws.ToString(in.ExclusiveStartTableName) {
				continue
			}
			if len(out.TableNames) == limit {
				out.LastEvaluatedTableName = aws.String(out.TableNames[limit-1])
				break
			}
			out.TableNames = append(out.TableNames, name)
		}
		return out, nil
	})
}
