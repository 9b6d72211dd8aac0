package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// counts are what DynamoDB last counted, every six hours or so.
type counts struct {
	items, bytes           int64
	state                  bool // there is a state table
	stateItems, stateBytes int64
}

// countsOf asks for the counts of both tables. With an error it has those that it was told.
func countsOf(ctx context.Context, env *environment) (c counts, err error) {
	table, err := env.describe(ctx)
	if err != nil {
		return c, err
	}
	c.items, c.bytes = aws.ToInt64(table.ItemCount), aws.ToInt64(table.TableSizeBytes)
	out, err := env.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &env.stateTable})
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing): // nothing has run yet
		return c, nil
	case err != nil:
		return c, env.classify(fmt.Errorf("describing the state table %s: %w", env.stateTable, err))
	case out.Table != nil:
		c.state, c.stateItems, c.stateBytes = true, aws.ToInt64(out.Table.ItemCount), aws.ToInt64(out.Table.TableSizeBytes)
	}
	return c, nil
}

// A read unit is a consistent read of 4 KB (DynamoDB developer guide, "DynamoDB read and write operations").
const readUnitBytes = 4096

func scanUnits(bytes int64, eventually bool) int64 {
	units := math.Ceil(float64(bytes) / readUnitBytes)
	if eventually {
		units = math.Ceil(units / 2)
	}
	return int64(units)
}

// itemUnits is what it takes to read so many items of a table and as many ledger entries, one by one.
func (c counts) itemUnits(items int64) int64 {
	if items == 0 || c.items == 0 {
		return 2 * items
	}
	return items * (1 + scanUnits(c.bytes/c.items+1, false))
}

// estimate is what a replay takes to read, in units.
type estimate struct{ scan, look, sweep int64 }

// estimate reckons with so many passes over so many items, which a scan finds unless
// they come from elsewhere, and so many over the state table.
func (c counts) estimate(passes, sweeps, items int64, scanned, eventually bool) (e estimate) {
	if scanned {
		e.scan = passes * scanUnits(c.bytes, eventually)
	}
	e.look = passes * c.itemUnits(items)
	e.sweep = sweeps * (scanUnits(c.stateBytes, eventually) + 2*c.stateItems)
	return e
}
