package dynamill

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/streamreader"
)

// Running is a call of Follow at work. It is safe for concurrent use, also after Follow has returned.
type Running struct {
	Engine     *projections.Engine // tells what a Status does not: rules, matches, missing targets, parked entries
	StreamARN  string              // of the table's stream
	StateTable string
	LeaseTable string
	Items      int64 // of the table, as DynamoDB counted them up to 6 hours ago; 0: not known

	follower *follower
}

// Status is how far a Running is. Counts are since Follow was called.
type Status struct {
	Stream     streamreader.Stats // lag, shards, records applied
	Engine     projections.Stats  // writes, parked entries, heals, retries
	Read       int64              // records given to the engine; those that failed count again
	TaskPieces int64              // pieces of large fan-outs that were worked off
	WriteWait  time.Duration      // that writes spent waiting for WriteRateMax, added up

	Seeding     bool                     // new rules are seeded, or were when Follow ended
	SeedWaits   bool                     // seeding waits until the records are applied that the stream held before
	Seed        projections.SeedProgress // how far seeding is; no Passes before the first page
	FanOut      *projections.TaskProgress
	FanOutSince time.Time // of FanOut, which is nil while no large fan-out is worked off
}

// Status returns how far things are now.
func (r *Running) Status() Status {
	f := r.follower
	s := Status{
		Stream: f.reader.Stats(), Engine: f.engine.Stats(), Read: f.read.Load(), TaskPieces: f.pieces.Load(), WriteWait: f.pace.Waited(),
	}
	if seed := f.seeding.Load(); seed != nil {
		s.Seeding, s.SeedWaits, s.Seed = true, seed.waits, seed.SeedProgress
	}
	if fanOut := f.fanOut.Load(); fanOut != nil {
		s.FanOut, s.FanOutSince = &fanOut.TaskProgress, fanOut.began
	}
	return s
}

// counted counts the records that come by.
type counted struct {
	streamreader.Processor
	records *atomic.Int64
}

// Process hands the records on.
func (c counted) Process(ctx context.Context, records []change.Record) (int, error) {
	c.records.Add(int64(len(records)))
	return c.Processor.Process(ctx, records)
}
