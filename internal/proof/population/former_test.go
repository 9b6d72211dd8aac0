package population

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// TestFormerFilesDifferInEveryWay compares drawn former files with what became of them.
func TestFormerFilesDifferInEveryWay(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := Draw(r, projections.Kinds)
		file, ok := p.Formerly(r)
		if !ok {
			seen["none"]++
			continue
		}
		former, err := New("former", file, projections.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		if former.PartitionKind != p.PartitionKind || former.SortKind != p.SortKind || former.Set.Table != p.Set.Table {
			t.Errorf("seed %d: the former rules are for another table", seed)
		}
		for _, now := range p.Set.Rules {
			seen[became(former.Set.Rules, now)]++
		}
	}
	for _, way := range []string{"same", "added", "renamed", "changed"} {
		if seen[way] < 50 {
			t.Errorf("%d rules are %s: %v", seen[way], way, seen)
		}
	}
	if seen["none"] > 10 {
		t.Errorf("of %d files out of 200 no former one was drawn", seen["none"])
	}
}

// became says how a rule stands to former ones.
func became(former []*rules.Rule, now *rules.Rule) string {
	i := slices.IndexFunc(former, func(r *rules.Rule) bool { return r.Name == now.Name })
	j := slices.IndexFunc(former, func(r *rules.Rule) bool { return r.Fingerprint == now.Fingerprint })
	switch {
	case i >= 0 && i == j:
		return "same"
	case j >= 0:
		return "renamed"
	case i >= 0:
		return "changed"
	}
	return "added"
}
