package verify_test

import (
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/internal/replay/verify"
)

func TestASampleJudgesASumByAllOfItsEntries(t *testing.T) {
	w := worldOf(t, "club", clubRules)
	for i := range 5 {
		w.put("app", membership(fmt.Sprint(i), "1"))
	}
	w.put("app", texts("pk", "GROUP#1", "sk", "METADATA"))
	w.follow()
	w.put("app", membership("9", "1"))
	w.lose() // it is not counted
	drawn := 0
	for seed := range 100 {
		found, s := w.verify(false, func(cfg *verify.Config) { cfg.Sample, cfg.SampleSeed = 0.3, uint64(seed) })
		sums := map[string]bool{}
		for _, f := range found {
			sums[string(f.Kind)] = true
		}
		if s.Cleared > 0 {
			t.Errorf("seed %d: %d suspects, %d of them called right, found %v", seed, s.Suspects, s.Cleared, sums)
		}
		if sums["accumulator"] {
			drawn++
		}
	}
	if drawn < 10 {
		t.Errorf("the sum was drawn %d times of 100: the test shows nothing", drawn)
	}
}
