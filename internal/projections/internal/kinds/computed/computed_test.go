package computed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/computed"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

func TestValuesStandTogether(t *testing.T) {
	s := kindtest.Load(t, "indexes.yaml")
	whole := change.Item{"status": change.String("published"), "createdAt": change.String("2026-01-02"), "likes": change.Number("7"),
		"title": change.String("Hello"), "price": change.Number("1.5"), "quantity": change.Number("2")}
	for name, tt := range map[string]struct {
		rule string
		with change.Item
		want []string // "" is absent; nil: none of them
	}{
		"whole":               {"published", nil, []string{"POST#STATUS#published", "2026-01-02"}},
		"where does not hold": {"published", change.Item{"status": change.String("draft")}, nil},
		"one is missing":      {"published", change.Item{"createdAt": {}}, nil},
		"one is empty":        {"published", change.Item{"createdAt": change.String("")}, nil},
		"one is NULL":         {"published", change.Item{"createdAt": change.Null()}, nil},
		"parts":               {"by-month", nil, []string{"MONTH#2026-01", "0000000007#hello"}},
		"constants":           {"numbers", nil, []string{"3", "3", "", "${ is $"}},
	} {
		t.Run(name, func(t *testing.T) {
			item := change.Item{}
			for _, attributes := range []change.Item{whole, tt.with} {
				for name, v := range attributes {
					item[name] = v
				}
			}
			r := kindtest.Rule(t, s, tt.rule)
			values, err := computed.Of(r).Values(kindtest.Identify(t, s, "POST#1", "METADATA", item), item)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range values {
				if v.Kind() != change.KindAbsent {
					got = got[:0]
					for _, v := range values {
						got = append(got, v.Text())
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnreadableItemHasNoValues(t *testing.T) {
	s := kindtest.Load(t, "indexes.yaml")
	item := change.Item{"createdAt": change.String("2026-01-02"), "likes": change.String("many"), "title": change.Number("1")}
	r := kindtest.Rule(t, s, "by-month")
	values, err := computed.Of(r).Values(kindtest.Identify(t, s, "POST#1", "METADATA", item), item)
	kindtest.WantItemError(t, err, "value.type", "GSI2SK of Post", "likes", "many")
	for i, v := range values {
		if v.Kind() != change.KindAbsent {
			t.Errorf("%s is %q", r.Writes[i], v.Text())
		}
	}
}

// TestOrderOfAttributesMeansNothing compares two rules with the same attributes in another order.
func TestOrderOfAttributesMeansNothing(t *testing.T) {
	load := func(set string) *rules.Rule {
		return kindtest.Rule(t, kindtest.LoadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
rules:
  r: { set: { `+set+` }, of: Post }
`), "r")
	}
	one, other := load(`a: "${x}", b: "${y}"`), load(`b: "${y}", a: "${x}"`)
	if one.Fingerprint != other.Fingerprint {
		t.Error("the fingerprints differ")
	}
	changed := rulediff.Compare(one, load(`a: "${x}", b: "${z}"`))
	if diff := cmp.Diff([]rulediff.FieldChange{{Field: "set", Old: `a: "${x}", b: "${y}"`, New: `a: "${x}", b: "${z}"`}}, changed); diff != "" {
		t.Error(diff)
	}
}

func TestExplainTellsTheValues(t *testing.T) {
	s := kindtest.Load(t, "indexes.yaml")
	post := change.Item{"pk": change.String("POST#1"), "sk": change.String("METADATA"), "status": change.String("published"),
		"createdAt": change.String("2026"), "likes": change.String("many"), "title": change.String("x")}
	x := audits.Explain(s, change.Record{Key: change.Key{Partition: "POST#1", Sort: "METADATA"}, New: post})
	var got []string
	for _, line := range x.Lines {
		got = append(got, line.Rule+": "+line.Effect+" => "+line.Write)
	}
	want := []string{
		`author: refers to no parent => take authorName off`,
		`by-month: cannot read the item: GSI2SK of Post: likes is the string "many"; pad needs a number => ` +
			`park it (value.type), take GSI2PK, GSI2SK off`,
		`published: asks for other values => set GSI1PK = "POST#STATUS#published", GSI1SK = "2026"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
