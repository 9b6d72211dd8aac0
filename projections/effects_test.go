package projections

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/rules"
)

func TestAnEffectReadsBackFromTheLedger(t *testing.T) {
	for name, f := range map[string]effect{
		"contribution":         {kind: contribution, amount: decimal.New(-3), group: "GROUP#g 1/META DATA"},
		"mirror":               {kind: mirrored, digest: "0123456789abcdef", target: change.Key{Partition: "A/B#1", Sort: "C %2F"}},
		"locator":              {kind: located, value: "a slug with spaces"},
		"parked":               {kind: parked, parked: &rules.ItemError{Code: "key.smuggled"}},
		"mirror, no sort key":  {kind: mirrored, digest: "0123456789abcdef", target: change.Key{Partition: "A"}},
		"contribution of 1e-9": {kind: contribution, amount: must(decimal.Parse("0.000000001")), group: "g"},
	} {
		got, err := readEffect(f.String())
		if err != nil || got.String() != f.String() || got.target != f.target || got.group != f.group {
			t.Errorf("%s: %q reads back as %q (%v)", name, f, got, err)
		}
	}
	for _, bad := range []string{"", "x", "+ten g"} {
		if f, err := readEffect(bad); err == nil {
			t.Errorf("%q is read as %q, want an error", bad, f)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
