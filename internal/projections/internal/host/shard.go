package host

import (
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// Shard is a shard of the stream that a worker has opened: the lanes to which hot rules add the records of the shard.
type Shard struct {
	ID    string
	Lanes map[*plan.Binding][]Lane

	mu   sync.Mutex
	lost map[*plan.Binding]string
}

// Lane is a shard in one generation of a rule.
type Lane struct {
	Generation int64
	lanes.Shard
}

// IsLate reports whether a record may have been written before the end of a count's scan, although it stands behind what the count has
// read: the count then knows what it changed, and has left it to be added.
func (s *Shard) IsLate(b *plan.Binding, position string, created time.Time) bool {
	for _, m := range b.CountExtentsOf() {
		if position > m.Read[s.ID] && !created.After(m.Until) {
			return true
		}
	}
	return false
}

// NoteLost notes that records of a rule were lost, or came too late: a new generation is to begin.
func (s *Shard) NoteLost(b *plan.Binding, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = map[*plan.Binding]string{}
	}
	s.lost[b] = reason
}

// TakeLost returns the rules that lost records since the last call, with the reason.
func (s *Shard) TakeLost() map[*plan.Binding]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	s.lost = nil
	return lost
}
