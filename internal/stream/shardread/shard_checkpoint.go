package shardread

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// finish marks the shard finished. It may be called again if it failed.
func (s *Reader) finish(work context.Context) (outcome, error) {
	s.forgetEmptyPolls()
	s.mu.Lock()
	children := s.children
	s.mu.Unlock()
	err := s.Held.Save(work, func(l *leases.Lease) { l.Checkpoint, l.Children = leases.ShardEnd, children })
	switch {
	case err == nil:
		s.front.save(s.front.reached)
		return outcomeEnded, nil
	case streamapi.Classify(err) == streamapi.VerdictRetry:
		return outcomeRetry, err
	}
	return outcomeFatal, err
}

// saveLeast is the least time that a waiting shard lets pass before a checkpoint: most
// waits are shorter, and the next batch has more to write.
const saveLeast = 100 * time.Millisecond

// saveDue fires when a checkpoint is due of a shard that waits for room or a turn; never if
// all that is done is saved.
func (s *Reader) saveDue() <-chan time.Time {
	if _, unsaved := s.front.unsaved(); !unsaved {
		return nil
	}
	return time.After(max(saveLeast, s.cfg.CheckpointInterval-time.Since(s.savedAt)))
}

// saveIfDue checkpoints once per CheckpointInterval, and after each batch while batches are small. A write that may
// succeed later does not stop the reading: the next one says what it would have said.
func (s *Reader) saveIfDue(work context.Context) error {
	if s.batchMax == s.cfg.BatchMax && time.Since(s.savedAt) < s.cfg.CheckpointInterval {
		return nil
	}
	err := s.save(work)
	if err != nil && streamapi.Classify(err) == streamapi.VerdictRetry {
		s.cfg.Logger.Warn("checkpoint failed, will retry", "shard", s.Info.ID, "error", err)
		return nil
	}
	return err
}

func (s *Reader) save(work context.Context) error {
	m, ok := s.front.unsaved()
	if !ok {
		return nil
	}
	s.savedAt = time.Now()
	if err := s.Held.Save(work, checkpointOf(m)); err != nil {
		return err
	}
	s.front.save(m)
	s.update(func(p *Progress) { p.unsaved = false })
	return nil
}

// checkpointOf makes the row name m, unless it says SHARD_END: that write may have taken effect though no reply came.
func checkpointOf(m streamapi.Mark) func(*leases.Lease) {
	return func(row *leases.Lease) {
		if !row.Finished() {
			row.Checkpoint = m.Sequence
		}
	}
}
