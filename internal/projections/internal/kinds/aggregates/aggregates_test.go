package aggregates_test

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestContributions(t *testing.T) {
	blog, shop, numbers := kindtest.Load(t, "blog.yaml"), kindtest.Load(t, "shop.yaml"), kindtest.Load(t, "number-keys.yaml")
	line := func(more change.Item) change.Item {
		item := change.Item{"EntityType": change.String("LineItem"), "price": change.Number("0.1"), "quantity": change.Number("3")}
		for k, v := range more {
			item[k] = v
		}
		return item
	}
	booking := func(day change.Value) change.Item {
		return change.Item{"kind": change.String("booking"), "amount": change.Number("5"), "day": day}
	}
	for name, tt := range map[string]struct {
		set             *rules.Set
		rule            string
		partition, sort string
		item            change.Item
		group, amount   string // "" for no contribution
	}{
		"one item counts one": {blog, "comment-count", "POST#p", "COMMENT#1#c", nil, "POST#p/METADATA", "1"},
		"a member counts": {blog, "member-count", "USER#u", "GROUP#g", change.Item{"role": change.String("admin")},
			"GROUP#g/METADATA", "1"},
		"a member without a role counts": {blog, "member-count", "USER#u", "GROUP#g", change.Item{}, "GROUP#g/METADATA", "1"},
		"a banned member does not": {blog, "member-count", "USER#u", "GROUP#g", change.Item{"role": change.String("banned")}, "",
			""},
		"a line adds price times quantity":    {shop, "order-total", "ORDER#o", "ITEM#p", line(nil), "o", "0.3"},
		"a line without a price adds nothing": {shop, "order-total", "ORDER#o", "ITEM#p", line(change.Item{"price": change.Null()}), "", ""},
		"a post counts for its author": {shop, "post-count", "USER#a", "POST#1#p", change.Item{"EntityType": change.String("Post")},
			"USER#a/PROFILE", "1"},
		"a join attribute may be a number":        {numbers, "day-total", "7", "1", booking(change.Number("20")), "7/20", "5"},
		"a join attribute may be a text":          {numbers, "day-total", "7", "1", booking(change.String("20")), "7/20", "5"},
		"a missing join attribute means nothing":  {numbers, "day-total", "7", "1", booking(change.Value{}), "", ""},
		"a null join attribute means nothing":     {numbers, "day-total", "7", "1", booking(change.Null()), "", ""},
		"an empty join attribute means nothing":   {numbers, "day-total", "7", "1", booking(change.String("")), "", ""},
		"a boolean join attribute reads as words": {numbers, "day-total", "7", "1", booking(change.Bool(true)), "7/true", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := kindtest.Rule(t, tt.set, tt.rule)
			got, ok, err := aggregates.Of(r).Contribution(kindtest.Identify(t, tt.set, tt.partition, tt.sort, tt.item), tt.item)
			if err != nil {
				t.Fatal(err)
			}
			if ok != (tt.group != "") || ok && (got.Group != tt.group || got.Amount.String() != tt.amount) {
				t.Errorf("got %q %s, %t; want %q %s", got.Group, got.Amount, ok, tt.group, tt.amount)
			}
		})
	}
}

func TestTheTargetDisplaysTheGroupThatItsSourcesAddTo(t *testing.T) {
	s := kindtest.Load(t, "shop.yaml")
	order := change.Item{"EntityType": change.String("Order")}
	group, ok, err := aggregates.Of(kindtest.Rule(t, s, "order-total")).GroupOf(kindtest.Identify(t, s, "CUSTOMER#c", "ORDER#o", order), order)
	if group != "o" || !ok || err != nil {
		t.Errorf("by unique: %q, %t, %v", group, ok, err)
	}
	blog := kindtest.Load(t, "blog.yaml")
	r := kindtest.Rule(t, blog, "comment-count")
	group, ok, err = aggregates.Of(r).GroupOf(kindtest.Identify(t, blog, "POST#a/b", "METADATA", nil), nil)
	if !ok || err != nil || change.ParseKey(group) != (change.Key{Partition: "POST#a/b", Sort: "METADATA"}) {
		t.Errorf("by key: %q, %t, %v", group, ok, err)
	}
	all := kindtest.Load(t, "everything.yaml")
	user := change.Item{"EntityType": change.String("user"), "email": change.String("")}
	if _, ok, err := aggregates.Of(kindtest.Rule(t, all, "login-count")).GroupOf(kindtest.Identify(t, all, "USER#u", "PROFILE", user),
		user); ok || err != nil {
		t.Errorf("a user with an empty email displays a group: %v", err)
	}
}

func TestWrongTypesAndOverflowsAreTheItemsErrors(t *testing.T) {
	s := kindtest.Load(t, "shop.yaml")
	r := kindtest.Rule(t, s, "order-total")
	for _, tt := range []struct {
		price change.Value
		code  string
	}{
		{change.String("cheap"), "value.type"},
		{change.List(nil), "value.type"},
		{change.Number("9e125"), "number.overflow"},
	} {
		item := change.Item{"EntityType": change.String("LineItem"), "price": tt.price,
			"quantity": change.Number("12345678901234567890123456789012345678")}
		_, _, err := aggregates.Of(r).Contribution(kindtest.Identify(t, s, "ORDER#o", "ITEM#p", item), item)
		kindtest.WantItemError(t, err, tt.code, "sum of LineItem")
	}
}
