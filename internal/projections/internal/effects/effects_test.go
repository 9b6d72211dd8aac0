package effects_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestAnEffectReadsBackFromTheLedger(t *testing.T) {
	for name, f := range map[string]effects.Effect{
		"contribution":         {Kind: effects.Contribution, Amount: decimal.New(-3), Group: "GROUP#g 1/META DATA"},
		"locator":              {Kind: effects.Located, Group: "a slug with spaces"},
		"parked":               {Kind: effects.Parked, Parked: &rules.ItemError{Code: "key.smuggled"}},
		"contribution of 1e-9": {Kind: effects.Contribution, Amount: must(decimal.Parse("0.000000001")), Group: "g"},
	} {
		got, err := effects.Parse(f.String())
		if err != nil || got.String() != f.String() || got.Group != f.Group {
			t.Errorf("%s: %q reads back as %q (%v)", name, f, got, err)
		}
	}
	for _, bad := range []string{"", "x", "+ten g"} {
		if f, err := effects.Parse(bad); err == nil {
			t.Errorf("%q is read as %q, want an error", bad, f)
		}
	}
}

func TestEffectsReadBackFromTheLedgerUnderTheirKeys(t *testing.T) {
	want := map[effects.Key]string{}
	all := effects.ByKey{}
	for i, k := range []effects.Key{
		{ID: "-0_z"}, {ID: "count"}, {ID: "count", For: "tag"}, {ID: "@Post"}, {ID: "@Post-2"}, {ID: "count", For: "two words"},
		{ID: "count", For: "two%20words"}, {ID: "count", For: " %25 =*"},
	} {
		all[k] = effects.Effect{Kind: effects.Contribution, Amount: decimal.New(int64(i)), Group: "a group"}
		want[k] = all[k].String()
	}
	for _, element := range []string{"go", "db", "5", "${}", "$", "a,b", "%2C", "T", "~0"} {
		for _, group := range []string{"TAG#" + element, "{" + element + "}", "${}" + element, "#", "$" + element + "{}"} {
			k := effects.Key{ID: "by" + fmt.Sprint(len(group)-len(element)), For: element}
			all[k] = effects.Effect{Kind: effects.Contribution, Amount: decimal.New(5), Group: group}
			want[k] = all[k].String()
		}
	}
	row := change.Item{"e": change.Set(change.KindStringSet, all.Texts())}
	if got, err := effects.ReadTexts(row); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v reads back as %v (%v)", row, got, err)
	}
	expiring := change.Item{"ttl": change.Number("1")}
	if got, err := effects.ReadTexts(expiring); err != nil || len(got) > 0 {
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
		if got, err := effects.ReadTexts(bad); err == nil {
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
	all := effects.ByKey{}
	for _, element := range []string{"go", "db", "ai"} {
		all[effects.Key{ID: "v6", For: element}] = effects.Effect{Kind: effects.Contribution, Amount: decimal.New(1), Group: "TAG#" + element}
	}
	if got := all.Texts(); len(got) != 1 || got[0] != "v6 ai,db,go *TAG#${}" {
		t.Errorf("the effects stand as %q", got)
	}
}
