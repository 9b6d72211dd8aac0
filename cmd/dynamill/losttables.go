package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/internal/following"
)

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
