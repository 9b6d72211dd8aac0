package host

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

func TestContentionLogIsBounded(t *testing.T) {
	var l contentionLog
	now := time.Unix(0, 0)
	type news struct{ target, others bool }
	told := map[news]int{}
	for range 2 {
		for i := range 3 * contentionLogMax {
			target, others := l.admit(fmt.Sprint(i), now)
			told[news{target, others}]++
		}
	}
	want := map[news]int{{}: 6*contentionLogMax - contentionLogMax - 1, {target: true}: contentionLogMax, {others: true}: 1}
	if !maps.Equal(told, want) {
		t.Errorf("told are %v, want %v", told, want)
	}
	if len(l.logged) != contentionLogMax {
		t.Errorf("%d targets are remembered, want %d", len(l.logged), contentionLogMax)
	}
	if target, _ := l.admit("0", now.Add(contentionLogEvery)); !target {
		t.Error("a target is not logged again after an hour")
	}
}
