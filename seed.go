package dynamill

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/projections"
)

// backlogPoll is how often seeding asks whether the reader has caught up.
const backlogPoll = 10 * time.Millisecond

// seedState is how far seeding is.
type seedState struct {
	projections.SeedProgress
	waits bool // until the stream's backlog is applied
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
		f.seeding.Store(&seedState{SeedProgress: projections.SeedProgress{Rules: names}, waits: true})
		if pace.Sleep(ctx, backlogPoll) != nil {
			return ctx.Err()
		}
	}
	if len(names) > 0 {
		f.seeding.Store(&seedState{SeedProgress: projections.SeedProgress{Rules: names, Pass: 1}})
	}
	last := 0
	return f.engine.Seed(ctx, func(p projections.SeedProgress) {
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
