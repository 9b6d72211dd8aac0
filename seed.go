package dynamill

import (
	"context"
	"errors"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/internal/tablescan"
	told "github.com/dynamill/dynamill/projections"
)

// backlogPoll is how often seeding asks whether the reader has caught up.
const backlogPoll = 10 * time.Millisecond

// seedState is how far seeding is.
type seedState struct {
	told.SeedProgress
	waits bool // until the stream's backlog is applied
}

// count counts the table's items for the groups of a rule that counts by stream position.
func (f *follower) count(ctx context.Context, g *projections.Generation, report func(items int64)) error {
	table := &tablescan.Table{Client: f.Tables, TableName: f.Table}
	keys := f.set.Table
	_, err := counting.Run(ctx, counting.Config{
		Generation: g, Purpose: counting.Seed, Streams: f.Streams, StreamARN: f.streamARN, PartitionKey: keys.PartitionKey, SortKey: keys.SortKey,
		Leases: f.leases, Logger: f.Logger, Progress: func(p counting.Progress) { report(p.Items) },
		Items: func(ctx context.Context, add func(change.Key, change.Image) error) error {
			return table.Each(ctx, func(item change.Item) error { return add(keys.KeyOf(item), item) })
		},
	})
	return err
}

// seedRetryFirst is how long seeding rests after a failure that may pass; after each further one twice as long, up to seedRetryLast.
const (
	seedRetryFirst = 5 * time.Second
	seedRetryLast  = 10 * time.Minute
)

// seedUntilDone seeds, and tries again after failures that may pass. A drain ends with the first failure.
func (f *follower) seedUntilDone(ctx context.Context) error {
	pass, items := 0, int64(0)
	for pause := seedRetryFirst; ; pause = min(2*pause, seedRetryLast) {
		err := f.seed(ctx)
		if err == nil || ctx.Err() != nil || f.Drain || !f.mayPass(err) {
			return err
		}
		if p := f.seeding.Load(); p != nil && (p.Pass != pass || p.Items > items) { // it came further than at the last failure
			pause, pass, items = seedRetryFirst, p.Pass, p.Items
		}
		f.Logger.Warn("seeding failed, will retry", "pause", pause, "error", err)
		if pace.Sleep(ctx, pause) != nil {
			return ctx.Err()
		}
	}
}

// mayPass reports whether an error may pass, though no person acts, and this process does not open the engine again.
func (f *follower) mayPass(err error) bool {
	if streamreader.StopsReading(err) || errors.As(err, new(*projections.SetupError)) {
		return false
	}
	explained := awserror.Explain(err, f.place)
	return awscall.Passes(err) || errors.Is(err, projections.ErrTooContended) || explained != nil && explained.Kind.Passing()
}

// seed derives what the table's items ask for under new rules. The stream's backlog is applied first: after the scan it
// would take the items through their past once more.
func (f *follower) seed(ctx context.Context) (err error) {
	defer func() {
		if err == nil { // otherwise a last status says how far it came
			f.seeding.Store(nil)
		}
	}()
	names := f.engine.Describe().NewRules
	for len(names) > 0 && !f.reader.Stats().CaughtUp {
		f.seeding.Store(&seedState{SeedProgress: told.SeedProgress{Rules: names}, waits: true})
		if pace.Sleep(ctx, backlogPoll) != nil {
			return ctx.Err()
		}
	}
	if len(names) > 0 {
		f.seeding.Store(&seedState{SeedProgress: told.SeedProgress{Rules: names, Pass: 1}})
	}
	last := 0
	return f.engine.Seed(ctx, func(p told.SeedProgress) {
		f.seeding.Store(&seedState{SeedProgress: p})
		if p.Done {
			f.Logger.Info("seeding is done", "passes", p.Passes)
			return
		}
		if p.Pass != last {
			f.Logger.Info("seeding", "rules", p.Rules, "pass", p.Pass, "passes", p.Passes, "items", p.Items)
		}
		last = p.Pass
	})
}
