package streamreader

import (
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// idleFirst is the part of PollInterval that the first empty poll waits.
const idleFirst = 10

// idleWait is short after the first empty poll and doubles up to PollInterval:
// DynamoDB may answer with empty pages on its way to the next record. A closed
// shard, which must only be read to its end, is never waited for longer. The
// last fifth is drawn, so that shards which were opened together do not keep step.
func (s *shardReader) idleWait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.cfg.PollInterval / idleFirst
	for i := 1; i < s.progress.emptyPolls && wait < s.cfg.PollInterval && !s.closed; i++ {
		wait *= 2
	}
	wait = min(wait, s.cfg.PollInterval)
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

// note records a page that was read and done.
func (s *shardReader) note(empty bool) {
	s.mu.Lock()
	s.progress.at = time.Now()
	if empty {
		s.progress.emptyPolls++
	}
	idle := s.progress.emptyPolls == s.cfg.DrainPolls
	s.mu.Unlock()
	if idle {
		s.onIdle()
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
	s.onDone(len(records))
}

// noteRead records that a page with records came. Until one of them is done,
// the first stands for the shard's lag, so that a shard that is stuck shows.
func (s *shardReader) noteRead(created time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.emptyPolls = 0
	if s.progress.newest.IsZero() {
		s.progress.newest = created
	}
}

func (s *shardReader) setEmptyPolls(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.emptyPolls = n
}

func (s *shardReader) snapshot() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// idle reports whether the shard is open and has been empty for several polls,
// not counting those that were made before, if it has been empty since then.
func (s *shardReader) idle(before int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.progress.emptyPolls
	if n >= before {
		n -= before
	}
	return !s.closed && n >= s.cfg.DrainPolls
}

// describe adds to the shard's row how far behind it is, for others to see.
func (s *shardReader) describe(row *Lease) {
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
