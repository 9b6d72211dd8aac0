package dynamill

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/streamreader"
)

// Running is a call of Follow at work. It is safe for concurrent use, also after Follow has returned.
type Running struct {
	StreamARN  string // of the table's stream
	StateTable string
	LeaseTable string
	Items      int64 // of the table, as DynamoDB counted them up to 6 hours ago; 0: not known

	follower atomic.Pointer[follower]
}

// Status is how far a Running is. Counts are since Follow was called, or since it last began to count a rule anew.
type Status struct {
	Stream streamreader.Stats // lag, shards, records applied
	Engine projections.Stats  // writes, parked entries, heals, retries
	Read   int64              // records given to the engine; those that failed count again
	Budget projections.BudgetStats

	Seeding     bool                     // new rules are seeded, or were when Follow ended
	SeedWaits   bool                     // seeding waits until the records are applied that the stream held before
	Seed        projections.SeedProgress // how far seeding is; no Passes before the first page
	FanOut      *projections.TaskProgress
	FanOutSince time.Time // of FanOut, which is nil while no large fan-out is worked off
}

// Status returns how far things are now.
func (r *Running) Status() Status {
	f := r.follower.Load()
	s := Status{
		Stream: f.reader.Stats(), Engine: f.engine.Stats(), Read: f.read.Load(), Budget: f.engine.Budget(),
	}
	if seed := f.seeding.Load(); seed != nil {
		s.Seeding, s.SeedWaits, s.Seed = true, seed.waits, seed.SeedProgress
	}
	if fanOut := f.fanOut.Load(); fanOut != nil {
		s.FanOut, s.FanOutSince = &fanOut.TaskProgress, fanOut.began
	}
	return s
}

// Description says what the engine found and did when it started.
func (r *Running) Description() projections.Description { return r.follower.Load().engine.Describe() }

// RuleStats returns the counts of every rule, sorted by name.
func (r *Running) RuleStats() []projections.RuleStats { return r.follower.Load().engine.RuleStats() }

// Matches counts the items and records that were looked at, by their entities.
func (r *Running) Matches() projections.Matches { return r.follower.Load().engine.Matches() }

// MissingTargets returns, by rule, which targets do not exist as far as this process knows.
func (r *Running) MissingTargets() []projections.MissingTargets {
	return r.follower.Load().engine.MissingTargets()
}

// Unfinished reads, with two queries of the state table, what is parked and which tasks are left.
func (r *Running) Unfinished(ctx context.Context) (projections.Unfinished, error) {
	return r.follower.Load().engine.Unfinished(ctx)
}
