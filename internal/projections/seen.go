package projections

import (
	"context"
)

// Matches counts the items and records that this engine has looked at since Open, by their entities.
func (e *Engine) Matches() Matches { return e.seen.Matches(e.planner.Set) }

// MissingTargets returns, by rule, which targets do not exist as far as this engine knows.
func (e *Engine) MissingTargets() []MissingTargets { return e.seen.MissingTargets() }

// LookForTargets looks at the targets of the last pass over the table, and once more at those that
// this engine holds as missing: a source may come before its target. It reads at most about a
// thousand items a rule. Call it when a pass is over or the stream is drained. whole says that this
// process has worked off every item of the table in that pass, for all rules.
func (e *Engine) LookForTargets(ctx context.Context, whole bool) ([]MissingTargets, error) {
	return e.seen.LookForTargets(ctx, whole)
}

// RecordMissing writes to the state table which targets are missing, for `status`, if that has
// changed. Without atOnce it does so at most once a minute.
func (e *Engine) RecordMissing(ctx context.Context, atOnce bool) error {
	return e.seen.RecordMissing(ctx, atOnce)
}
