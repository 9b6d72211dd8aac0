package projections

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// faulty passes calls on, asking first what is to become of each.
type faulty struct {
	table.Client
	// around is called for every request; it may fail it before or after pass has its effect.
	around func(op string, pass func() error) error
	// before, if set, is told of every request first.
	before func(op string, in any)
}

// errCrash ends a worker in the middle of a batch; no class of error knows it.
var errCrash = errors.New("the worker crashed")

func intercept[In, Out any](f *faulty, op string, call func() (*Out, error), in *In) (out *Out, err error) {
	if f.before != nil {
		f.before(op, in)
	}
	err = f.around(op, func() error { out, err = call(); return err })
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (f *faulty) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return intercept(f, "GetItem", func() (*dynamodb.GetItemOutput, error) { return f.Client.GetItem(ctx, in) }, in)
}

func (f *faulty) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return intercept(f, "PutItem", func() (*dynamodb.PutItemOutput, error) { return f.Client.PutItem(ctx, in) }, in)
}

func (f *faulty) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput,
	error) {
	return intercept(f, "UpdateItem", func() (*dynamodb.UpdateItemOutput, error) { return f.Client.UpdateItem(ctx, in) }, in)
}

func (f *faulty) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput,
	error) {
	return intercept(f, "DeleteItem", func() (*dynamodb.DeleteItemOutput, error) { return f.Client.DeleteItem(ctx, in) }, in)
}

func (f *faulty) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return intercept(f, "Query", func() (*dynamodb.QueryOutput, error) { return f.Client.Query(ctx, in) }, in)
}

func (f *faulty) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return intercept(f, "Scan", func() (*dynamodb.ScanOutput, error) { return f.Client.Scan(ctx, in) }, in)
}

func (f *faulty) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return intercept(f, "BatchGetItem", func() (*dynamodb.BatchGetItemOutput, error) { return f.Client.BatchGetItem(ctx, in) }, in)
}

func (f *faulty) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return intercept(f, "TransactWriteItems", func() (*dynamodb.TransactWriteItemsOutput,
		error) {
		return f.Client.TransactWriteItems(ctx, in)
	}, in)
}

func (f *faulty) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return intercept(f, "DescribeTable", func() (*dynamodb.DescribeTableOutput, error) { return f.Client.DescribeTable(ctx, in) }, in)
}

func (f *faulty) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput,
	error) {
	return intercept(f, "CreateTable", func() (*dynamodb.CreateTableOutput, error) { return f.Client.CreateTable(ctx, in) }, in)
}

func (f *faulty) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return intercept(f, "DescribeTimeToLive", func() (*dynamodb.DescribeTimeToLiveOutput,
		error) {
		return f.Client.DescribeTimeToLive(ctx, in)
	}, in)
}

func (f *faulty) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return intercept(f, "UpdateTimeToLive", func() (*dynamodb.UpdateTimeToLiveOutput, error) { return f.Client.UpdateTimeToLive(ctx, in) }, in)
}

func (f *faulty) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return intercept(f, "BatchExecuteStatement", func() (*dynamodb.BatchExecuteStatementOutput, error) {
		return f.Client.BatchExecuteStatement(ctx, in)
	}, in)
}
