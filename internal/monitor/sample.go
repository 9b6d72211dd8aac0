package monitor

import (
	"fmt"
	"time"
)

// Sample is how things are at one moment. Counts are since the process started.
type Sample struct {
	At     time.Time
	Status Status

	OldestAge    time.Duration // of the record that waits for the longest time; 0 if none waits
	Lag          time.Duration // age of what is applied, in the shard that is furthest behind
	LastProgress time.Time     // of the shard that has made none for the longest time; zero before the first list
	Shards       []Shard       // where they are known one by one
	Open         int           // shards that are being read
	Waiting      int           // shards that wait for their parent
	Finished     int           // shards that are done to their end

	Read      int64 // records handed to the engine; again after a failure, they count again
	Applied   int64
	Relevant  int64
	Unmatched int64

	Entities      []Entity
	Missing       []Missing
	Rules         []Rule
	WriteRequests int64
	Transactions  int64
	Retries       int64
	Conflicts     int64
	Throttles     int64
	WriteWait     time.Duration // that writes spent waiting for --max-write-rate, added up
	Parked        int64
	Heals         int64
	Tasks         int64 // large fan-outs whose rest became a task
	TaskPieces    int64
	LeaseMoves    int64

	Unfinished *Unfinished // nil until the state table was read
}

// Unfinished is what the engine has set aside in the state table.
type Unfinished struct {
	Parked     map[string]int // how many by code
	Tasks      int            // rests of large fan-outs
	OldestTask time.Time      // zero if there is none, or its row does not say
}

// Entity counts the records of one entity's items.
type Entity struct {
	Name    string
	Records int64
}

// Missing says of one rule how many items do not exist at which its sources point.
type Missing struct {
	Rule             string
	Targets, Sources int64
}

// Rule is what was written for one rule.
type Rule struct {
	Name       string
	Writes     int64
	WriteUnits float64
}

// Shard is how one shard stands.
type Shard struct {
	ID         string
	Owner      string        // the worker that reads it; "" for none
	Waits      bool          // for its parent: no process is to read it yet
	Lag        time.Duration // negative where another process knows better
	OldestAge  time.Duration // of the record that waits for the longest time; negative where another process knows better
	LagRecords int64         // negative where it is not known: DynamoDB Streams does not tell
}

// unread are the shards that no process reads though one should.
func (s Sample) unread() (ids []string) {
	for _, shard := range s.Shards {
		if shard.Owner == "" && !shard.Waits {
			ids = append(ids, shard.ID)
		}
	}
	return ids
}

// notReady are the reasons why no more than what is there should be asked of
// this process; none if it is ready. lagMax 0 sets no bound.
func (s Sample) notReady(lagMax time.Duration) (reasons []string) {
	switch state := s.Status.State; {
	case state == Starting:
		reasons = append(reasons, "not started: the stream's shards are not known yet")
	case state.Urgent(), state.Ended():
		reasons = append(reasons, string(state))
	}
	if unread := s.unread(); len(unread) > 0 {
		reasons = append(reasons, fmt.Sprintf("%d shards have no reader, among them %s", len(unread), unread[0]))
	}
	if lagMax <= 0 {
		return reasons
	}
	if s.Lag > lagMax {
		reasons = append(reasons, fmt.Sprintf("the lag of %s is beyond %s", s.Lag.Round(time.Second), lagMax))
	}
	if silent := s.At.Sub(s.LastProgress); !s.LastProgress.IsZero() && silent > lagMax {
		reasons = append(reasons, fmt.Sprintf("a shard has made no progress for %s", silent.Round(time.Second)))
	}
	return reasons
}
