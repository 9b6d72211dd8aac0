package progress

import (
	"context"
	"errors"
	"fmt"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Opened is a run, and how it was come by.
type Opened struct {
	Run
	Joined    bool      // it was begun before, or by another process
	GivenUpAt time.Time // of the unfinished run in whose place it is begun, its last progress; else zero
}

// Open joins the run if it is unfinished, and otherwise begins it from the start. It
// does that with anew in any case, and where the unfinished run has had no
// progress for idleMax: what it has done says little of how things are now.
func (s *Store) Open(ctx context.Context, run Run, anew bool, idleMax time.Duration) (Opened, error) {
	for range openAttemptsMax {
		opened, err := s.open(ctx, run, anew, idleMax)
		if err != nil || opened.Generation != "" {
			return opened, err
		}
	}
	return Opened{}, fmt.Errorf("beginning replay %s: its row comes and goes", run.ID)
}

// openAttemptsMax: a row that expires between reading and writing is not there the next time.
const openAttemptsMax = 5

// open is one attempt of Open. A run without a generation says that the row has
// expired since it was read.
func (s *Store) open(ctx context.Context, run Run, anew bool, idleMax time.Duration) (opened Opened, err error) {
	found, err := s.Get(ctx, run.ID)
	if err != nil {
		return opened, err
	}
	if found.Finished.IsZero() && !anew && found.IsOf(run.Passes) {
		progressed, err := s.progressed(ctx, found, idleMax)
		if err != nil || time.Since(progressed) <= idleMax {
			return Opened{Run: found, Joined: true}, err
		}
		opened.GivenUpAt = progressed
	}
	run.Generation, run.Started, run.Finished = s.unique(), time.Now(), time.Time{}
	run.seen = run.row(run.Started)
	err = s.put(ctx, run.seen, found.seen, attrGeneration)
	conflict, lost := errors.AsType[*ddb.ConditionalCheckFailedException](err)
	switch {
	case lost: // another process has just begun it, or this was it and the answer was lost
		opened.Run = runOf(run.ID, conflict.Item)
		opened.Joined = opened.Generation != run.Generation
	case err != nil:
		return opened, fmt.Errorf("beginning replay %s: %w", run.ID, err)
	default:
		opened.Run = run
	}
	return opened, nil
}

// progressed is when a run was last worked on, as its pieces' rows say, each of
// which lives for rowTTL after its last write. It asks only of one that was begun before idleMax.
func (s *Store) progressed(ctx context.Context, run Run, idleMax time.Duration) (time.Time, error) {
	last := run.Started
	if time.Since(last) <= idleMax {
		return last, nil
	}
	pieces, err := s.rows(ctx, run, run.prefixOfAll())
	if err != nil {
		return last, fmt.Errorf("reading when replay %s was worked on: %w", run.ID, err)
	}
	for _, p := range pieces {
		if written := time.Unix(numberOf(p.row[attrTTL]), 0).Add(-rowTTL); written.After(last) {
			last = written
		}
	}
	return last, nil
}
