package environment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Counts are what DynamoDB last counted, every six hours or so.
type Counts struct {
	Items, Bytes           int64
	State                  bool // there is a state table
	StateItems, StateBytes int64
}

// CountsOf asks for the counts of both tables. With an error it has those that it was told.
func CountsOf(ctx context.Context, env *Environment) (c Counts, err error) {
	table, err := env.Describe(ctx)
	if err != nil {
		return c, err
	}
	c.Items, c.Bytes = aws.ToInt64(table.ItemCount), aws.ToInt64(table.TableSizeBytes)
	out, err := env.Tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &env.StateTable})
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing): // nothing has run yet
		return c, nil
	case err != nil:
		return c, env.Classify(fmt.Errorf("describing the state table %s: %w", env.StateTable, err))
	case out.Table != nil:
		c.State, c.StateItems, c.StateBytes = true, aws.ToInt64(out.Table.ItemCount), aws.ToInt64(out.Table.TableSizeBytes)
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
func (c Counts) itemUnits(items int64) int64 {
	if items == 0 || c.Items == 0 {
		return 2 * items
	}
	return items * (1 + scanUnits(c.Bytes/c.Items+1, false))
}

// Estimate is what a replay takes to read, in units.
type Estimate struct{ Scan, Look, Sweep int64 }

// Estimate reckons with so many passes over so many items, which a scan finds unless
// they come from elsewhere, and so many over the state table.
func (c Counts) Estimate(passes, sweeps, items int64, scanned, eventually bool) (e Estimate) {
	if scanned {
		e.Scan = passes * scanUnits(c.Bytes, eventually)
	}
	e.Look = passes * c.itemUnits(items)
	e.Sweep = sweeps * (scanUnits(c.StateBytes, eventually) + 2*c.StateItems)
	return e
}
