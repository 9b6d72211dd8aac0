package shardread

import (
	"time"

	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// isClosed reports whether the shard must only be read to its end.
func (s *Reader) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Observe notes what the stream's list says of the shard. An emulator's only shard has an ending sequence number though
// it is open: while a stream is enabled, a closed shard has children.
func (s *Reader) Observe(info streamapi.Shard, children []string, status streams.StreamStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = info.Closed && (len(children) > 0 || status != streams.StreamStatusEnabled)
	s.children = children
}

// Note records a page that was read and done. applies is the count of applied
// batches when the reader requested the page.
func (s *Reader) Note(empty bool, applies int64) {
	s.mu.Lock()
	s.progress.At = time.Now()
	if now := s.cfg.Applies.Load(); s.progress.quietSince != now {
		s.progress.quietPolls, s.progress.quietSince = 0, now
	}
	if empty {
		s.progress.EmptyPolls++
	}
	if empty && applies == s.progress.quietSince {
		s.progress.quietPolls++
	}
	idle := s.progress.quietPolls == s.cfg.DrainPolls
	s.mu.Unlock()
	if idle {
		s.cfg.OnIdle()
	}
}

func (s *Reader) noteDone(records []change.Record) {
	_, unsaved := s.front.unsaved()
	s.update(func(p *Progress) {
		p.At, p.unsaved = time.Now(), unsaved
		if created := records[len(records)-1].Created; created.After(p.Newest) {
			p.Newest = created
		}
	})
	s.cfg.OnDone(len(records))
}

// noteOldest records which record in hand waits for the longest time. What is put down to be
// read again still waits, so emptyHand does not call it.
func (s *Reader) noteOldest() {
	oldest := time.Time{}
	if len(s.hand) > 0 {
		oldest = s.hand[0].Created
	}
	s.update(func(p *Progress) { p.oldest = oldest })
}

// OldestAge is the age of the oldest record that is not done. Where the next one is not read
// yet, the age of the newest one that is done is an upper bound.
func (p Progress) OldestAge() time.Duration {
	if !p.oldest.IsZero() {
		return max(0, time.Since(p.oldest))
	}
	return Lag(p.Newest, int64(p.EmptyPolls))
}

// NoteRead records that a page with records came. Until one of them is done,
// the first stands for the shard's lag, so that a shard that is stuck shows.
func (s *Reader) NoteRead(created time.Time) {
	s.update(func(p *Progress) {
		p.EmptyPolls, p.quietPolls, p.recordsAt = 0, 0, time.Now()
		if p.Newest.IsZero() {
			p.Newest = created
		}
	})
}

func (s *Reader) forgetEmptyPolls() {
	s.update(func(p *Progress) { p.EmptyPolls, p.quietPolls = 0, 0 })
}

// update changes what others see of the progress.
func (s *Reader) update(change func(*Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.progress)
}

// Snapshot is the progress at this moment.
func (s *Reader) Snapshot() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// Idle reports whether the shard is open and was empty for several polls since
// any worker was last seen to apply records.
func (s *Reader) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && s.progress.quietPolls >= s.cfg.DrainPolls && s.progress.quietSince == s.cfg.Applies.Load()
}

// describe adds to the shard's row how far behind it is, for others to see.
func (s *Reader) describe(row *leases.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row.EmptyPolls = int64(s.progress.EmptyPolls)
	if s.closed || s.progress.unsaved {
		row.EmptyPolls = 0 // it must be read to its end; what is done shows by the checkpoint
	}
	if s.progress.Newest.After(row.Newest) {
		row.Newest = s.progress.Newest.UTC().Truncate(time.Second)
	}
}

// Lag is the age of a shard's newest record done, unless nothing waits.
func Lag(newest time.Time, emptyPolls int64) time.Duration {
	if emptyPolls > 0 || newest.IsZero() {
		return 0
	}
	return time.Since(newest)
}
