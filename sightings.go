package dynamill

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/sighting"
)

const (
	sightingsPoll = 10 * time.Second // between two looks for new warnings
	sightingsLast = 5 * time.Second  // for recording what was seen when the process ends
)

// logSightings logs how many items of the table are of each entity when seeding is over. After that it
// logs each warning when it first becomes true. It ends with working, and then records the missing targets.
func (f *follower) logSightings(ctx, working, seedingOver context.Context) {
	defer f.recordLast(ctx)
	select {
	case <-working.Done():
		return
	case <-seedingOver.Done():
	}
	var warned sighting.Warner
	seen, err := sighting.LookAndRecord(working, f.engine, f.engine.Matches().Whole)
	if seen.Pass != "" { // something was seeded
		f.Logger.Info("items matched by entity", seen.Attributes()...)
	}
	ticker := time.NewTicker(sightingsPoll)
	defer ticker.Stop()
	for {
		if err != nil && working.Err() == nil {
			f.Logger.Warn("what was seen of the table could not be recorded, will retry", "error", err)
		}
		for _, line := range warned.Unsaid(seen.Warnings(false)) {
			f.Logger.Warn(line)
		}
		select {
		case <-working.Done():
			return
		case <-ticker.C:
		}
		err = f.engine.RecordMissing(working, false)
		seen = sighting.Of(f.engine)
	}
}

func (f *follower) recordLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sightingsLast)
	defer cancel()
	if err := f.engine.RecordMissing(ctx, true); err != nil {
		f.Logger.Warn("what was seen of the table could not be recorded", "error", err)
	}
}
