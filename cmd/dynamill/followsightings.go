package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// sightingsPoll is how often a run looks for new warnings.
	sightingsPoll = 10 * time.Second
	// sightingsLast is how long a run that ends may take to record what it has seen.
	sightingsLast = 5 * time.Second
)

// recordAfterDrain looks at what a finished drain has seen, and records it.
func (f *follower) recordAfterDrain(ctx context.Context) (sightings, error) {
	seen, err := lookAndRecord(ctx, f.engine, f.engine.Matches().Whole)
	if err != nil {
		return seen, fmt.Errorf("looking for targets that do not exist: %w", err)
	}
	return seen, nil
}

// tellSightings logs how many items of the table are of each entity when seeding is over. After that it
// logs each warning when it first becomes true. It ends with working, and then records the missing targets.
func (f *follower) tellSightings(ctx, working context.Context, seeded <-chan struct{}) {
	defer f.recordLast(ctx)
	select {
	case <-working.Done():
		return
	case <-seeded:
	}
	var warned warner
	seen, err := lookAndRecord(working, f.engine, f.engine.Matches().Whole)
	if seen.Pass != "" { // something was seeded
		f.logger.Info("matched", seen.attributes()...)
	}
	ticker := time.NewTicker(sightingsPoll)
	defer ticker.Stop()
	for {
		if err != nil && working.Err() == nil {
			f.logger.Warn("what was seen of the table could not be recorded, will retry", "error", err)
		}
		for _, line := range warned.unsaid(seen.warnings(false)) {
			f.logger.Warn(line)
		}
		select {
		case <-working.Done():
			return
		case <-ticker.C:
		}
		err = f.engine.RecordMissing(working, false)
		m := f.engine.Matches()
		seen = sightings{Matches: m, targets: f.engine.MissingTargets(), whole: m.Whole}
	}
}

func (f *follower) recordLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sightingsLast)
	defer cancel()
	if err := f.engine.RecordMissing(ctx, true); err != nil {
		f.logger.Warn("what was seen of the table could not be recorded", "error", err)
	}
}

// attributes are the matches as attributes of a log line.
func (s sightings) attributes() []any {
	var all []any
	for _, e := range s.Entities {
		all = append(all, e.Entity, e.Items)
	}
	all = append(all, "no_entity", s.UnmatchedItems)
	if len(s.Unmatched) > 0 {
		all = append(all, "no_entity_examples", keyList(s.Unmatched))
	}
	return all
}
