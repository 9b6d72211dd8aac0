package aggregates_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
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
	group, ok, err := kindtest.Rule(t, s, "order-total").GroupOf(kindtest.Identify(t, s, "CUSTOMER#c", "ORDER#o", order), order)
	if group != "o" || !ok || err != nil {
		t.Errorf("by unique: %q, %t, %v", group, ok, err)
	}
	blog := kindtest.Load(t, "blog.yaml")
	r := kindtest.Rule(t, blog, "comment-count")
	group, ok, err = r.GroupOf(kindtest.Identify(t, blog, "POST#a/b", "METADATA", nil), nil)
	if !ok || err != nil || change.ParseKey(group) != (change.Key{Partition: "POST#a/b", Sort: "METADATA"}) {
		t.Errorf("by key: %q, %t, %v", group, ok, err)
	}
	all := kindtest.Load(t, "everything.yaml")
	user := change.Item{"EntityType": change.String("user"), "email": change.String("")}
	if _, ok, err := kindtest.Rule(t, all, "login-count").GroupOf(kindtest.Identify(t, all, "USER#u", "PROFILE", user),
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

const samples = `version: 1
table: { keys: [pk, sk] }
entities:
  Sample: { key: { pk: "METRICS#${resourceId}", sk: "${day}T${time}" } }
  Day:    { key: { pk: "METRICS#${resourceId}", sk: "DAY#${day}" } }
rules:
  cpu:  { average: cpu, of: Sample, as: Day.cpu }
  used: { sum: cpu, of: Sample, as: Day.used }
`

// TestZeroIsAMemberOfAnAverage has items that add 0: an average counts them, a sum has no need to.
func TestZeroIsAMemberOfAnAverage(t *testing.T) {
	set, err := rules.Load("dynamill.yaml", []byte(samples), kinds())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[*rules.Rule]string{}
	for _, r := range set.Rules {
		ids[r] = r.Name
	}
	p := &plan.Planner{Bindings: plan.Bind(set, ids)}
	for name, tt := range map[string]struct {
		cpu  change.Value
		want effects.ByKey
	}{
		"a number": {change.Number("2.50"), cpuEffects("+2.5 METRICS#r/DAY#d", "+2.5 METRICS#r/DAY#d")},
		"0":        {change.Number("0"), cpuEffects("+0 METRICS#r/DAY#d", "")},
		"nothing":  {change.Value{}, nil},
		"NULL":     {change.Null(), nil},
	} {
		img := change.Item{"pk": change.String("METRICS#r"), "sk": change.String("dTt"), "cpu": tt.cpu}
		got := map[string]string{}
		for id, f := range p.EffectsOf(change.Key{Partition: "METRICS#r", Sort: "dTt"}, img) {
			got[id.ID] = f.String()
		}
		want := map[string]string{}
		for id, f := range tt.want {
			want[id.ID] = f.String()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want (-) and got (+):\n%s", name, diff)
		}
	}
}

func kinds() []rules.Kind { return []rules.Kind{aggregates.Sum, aggregates.Average} }

func cpuEffects(cpu, used string) effects.ByKey {
	all := effects.ByKey{}
	for id, text := range map[string]string{"cpu": cpu, "used": used} {
		if f, err := effects.Parse(text); err == nil {
			all[effects.Key{ID: id}] = f
		}
	}
	return all
}

// TestDerivedRulesSayWhatTheyNeedAndCost has a rule of two on a derived entity, and one on another.
func TestDerivedRulesSayWhatTheyNeedAndCost(t *testing.T) {
	set := kindtest.LoadText(t, `version: 1
table: { keys: [pk, sk] }
entities:
  Sample: { key: { pk: "METRICS#${resourceId}", sk: "${day}T${time}" } }
  Day:    { key: { pk: "METRICS#${resourceId}", sk: "DAY#${day}" }, derived: true }
  Place:  { key: { pk: "METRICS#${resourceId}", sk: "PLACE" } }
rules:
  samples: { count: Sample, as: Day.samples }
  cpu:     { sum: cpu, of: Sample, as: Day.cpu, write_shards: 3 }
  all:     { count: Sample, as: Place.samples }
`)
	var actions []string
	for _, need := range aggregates.Of(kindtest.Rule(t, set, "cpu")).Needs() {
		actions = append(actions, need.Action)
	}
	if diff := cmp.Diff([]string{"dynamodb:PutItem", "dynamodb:DeleteItem"}, actions); diff != "" {
		t.Error(diff)
	}
	if needs := aggregates.Of(kindtest.Rule(t, set, "all")).Needs(); len(needs) > 0 {
		t.Errorf("a count on items of the application needs %v", needs)
	}
	want := "2 WU per change + roll-up once per batch and target, 10 WU per Day that comes or goes, 3 write shards"
	if cost := aggregates.Of(kindtest.Rule(t, set, "cpu")).Cost().Text; cost != want {
		t.Errorf("it costs %q, want %q", cost, want)
	}
}
