package dynamill

import (
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/projections"
)

func TestFanOutBeginsWithItsFirstPiece(t *testing.T) {
	long := time.Unix(3, 0)
	for name, c := range map[string]struct {
		last *fanOutState
		same bool
	}{
		"none before": {nil, false},
		"the same":    {&fanOutState{projections.TaskProgress{Rule: "a"}, long}, true},
		"another":     {&fanOutState{projections.TaskProgress{Rule: "b"}, long}, false},
	} {
		f := &follower{}
		f.fanOut.Store(c.last)
		f.noteTask(projections.TaskProgress{Rule: "a", Children: 7})
		now := f.fanOut.Load()
		if now.began.Equal(long) != c.same || !c.same && time.Since(now.began) > time.Minute || now.Children != 7 {
			t.Errorf("%s: it began at %v with %d children", name, now.began, now.Children)
		}
	}
}
