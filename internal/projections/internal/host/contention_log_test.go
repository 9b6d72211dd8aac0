package host

import (
	"fmt"
	"testing"
	"time"
)

func TestContentionLogIsBounded(t *testing.T) {
	var l contentionLog
	now := time.Unix(0, 0)
	var news [3]int
	for range 2 {
		for i := range 3 * contentionLogMax {
			news[l.admit(fmt.Sprint(i), now)]++
		}
	}
	if want := [3]int{6*contentionLogMax - contentionLogMax - 1, contentionLogMax, 1}; news != want {
		t.Errorf("known, new and others: %v, want %v", news, want)
	}
	if len(l.logged) != contentionLogMax {
		t.Errorf("%d targets are remembered, want %d", len(l.logged), contentionLogMax)
	}
	if l.admit("0", now.Add(contentionLogEvery)) != contentionNew {
		t.Error("a target is not logged again after an hour")
	}
}
