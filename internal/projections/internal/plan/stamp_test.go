package plan_test

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestForeignWritesAreTold(t *testing.T) {
	b := socialPlanner(t).ByID("member-count")
	key := change.Key{Partition: "GROUP#g1", Sort: "METADATA"}
	context := stamp.Context("i", key, "g")
	image := func(count string, ops int64, of string) change.Image {
		value := change.Number(count)
		return change.Item{"memberCount": value, b.Stamp: s(stamp.Stamp{Context: context, Version: stamp.VersionOf(1, ops),
			Digest: stamp.Digest([]change.Value{change.Number(of)})}.String())}
	}
	plain := change.Item{"name": s("x")}
	for name, c := range map[string]struct {
		old, new change.Image
		want     bool
	}{
		"our first write":                    {plain, image("1", 1, "1"), false},
		"our next write":                     {image("1", 1, "1"), image("2", 2, "2"), false},
		"another value under our stamp":      {image("1", 1, "1"), image("9", 1, "1"), true},
		"an older state put back":            {image("2", 2, "2"), image("1", 1, "1"), true},
		"the stamp taken off":                {image("1", 1, "1"), change.Item{"memberCount": change.Number("1")}, true},
		"an insertion, with stamps and all":  {nil, image("1", 1, "1"), true},
		"a put that wipes value and stamp":   {image("1", 1, "1"), plain, true},
		"the same version with another sum":  {image("1", 1, "1"), image("2", 1, "2"), true},
		"our write over a stamp of another":  {change.Item{b.Stamp: s("contexts0--d")}, image("2", 2, "2"), false},
		"a higher stamp over another value ": {image("1", 1, "1"), image("3", 5, "4"), true},
	} {
		if got := plan.Foreign(b, context, c.old, c.new); got != c.want {
			t.Errorf("%s: foreign is %v, want %v", name, got, c.want)
		}
	}
}

func TestARuleWithoutAttributesCoversNone(t *testing.T) {
	b := &plan.Binding{Rule: &rules.Rule{}}
	if names := b.Covered(plan.DigestOf(b, change.Item{"a": s("x")}), change.Item{"a": s("x")}); names != nil {
		t.Errorf("covered are %q", names)
	}
}
