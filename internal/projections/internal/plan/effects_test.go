package plan_test

import (
	"testing"

	"github.com/dynamill/dynamill/internal/projections/internal/effects"
)

func TestAnEffectOfAFamilyReadsBackFromTheLedger(t *testing.T) {
	p, list := socialPlanner(t), effects.Key{ID: "member-list"}
	for _, target := range []string{"A%2FB#1/C %252F", "A", "GROUP#g1/USER#u 1"} {
		for _, text := range []string{"=0123" + target, "~0123" + target} {
			got, err := p.ParseEffect(list, text)
			if err != nil || got.Kind != effects.OfFamily || got.String() != text || got.Group != target {
				t.Errorf("%q reads back as %q of group %q (%v)", text, got, got.Group, err)
			}
			if asked := got.Wanted().String(); asked != "="+text[1:] {
				t.Errorf("%q is asked for as %q", text, asked)
			}
		}
	}
	for _, bad := range []string{"", "x", "?0123A", "=012"} {
		if f, err := p.ParseEffect(list, bad); err == nil {
			t.Errorf("%q is read as %q, want an error", bad, f)
		}
	}
	unknown, err := p.ParseEffect(effects.Key{ID: "gone"}, "?what it meant")
	if err != nil || unknown.String() != "?what it meant" || unknown.Wanted().String() != "?what it meant" || unknown.Group != "" {
		t.Errorf("an effect of an unknown rule reads back as %q (%v)", unknown, err)
	}
}
