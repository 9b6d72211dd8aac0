package dynamill

import (
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/projections"
)

func TestFanOutBeginsWithItsFirstPiece(t *testing.T) {
	state := func(rule string, at int64) *fanOutState {
		return &fanOutState{TaskProgress: projections.TaskProgress{Rule: rule}, began: time.Unix(at, 0)}
	}
	for name, c := range map[string]struct {
		last *fanOutState
		want int64
	}{"none before": {nil, 9}, "the same": {state("a", 3), 3}, "another": {state("b", 3), 9}} {
		if got := state("a", 9).since(c.last).began.Unix(); got != c.want {
			t.Errorf("%s: it began at %d, want %d", name, got, c.want)
		}
	}
}
