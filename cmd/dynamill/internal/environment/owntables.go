package environment

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/streamreader"
)

// Own are dynamill's own tables beside the table.
func (env *Environment) Own() following.Tables {
	return following.Tables{State: env.StateTable, Lease: env.LeaseTable}
}

// Traces reads what dynamill's own tables tell of each other.
func (env *Environment) Traces(ctx context.Context, streamARN string) (following.Traces, error) {
	traces, err := env.Own().Traces(ctx, env.Tables, streamARN)
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

// TellLostState turns the error of a command that found no state into that of a deleted state
// table, if it was deleted; any other error stays as it is.
func (env *Environment) TellLostState(ctx context.Context, err error) error {
	if !IsSetup(err) {
		return err
	}
	table, unknown := env.Describe(ctx)
	if unknown != nil {
		return err
	}
	if t, unknown := env.Traces(ctx, aws.ToString(table.LatestStreamArn)); unknown == nil && t.Lost() == following.LostState {
		return ending.Unsuited("%s", env.LostText(following.LostState))
	}
	return err
}

// RefuseLostState ends a command that would make a deleted state table anew, and
// so seed every rule again unasked.
func (env *Environment) RefuseLostState(ctx context.Context, streamARN string) error {
	t, err := env.Traces(ctx, streamARN)
	if err == nil && t.Lost() == following.LostState {
		return ending.Unsuited("%s", env.LostText(t.Lost()))
	}
	return err
}

// LeaseRows are the rows of the lease table as they were read.
type LeaseRows struct {
	Exists bool // the table
	Rows   []streamreader.Lease
}

// ReadLeases reads the lease table, if there is one.
func (env *Environment) ReadLeases(ctx context.Context) (LeaseRows, error) {
	rows, exists, err := following.ReadLeases(ctx, env.Tables, env.LeaseTable)
	return LeaseRows{exists, rows}, err
}

// TableNames lists up to about so many tables. dynamill's own are left out, and what does not come in time.
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
		return strings.HasSuffix(name, settings.StateSuffix) || strings.HasSuffix(name, settings.StateSuffix+settings.LeasesSuffix)
	})
}
