package plan_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/dynamill/dynamill/change"
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
		for _, text := range []string{"=0123" + target, "~0123" + target} {
			got, err := p.ParseEffect(list, text)
			if err != nil || got.Kind != plan.OfFamily || got.String() != text || got.Group != target {
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
	unknown, err := p.ParseEffect(plan.EffectKey{ID: "gone"}, "?what it meant")
	if err != nil || unknown.String() != "?what it meant" || unknown.Wanted().String() != "?what it meant" || unknown.Group != "" {
		t.Errorf("an effect of an unknown rule reads back as %q (%v)", unknown, err)
	}
}

func TestEffectsReadBackFromTheLedgerUnderTheirKeys(t *testing.T) {
	want := map[plan.EffectKey]string{}
	effects := plan.Effects{}
	for i, k := range []plan.EffectKey{
		{ID: "-0_z"}, {ID: "count"}, {ID: "count", For: "tag"}, {ID: "@Post"}, {ID: "@Post-2"}, {ID: "count", For: "two words"},
		{ID: "count", For: "two%20words"}, {ID: "count", For: " %25 =*"},
	} {
		effects[k] = plan.Effect{Kind: plan.Contribution, Amount: decimal.New(int64(i)), Group: "a group"}
		want[k] = effects[k].String()
	}
	for _, element := range []string{"go", "db", "5", "${}", "$", "a,b", "%2C", "T", "~0"} {
		for _, group := range []string{"TAG#" + element, "{" + element + "}", "${}" + element, "#", "$" + element + "{}"} {
			k := plan.EffectKey{ID: "by" + fmt.Sprint(len(group)-len(element)), For: element}
			effects[k] = plan.Effect{Kind: plan.Contribution, Amount: decimal.New(5), Group: group}
			want[k] = effects[k].String()
		}
	}
	row := change.Item{"e": change.Set(change.KindStringSet, effects.Texts())}
	if got, err := plan.EffectTexts(row); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v reads back as %v (%v)", row, got, err)
	}
	expiring := change.Item{"ttl": change.Number("1")}
	if got, err := plan.EffectTexts(expiring); err != nil || len(got) > 0 {
		t.Errorf("an entry without effects reads as %v (%v)", got, err)
	}
	for name, bad := range map[string]change.Item{
		"no effects, and no end":   {},
		"a text":                   {"e": change.String("count*g")},
		"numbers":                  {"e": change.Set(change.KindNumberSet, []string{"1"})},
		"no id":                    {"e": change.Set(change.KindStringSet, []string{"*g"})},
		"two of one rule":          {"e": change.Set(change.KindStringSet, []string{"count*g", "count+2 g"})},
		"a purpose without text":   {"e": change.Set(change.KindStringSet, []string{"count "})},
		"a list not in order":      {"e": change.Set(change.KindStringSet, []string{"count b,a *${}"})},
		"a list with one twice":    {"e": change.Set(change.KindStringSet, []string{"count a,a *${}"})},
		"a list without a mark":    {"e": change.Set(change.KindStringSet, []string{"count a,b *a"})},
		"one in two lists":         {"e": change.Set(change.KindStringSet, []string{"count a,b *${}", "count b,c *g"})},
		"a purpose not as written": {"e": change.Set(change.KindStringSet, []string{"count a%2Fb *g"})},
	} {
		if got, err := plan.EffectTexts(bad); err == nil {
			t.Errorf("%s: %v reads as %v, want an error", name, bad, got)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestEffectsThatDifferInTheirElementShareOneText(t *testing.T) {
	effects := plan.Effects{}
	for _, element := range []string{"go", "db", "ai"} {
		effects[plan.EffectKey{ID: "v6", For: element}] = plan.Effect{Kind: plan.Contribution, Amount: decimal.New(1), Group: "TAG#" + element}
	}
	if got := effects.Texts(); len(got) != 1 || got[0] != "v6 ai,db,go *TAG#${}" {
		t.Errorf("the effects stand as %q", got)
	}
}
