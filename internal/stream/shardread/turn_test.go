package shardread

import (
	"context"
	"testing"
)

// endsBetween is over from the second question on.
type endsBetween struct {
	context.Context
	asked, over int
}

func (e *endsBetween) Err() error {
	if e.asked++; e.asked > e.over {
		return context.Canceled
	}
	return nil
}

func (e *endsBetween) Value(any) any { return nil }

func TestStoppedShardKeepsNoTurn(t *testing.T) {
	for over := range 3 {
		s := &Reader{cfg: &Config{Turns: make(chan struct{}, 1)}}
		result, err := s.awaitTurn(&endsBetween{Context: t.Context(), over: over}, t.Context())
		if kept := len(s.cfg.Turns) == 1; kept != (result == outcomeMore) || kept != (err == nil) || over == 0 && kept {
			t.Errorf("over after %d questions: outcome %d, error %v, turn kept %v", over, result, err, kept)
		}
	}
}
