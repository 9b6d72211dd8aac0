package plan

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestAnEffectReadsBackFromTheLedger(t *testing.T) {
	for name, f := range map[string]Effect{
		"contribution":         {Kind: Contribution, Amount: decimal.New(-3), Group: "GROUP#g 1/META DATA"},
		"mirror":               {Kind: Mirrored, Digest: "0123456789abcdef", Target: change.Key{Partition: "A/B#1", Sort: "C %2F"}},
		"locator":              {Kind: Located, Value: "a slug with spaces"},
		"parked":               {Kind: Parked, Parked: &rules.ItemError{Code: "key.smuggled"}},
		"mirror, no sort key":  {Kind: Mirrored, Digest: "0123456789abcdef", Target: change.Key{Partition: "A"}},
		"contribution of 1e-9": {Kind: Contribution, Amount: must(decimal.Parse("0.000000001")), Group: "g"},
	} {
		got, err := ParseEffect(f.String())
		if err != nil || got.String() != f.String() || got.Target != f.Target || got.Group != f.Group {
			t.Errorf("%s: %q reads back as %q (%v)", name, f, got, err)
		}
	}
	for _, bad := range []string{"", "x", "+ten g"} {
		if f, err := ParseEffect(bad); err == nil {
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
