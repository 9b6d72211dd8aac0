package streamreader

import (
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// idleFirst is the part of PollInterval that the first empty poll waits.
const idleFirst = 10

// idleRestart is the part of PollInterval that a draining reader waits at least
// while the batches of other shards restart its count of polls. With the default
// interval it makes about 5 calls per second to a shard.
const idleRestart = 5

// idleWait is short after the first empty poll and doubles up to PollInterval:
// DynamoDB may answer with empty pages on its way to the next record. While the
// reader drains, the wait begins anew after every batch of any shard. A closed
// shard, which must only be read to its end, is never waited for longer. The
// last fifth is drawn, so that shards which were opened together do not keep step.
func (s *shardReader) idleWait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.cfg.PollInterval / idleFirst
	polls := s.progress.emptyPolls
	if s.cfg.Drains {
		polls = s.progress.quietPolls
	}
	for i := 1; i < polls && wait < s.cfg.PollInterval && !s.closed; i++ {
		wait *= 2
	}
	wait = min(wait, s.cfg.PollInterval)
	switch {
	case !s.cfg.Drains || s.closed:
	case polls >= s.cfg.DrainPolls: // the shard waits for the others: when one applies something, this one counts anew soon
		wait = min(wait, s.cfg.PollInterval*2/idleRestart)
	case polls < s.progress.emptyPolls: // others may often apply something: the calls to this shard stay below the limit
		wait = max(wait, s.cfg.PollInterval/idleRestart)
	}
	return wait - time.Duration(s.random.Int64N(int64(wait/5)+1))
}

// observe notes what the stream's list says of the shard. While a stream is
// enabled a closed shard has children; an emulator's one shard that has an
// ending sequence number and no child is open, whatever it is said to be.
func (s *shardReader) observe(info shardInfo, children []string, status streams.StreamStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = info.closed && (len(children) > 0 || status != streams.StreamStatusEnabled)
	s.children = children
}

// note records a page that was read and done. applies is the count of applied
// batches when the reader asked for the page.
func (s *shardReader) note(empty bool, applies int64) {
	s.mu.Lock()
	s.progress.at = time.Now()
	if now := s.cfg.Applies.Load(); s.progress.quietSince != now {
		s.progress.quietPolls, s.progress.quietSince = 0, now
	}
	if empty {
		s.progress.emptyPolls++
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

func (s *shardReader) noteDone(records []change.Record) {
	_, unsaved := s.front.unsaved()
	s.mu.Lock()
	s.progress.at, s.progress.unsaved = time.Now(), unsaved
	if created := records[len(records)-1].Created; created.After(s.progress.newest) {
		s.progress.newest = created
	}
	s.mu.Unlock()
	s.cfg.OnDone(len(records))
}

// noteOldest records which record in hand waits for the longest time. What is put down to be
// read again still waits, so putDown does not call it.
func (s *shardReader) noteOldest() {
	oldest := time.Time{}
	if len(s.hand) > 0 {
		oldest = s.hand[0].Created
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.oldest = oldest
}

// oldestAge is the age of the oldest record that is not done. Where the next one is not read
// yet, the age of the newest one that is done is an upper bound.
func (p progress) oldestAge() time.Duration {
	if !p.oldest.IsZero() {
		return max(0, time.Since(p.oldest))
	}
	return lag(p.newest, int64(p.emptyPolls))
}

// noteRead records that a page with records came. Until one of them is done,
// the first stands for the shard's lag, so that a shard that is stuck shows.
func (s *shardReader) noteRead(created time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.emptyPolls, s.progress.quietPolls = 0, 0
	if s.progress.newest.IsZero() {
		s.progress.newest = created
	}
}

func (s *shardReader) forgetEmptyPolls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.emptyPolls, s.progress.quietPolls = 0, 0
}

func (s *shardReader) snapshot() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// idle reports whether the shard is open and was empty for several polls since
// any worker was last seen to apply records.
func (s *shardReader) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && s.progress.quietPolls >= s.cfg.DrainPolls && s.progress.quietSince == s.cfg.Applies.Load()
}

// describe adds to the shard's row how far behind it is, for others to see.
func (s *shardReader) describe(row *leases.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row.EmptyPolls = int64(s.progress.emptyPolls)
	if s.closed || s.progress.unsaved {
		row.EmptyPolls = 0 // it must be read to its end; what is done shows by the checkpoint
	}
	if s.progress.newest.After(row.Newest) {
		row.Newest = s.progress.newest.UTC().Truncate(time.Second)
	}
}

// lag is the age of a shard's newest record done, unless nothing waits.
func lag(newest time.Time, emptyPolls int64) time.Duration {
	if emptyPolls > 0 || newest.IsZero() {
		return 0
	}
	return time.Since(newest)
}
