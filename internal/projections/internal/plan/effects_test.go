package plan_test

import (
	"testing"

	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestAnEffectReadsBackFromTheLedger(t *testing.T) {
	for name, f := range map[string]plan.Effect{
		"contribution":         {Kind: plan.Contribution, Amount: decimal.New(-3), Group: "GROUP#g 1/META DATA"},
		"locator":              {Kind: plan.Located, Group: "a slug with spaces"},
		"parked":               {Kind: plan.Parked, Parked: &rules.ItemError{Code: "key.smuggled"}},
		"contribution of 1e-9": {Kind: plan.Contribution, Amount: must(decimal.Parse("0.000000001")), Group: "g"},
	} {
		got, err := plan.ParseEffect(f.String())
		if err != nil || got.String() != f.String() || got.Group != f.Group {
			t.Errorf("%s: %q reads back as %q (%v)", name, f, got, err)
		}
	}
	for _, bad := range []string{"", "x", "+ten g"} {
		if f, err := plan.ParseEffect(bad); err == nil {
			t.Errorf("%q is read as %q, want an error", bad, f)
		}
	}
}

func TestAnEffectOfAFamilyReadsBackFromTheLedger(t *testing.T) {
	p, list := socialPlanner(t), plan.EffectKey{ID: "member-list"}
	for _, target := range []string{"A%2FB#1/C %252F", "A", "GROUP#g1/USER#u 1"} {
		for _, text := range []string{"=0123456789abcdef " + target, "~0123456789abcdef " + target} {
			got, err := p.ParseEffect(list, text)
			if err != nil || got.Kind != plan.OfFamily || got.String() != text || got.Group != target {
				t.Errorf("%q reads back as %q of group %q (%v)", text, got, got.Group, err)
			}
			if asked := got.Wanted().String(); asked != "="+text[1:] {
				t.Errorf("%q is asked for as %q", text, asked)
			}
		}
	}
	for _, bad := range []string{"", "x", "?0123456789abcdef A"} {
		if f, err := p.ParseEffect(list, bad); err == nil {
			t.Errorf("%q is read as %q, want an error", bad, f)
		}
	}
	unknown, err := p.ParseEffect(plan.EffectKey{ID: "gone"}, "?what it meant")
	if err != nil || unknown.String() != "?what it meant" || unknown.Wanted().String() != "?what it meant" || unknown.Group != "" {
		t.Errorf("an effect of an unknown rule reads back as %q (%v)", unknown, err)
	}
}

func TestAnEffectKeyReadsBackFromTheLedger(t *testing.T) {
	for _, k := range []plan.EffectKey{{ID: "count"}, {ID: "count", For: "tag"}, {ID: "@Post"}, {ID: "count", For: "two words"}} {
		if got := plan.ParseEffectKey(k.String()); got != k {
			t.Errorf("%q reads back as %+v", k, got)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
