package streamreader

import "time"

// Stats is the reader's state at one moment: of the shards that it reads
// itself, where nothing else is said.
type Stats struct {
	Records int64 // records done since New
	Open    int   // shards that a goroutine reads now
	Waiting int   // shards of the stream that wait for their parent
	// Finished counts the stream's shards that are done to their end, by whoever.
	Finished int
	// Lag is the age of the newest record done in the shard that is furthest
	// behind; 0 when every shard is caught up, or nothing was read yet.
	// DynamoDB floors the time of creation to the second.
	Lag time.Duration
	// CaughtUp reports whether every shard, by whoever, was read either to its end, as far
	// as several empty polls can tell, or past the moment at which reading
	// began: what the stream held before is done.
	CaughtUp bool
	// LastProgress is when the shard that has made no progress for the longest
	// time last did: a batch done, or a poll that found nothing. Without open
	// shards it is the time of the last list of shards; zero before the first.
	LastProgress time.Time
}

// readerState is what Stats is made of, guarded by Reader.mu.
type readerState struct {
	running  bool
	began    time.Time
	records  int64
	shards   map[string]*shardReader
	waiting  int
	behind   bool // a shard that another worker reads, or nobody
	finished int
	listedAt time.Time
}

// Stats returns the state at this moment. It is safe to call at any time.
func (r *Reader) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := Stats{
		Records:      r.state.records,
		Open:         len(r.state.shards),
		Waiting:      r.state.waiting,
		Finished:     r.state.finished,
		LastProgress: r.state.listedAt,
		CaughtUp:     !r.state.listedAt.IsZero() && r.state.waiting == 0 && !r.state.behind,
	}
	first := true
	for _, s := range r.state.shards {
		p := s.snapshot()
		if p.emptyPolls == 0 && !p.newest.IsZero() {
			st.Lag = max(st.Lag, time.Since(p.newest))
		}
		if p.emptyPolls < r.cfg.DrainPolls && !p.newest.After(r.state.began) {
			st.CaughtUp = false
		}
		if first || p.at.Before(st.LastProgress) {
			st.LastProgress, first = p.at, false
		}
	}
	return st
}

func (r *Reader) countDone(records int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.records += int64(records)
}
