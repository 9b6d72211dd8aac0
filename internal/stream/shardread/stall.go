package shardread

import (
	"errors"
	"fmt"
	"time"
)

// silentTerms without a page is how long a worker keeps a shard.
const silentTerms = 3

// ErrUnanswered ends the reading of a shard that another worker may be able to read.
var ErrUnanswered = errors.New("the stream does not answer this worker")

// answered records that the stream has answered with a page. The reader waited for so long
// before it sent the request: that is not silence.
func (s *Reader) answered(p *page, waited time.Duration) {
	if !p.heard.IsZero() {
		s.answeredAt = p.heard
	}
	if p.err != nil {
		if !s.silentSince.IsZero() {
			s.silentSince = s.silentSince.Add(max(0, waited))
		}
		return
	}
	s.silentSince = time.Time{}
	s.update(func(progress *Progress) { progress.Answered = p.heard })
}

// unanswered judges a call that failed and may succeed later. Others must not
// take the shard for empty meanwhile.
func (s *Reader) unanswered(err error) (outcome, error) {
	s.forgetEmptyPolls()
	if s.silentSince.IsZero() {
		s.silentSince = time.Now()
	}
	if time.Since(s.silentSince) < silentTerms*s.cfg.LeaseTerm {
		return outcomeRetry, err
	}
	return outcomeFatal, fmt.Errorf("%w: %w", ErrUnanswered, err)
}

// ResumeFrom goes on where the shard's former reader has given up, if no other worker has written its row since then, and no person has set
// the checkpoint.
func (s *Reader) ResumeFrom(former *Reader) {
	if now, left := s.Held.Lease(), former.Held.Lease(); now.Counter != left.Counter+1 || now.Checkpoint != left.Checkpoint {
		return
	}
	s.ahead.iterator = former.ahead.iterator
	s.first = former.first
	s.reopened, s.answeredAt = former.reopened, former.answeredAt
	s.progress = former.Snapshot()
	s.progress.unsaved = false // it was saved when the shard was given up
}
