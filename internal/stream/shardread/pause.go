package shardread

import "time"

const (
	// activePause is the pause of a shard that had a record a moment ago. It makes 4 to 5 calls a second to it.
	// Lambda asks four times a second. AWS documents no rate for DynamoDB Streams, for Kinesis it is five
	// a second of all readers together (API reference of Kinesis, GetRecords).
	activePause = 250 * time.Millisecond
	// quietPart is the part of the time since the last record that a quieter shard pauses: after 5 s it asks less
	// often, after 20 s once a second.
	quietPart = 20
	// startPause is each of the first startPauses: a start must soon know what the stream held before it.
	startPause  = 50 * time.Millisecond
	startPauses = 6

	// drainFirst is the part of PollInterval that a draining reader waits behind the first empty page.
	drainFirst = 10
	// drainRestart is the part of PollInterval that a draining reader waits behind a small page, and at least while other
	// shards' batches restart its count of polls: about 5 calls a second by default.
	drainRestart = 5
)

// pause is the time between a page that nothing is likely to follow yet and the next call. PollInterval is the longest.
// A closed shard, which must only be read to its end, is never waited for longer than for the first empty page of a
// drain. The last fifth is drawn, so that shards which were opened together do not keep step.
func (s *Reader) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pauses++
	wait := s.cfg.PollInterval
	switch {
	case s.closed:
		wait /= drainFirst
	case s.cfg.Drains:
		wait = s.drainPause()
	case s.pauses <= startPauses:
		wait = min(wait, startPause)
	default:
		wait = min(wait, max(activePause, time.Since(s.progress.recordsAt)/quietPart))
	}
	return wait - time.Duration(s.random.Int64N(int64(wait/5)+1))
}

// drainPause doubles from a short wait up to PollInterval: DynamoDB may answer with empty pages on its way to the next
// record. It begins anew after every batch of any shard.
func (s *Reader) drainPause() time.Duration {
	wait, polls := s.cfg.PollInterval/drainFirst, s.progress.quietPolls
	for i := 1; i < polls && wait < s.cfg.PollInterval; i++ {
		wait *= 2
	}
	wait = min(wait, s.cfg.PollInterval)
	switch {
	case s.progress.EmptyPolls == 0: // behind a small page
		return s.cfg.PollInterval / drainRestart
	case polls >= s.cfg.DrainPolls: // the shard waits for the others: when one applies something, this one counts anew soon
		return min(wait, s.cfg.PollInterval*2/drainRestart)
	case polls < s.progress.EmptyPolls: // others may often apply something: the calls to this shard stay at five a second by default
		return max(wait, s.cfg.PollInterval/drainRestart)
	}
	return wait
}
