package rules_test

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

func ExampleAdder() {
	set, err := rules.Load("dynamill.yaml", []byte(`version: 1
table: { keys: [pk, sk] }
entities:
  Order: { key: { pk: "ORDER#${orderId}", sk: "ORDER" } }
  Line:  { key: { pk: "ORDER#${orderId}", sk: "LINE#${n}" } }
rules:
  total: { sum: price * quantity, of: Line, as: Order.total }
`), projections.Kinds)
	if err != nil {
		fmt.Println(err)
		return
	}
	line := change.Item{"price": change.Number("0.1"), "quantity": change.Number("3")}
	match, _ := set.Identify(change.Key{Partition: "ORDER#7", Sort: "LINE#1"}, line)
	for _, rule := range match.Entity.Sources {
		c, _, err := rule.Form.(rules.Adder).Contribution(&match, line)
		fmt.Println(c.Group, c.Amount, err)
	}
	// Output: ORDER#7/ORDER 0.3 <nil>
}
