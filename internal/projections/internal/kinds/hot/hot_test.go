package hot_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/hot"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

const entities = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Tag:  { key: { pk: "TAG#${tag}", sk: "METADATA" } }
  Day:  { key: { pk: "DAY#${day}", sk: "METADATA" }, derived: true }
  Like: { key: { pk: "LIKE#${likeId}", sk: "LIKE" } }
rules:
  days: { count: Like, as: Day.likes, by: day }
`

func load(t *testing.T, rule string, kinds []rules.Kind) (*rules.Set, error) {
	t.Helper()
	return rules.Load("dynamill.yaml", []byte(entities+rule), kinds)
}

func TestHotRulesAreRead(t *testing.T) {
	for name, rule := range map[string]string{
		"a count":    "  r: { count: Like, as: Post.likes, by: postId, hot: true, if_none: absent, display_every: 5s, where: weight > 1 }\n",
		"a sum":      "  r: { sum: weight, of: Like, as: Tag.weight, each: tags as tag, by: tag, hot: true }\n",
		"an average": "  r: { average: weight, of: Like, as: Post.mean, by: postId, hot: true }\n",
	} {
		set, err := load(t, rule, projections.Kinds)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := set.Rules[1]
		if !r.Folds() || hot.Of(r) == nil || r.Suffixes() != 0 || len(r.Source.Sources) != 1 {
			t.Errorf("%s is not hot: %+v", name, r)
		}
		cold, err := load(t, strings.NewReplacer(", hot: true", "", ", display_every: 5s", "").Replace(rule), projections.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		if cold.Rules[1].Folds() || cold.Rules[1].Fingerprint == r.Fingerprint {
			t.Errorf("%s means the same without hot", name)
		}
	}
}

func TestHotRulesThatCannotBeAreRefusedWithARemedy(t *testing.T) {
	for rule, want := range map[string][]string{
		"count: Like, as: Post.likes, by: postId, hot: false":                  {"hot must be true", "leave it out"},
		"count: Like, as: Post.likes, by: postId, hot: true, write_shards: 4":  {"a hot count has no `write_shards`"},
		"count: Like, as: Post.likes, by: postId, hot: true, per: kind":        {"a hot count has no `per`"},
		"count: Like, as: Post.likes, by: postId, display_every: 5s":           {"`display_every` goes with `hot: true`"},
		"count: Like, as: Post.likes, by: postId, hot: true, display_every: 5": {"display_every must be a number of seconds, from 1s to 3600s"},
		"count: Like, as: Day.likes, by: day, hot: true":                       {"Day is derived", "leave `hot` out"},
		"min: weight, of: Like, as: Post.likes, by: postId, hot: true":         {"a minimum has no `hot`"},
	} {
		_, err := load(t, "  r: { "+rule+" }\n", projections.Kinds)
		if err == nil {
			t.Errorf("%s is accepted", rule)
			continue
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v\nwant %q", rule, err, text)
			}
		}
	}
}

func TestDifferencesOfAHistoryAddUpToItsLastImage(t *testing.T) {
	set, err := load(t, "  r: { sum: weight, of: Like, as: Tag.weight, each: tags as tag, by: tag, where: weight > 0, hot: true }\n",
		projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	f, key := hot.Of(set.Rules[1]), change.Key{Partition: "LIKE#1", Sort: "LIKE"}
	amounts := func(t *rapid.T, img change.Item) map[string]tally.Amount {
		if img == nil {
			return nil
		}
		m, ok := set.Identify(key, img)
		if !ok {
			t.Fatal("it is no Like")
		}
		all, err := f.Amounts(&m, img)
		if err != nil {
			return nil // parked
		}
		return all
	}
	image := rapid.Custom(func(t *rapid.T) change.Item {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		tags := []change.Value{}
		for _, tag := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 4).Draw(t, "tags") {
			tags = append(tags, change.String(tag))
		}
		weight := change.Number(rapid.SampledFrom([]string{"0", "1", "2.5"}).Draw(t, "weight"))
		if rapid.IntRange(0, 9).Draw(t, "torn") == 0 {
			weight = change.String("heavy")
		}
		return change.Item{"pk": change.String(key.Partition), "sk": change.String(key.Sort), "tags": change.List(tags), "weight": weight}
	})
	rapid.Check(t, func(t *rapid.T) {
		sum := map[string]tally.Amount{}
		var before map[string]tally.Amount
		for _, img := range rapid.SliceOfN(image, 1, 6).Draw(t, "history") {
			after := amounts(t, img)
			for group, d := range tally.Differences(before, after) {
				sum[group] = sum[group].Add(d)
			}
			before = after
		}
		for group, a := range sum {
			if !a.Equals(before[group]) {
				t.Fatalf("%s adds up to %s, and the last image says %s", group, a, before[group])
			}
		}
		for group := range before {
			if _, ok := sum[group]; !ok {
				t.Fatalf("nothing was added to %s", group)
			}
		}
	})
}
