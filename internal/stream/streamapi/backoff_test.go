package streamapi

import (
	"fmt"
	"testing"
	"time"
)

func TestWaitsDoubleAndEnd(t *testing.T) {
	longest := time.Duration(0)
	for i := range 100 {
		w := NewBackoff(fmt.Sprint(i))
		if first := w.NextBackOff(); first < 50*time.Millisecond || first > 150*time.Millisecond {
			t.Errorf("first %s", first)
		}
		for range 20 {
			longest = max(longest, w.NextBackOff())
		}
	}
	if longest < 18*time.Second || longest > 20*time.Second {
		t.Errorf("the longest is %s, want up to 20 s", longest)
	}
}
