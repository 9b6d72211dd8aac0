package monitor

import (
	"fmt"
	"time"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/streamreader"
)

// Sample is how things are at one moment. Counts are since the process started.
type Sample struct {
	At     time.Time
	Status Status

	Stream streamreader.Stats
	Engine projections.Stats
	Read   int64 // records given to the engine; again after a failure, they count again
	Budget projections.BudgetStats

	Rules      []projections.RuleStats      // what was written for each rule
	Entities   []projections.EntityMatches  // records of each entity's items
	Missing    []projections.MissingTargets // items that do not exist at which sources point
	Unfinished *projections.Unfinished      // what is set aside in the state table; nil until it was read
}

// unread are the shards that no process reads though one should.
func (s Sample) unread() (ids []string) {
	for _, shard := range s.Stream.Shards {
		if shard.Owner == "" && !shard.Waiting {
			ids = append(ids, shard.ID)
		}
	}
	return ids
}

// notReady returns the reasons why /readyz says no; none if the process is ready. lagMax is the greatest lag of a ready
// process; 0 sets no bound.
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
	if s.Stream.Lag > lagMax {
		reasons = append(reasons, fmt.Sprintf("the lag of %s is beyond %s", s.Stream.Lag.Round(time.Second), lagMax))
	}
	if silent := s.At.Sub(s.Stream.LastProgress); !s.Stream.LastProgress.IsZero() && silent > lagMax {
		reasons = append(reasons, fmt.Sprintf("a shard has made no progress for %s", silent.Round(time.Second)))
	}
	return reasons
}
