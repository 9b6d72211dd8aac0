package main

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/streamreader"
)

// own are dynamill's own tables beside the table.
func (env *environment) own() following.Tables {
	return following.Tables{State: env.stateTable, Lease: env.leaseTable}
}

// traces reads what dynamill's own tables tell of each other.
func (env *environment) traces(ctx context.Context, streamARN string) (following.Traces, error) {
	traces, err := env.own().Traces(ctx, env.tables, streamARN)
	return traces, env.classify(err)
}

// lostText is one sentence about a deleted table.
func (env *environment) lostText(lost following.Lost) string {
	if lost == following.LostNone {
		return ""
	}
	problem, remedy := env.own().LostText(lost)
	return problem + ": " + remedy
}

// tellLostState turns the error of a command that found no state into that of a deleted state
// table, if it was deleted; any other error stays as it is.
func (env *environment) tellLostState(ctx context.Context, err error) error {
	if !isSetup(err) {
		return err
	}
	table, unknown := env.describe(ctx)
	if unknown != nil {
		return err
	}
	if t, unknown := env.traces(ctx, aws.ToString(table.LatestStreamArn)); unknown == nil && t.Lost() == following.LostState {
		return unsuited("%s", env.lostText(following.LostState))
	}
	return err
}

// refuseLostState ends a command that would make a deleted state table anew, and
// so seed every rule again unasked.
func (env *environment) refuseLostState(ctx context.Context, streamARN string) error {
	t, err := env.traces(ctx, streamARN)
	if err == nil && t.Lost() == following.LostState {
		return unsuited("%s", env.lostText(t.Lost()))
	}
	return err
}

// leaseRows are the rows of the lease table as they were read.
type leaseRows struct {
	exists bool // the table
	rows   []streamreader.Lease
}

// readLeases reads the lease table, if there is one.
func (env *environment) readLeases(ctx context.Context) (leaseRows, error) {
	rows, exists, err := following.ReadLeases(ctx, env.tables, env.leaseTable)
	return leaseRows{exists, rows}, err
}

// tableNames lists up to about so many tables. dynamill's own are left out, and what does not come in time.
func (env *environment) tableNames(ctx context.Context, most int) (names []string) {
	pages := dynamodb.NewListTablesPaginator(env.tables, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() && len(names) < most {
		page, err := pages.NextPage(ctx)
		if err != nil {
			break
		}
		names = append(names, page.TableNames...)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, stateSuffix) || strings.HasSuffix(name, stateSuffix+leasesSuffix)
	})
}
