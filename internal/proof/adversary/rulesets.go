package adversary

import (
	"sync"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// ruleSets are the rule files that the workers of one crew have loaded. A Set is immutable, so workers that know the
// same file share it. Crews share none: a guard that is turned off may change what a file means.
type ruleSets struct {
	mu     sync.Mutex
	byFile map[string]*rules.Set
}

func (s *ruleSets) load(file string) (*rules.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.byFile[file]; set != nil {
		return set, nil
	}
	set, err := rules.Load("dynamill.yaml", []byte(file), projections.Kinds)
	if err != nil {
		return nil, err
	}
	if s.byFile == nil {
		s.byFile = map[string]*rules.Set{}
	}
	s.byFile[file] = set
	return set, nil
}
