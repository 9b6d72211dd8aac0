package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/population"
)

// TestApplicationLearnsThatItsItemWasDeleted updates a child that is there, and one that a rule has deleted with its parent.
func TestApplicationLearnsThatItsItemWasDeleted(t *testing.T) {
	p, err := population.New("children", `version: 1
table: { keys: [pk, sk] }
entities:
  Product: { key: { pk: "PRODUCT#${productId}", sk: "PRODUCT" } }
  Stock:   { key: { pk: "PRODUCT#${productId}", sk: "STOCK#${place}" } }
rules:
  gone: { delete: Stock, with: Product }
`, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	item := func(more change.Item) change.Item {
		it := change.Item{"pk": change.String("PRODUCT#1"), "sk": change.String("STOCK#a")}
		for name, value := range more {
			it[name] = value
		}
		return it
	}
	two, remark := change.Number("2"), change.String("A")
	set := item(change.Item{"quantity": two})
	for name, now := range map[string]change.Item{
		"it was there":    item(change.Item{"quantity": two, "remark": remark}),
		"it was not":      item(change.Item{"quantity": two}),
		"it was, changed": item(change.Item{"quantity": two, "remark": change.String("B")}),
	} {
		a := application{Population: p, base: map[change.Key]change.Item{}}
		a.base[p.Key(set)] = item(change.Item{"quantity": change.Number("1"), "remark": remark})
		a.learn(set, now)
		want := item(change.Item{"quantity": two, "remark": remark})
		if name == "it was not" {
			want = now
		}
		if diff := cmp.Diff(want, a.base[p.Key(set)]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
