package environment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// Own are dynamill's own tables beside the table.
func (env *Environment) Own() following.Tables {
	return following.Tables{State: env.StateTable, Lease: env.LeaseTable}
}

// Traces reads what dynamill's own tables tell of each other.
func (env *Environment) Traces(ctx context.Context) (following.Traces, error) {
	traces, err := env.Own().Traces(ctx, env.Tables)
	return traces, env.Classify(err)
}

// LostText is one sentence about a deleted table.
func (env *Environment) LostText(lost following.Lost) string {
	if lost == following.LostNone {
		return ""
	}
	problem, remedy := env.Own().LostText(lost)
	return problem + ": " + remedy
}

// ExplainLostState turns the error of a command that found no state into that of a deleted state table, if it was deleted.
func (env *Environment) ExplainLostState(ctx context.Context, err error) error {
	if !IsSetup(err) {
		return err
	}
	table, unknown := env.Describe(ctx)
	if unknown != nil {
		return err
	}
	if t, unknown := env.Traces(ctx); unknown == nil && t.Lost(aws.ToString(table.LatestStreamArn)) == following.LostState {
		return ending.Unsuited("%s", env.LostText(following.LostState))
	}
	return err
}

// RefuseLostState ends a command that would make a deleted state table anew, and so seed every rule again unasked.
func (env *Environment) RefuseLostState(ctx context.Context, streamARN string) error {
	t, err := env.Traces(ctx)
	if err == nil && t.Lost(streamARN) == following.LostState {
		return ending.Unsuited("%s", env.LostText(following.LostState))
	}
	return err
}

// Leases is the lease table.
func (env *Environment) Leases() *leases.Table { return leases.NewTable(env.Tables, env.LeaseTable) }

// TableNames returns table names, up to about most. It leaves out dynamill's own tables, and all pages after an error.
func (env *Environment) TableNames(ctx context.Context, most int) (names []string) {
	pages := dynamodb.NewListTablesPaginator(env.Tables, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() && len(names) < most {
		page, err := pages.NextPage(ctx)
		if err != nil {
			break
		}
		names = append(names, page.TableNames...)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, following.StateSuffix) || strings.HasSuffix(name, following.StateSuffix+following.LeaseSuffix)
	})
}

// Counts are what DynamoDB last counted, every six hours or so.
type Counts struct {
	Items, Bytes           int64
	State                  bool // there is a state table
	StateItems, StateBytes int64
}

// CountsOf describes both tables. Beside an error it returns the counts that it has read.
func CountsOf(ctx context.Context, env *Environment) (c Counts, err error) {
	table, err := env.Describe(ctx)
	if err != nil {
		return c, err
	}
	c.Items, c.Bytes = aws.ToInt64(table.ItemCount), aws.ToInt64(table.TableSizeBytes)
	out, err := env.Tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &env.StateTable})
	switch {
	case errors.As(err, new(*types.ResourceNotFoundException)): // nothing has run yet
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

// itemUnits returns the read units for reading items one by one, each with its ledger entry.
func (c Counts) itemUnits(items int64) int64 {
	if items == 0 || c.Items == 0 {
		return 2 * items
	}
	return items * (1 + scanUnits(c.Bytes/c.Items+1, false))
}

// Estimate is what a replay takes to read, in units.
type Estimate struct{ Scan, Look, Sweep int64 }

// Estimate returns the read units of passes over items (scanned: a scan finds them) and of sweeps over the state table.
// eventually halves the scans.
func (c Counts) Estimate(passes, sweeps, items int64, scanned, eventually bool) (e Estimate) {
	if scanned {
		e.Scan = passes * scanUnits(c.Bytes, eventually)
	}
	e.Look = passes * c.itemUnits(items)
	e.Sweep = sweeps * (scanUnits(c.StateBytes, eventually) + 2*c.StateItems)
	return e
}
