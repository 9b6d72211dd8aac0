// Package sighting says what an engine has seen of its table: how many items and records are of
// each entity, which targets do not exist, and what that tells of a rule file that does not suit
// the table. It imports projections, change and internal/printable.
package sighting

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
)

// Seen is what an engine or an audit has seen.
type Seen struct {
	projections.Matches
	Targets []projections.MissingTargets
	Whole   bool // every item of the table was looked at
}

// LookAndRecord returns what an engine has seen after a replay or a drain, and records the missing
// targets for `status`. whole says that the engine has worked off every item of the table, for all rules.
func LookAndRecord(ctx context.Context, e *projections.Engine, whole bool) (Seen, error) {
	targets, err := e.LookForTargets(ctx, whole)
	if err == nil {
		err = e.RecordMissing(ctx, true)
	}
	m := e.Matches()
	return Seen{Matches: m, Targets: targets, Whole: m.Whole}, err
}

// Of returns what an engine has seen so far.
func Of(e interface {
	Matches() projections.Matches
	MissingTargets() []projections.MissingTargets
}) Seen {
	m := e.Matches()
	return Seen{Matches: m, Targets: e.MissingTargets(), Whole: m.Whole}
}

// Attributes are the matches as attributes of a log line.
func (s Seen) Attributes() []any {
	var all []any
	for _, e := range s.Entities {
		all = append(all, e.Entity, e.Items)
	}
	all = append(all, "no_entity", s.UnmatchedItems)
	if len(s.Unmatched) > 0 {
		all = append(all, "no_entity_examples", KeyList(s.Unmatched))
	}
	return all
}

// KeyTexts are keys for people.
func KeyTexts(keys []change.Key) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.String()
	}
	return texts
}
