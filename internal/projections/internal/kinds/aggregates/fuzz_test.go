package aggregates_test

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules"
)

// FuzzTotal adds up any rows that another program has written in the place of accumulators and
// locators, and reads any stamp. Neither may panic or give a negative count.
func FuzzTotal(f *testing.F) {
	for _, text := range []string{"", "1", "-1", "0.5", "1e125", "99999999999999999999", "F#1", "0zx", "00y6zzzzzzzzzz-d"} {
		for kind := range byte(5) {
			f.Add(text, "1", kind)
		}
	}
	sets := []*rules.Set{kindtest.Load(f, "blog.yaml"), kindtest.Load(f, "shop.yaml")}
	f.Fuzz(func(t *testing.T, x, y string, kind byte) {
		row := change.Item{}
		for i, name := range []string{"value", "ops", "members", "items", "changes", "listed"} {
			row[name] = []change.Value{
				change.String(x), change.Number(x), change.Set(change.KindStringSet, []string{x, y}), change.Bool(true), change.Number(y),
			}[(int(kind)+i)%5]
		}
		for _, set := range sets {
			ids := map[*rules.Rule]string{}
			for _, r := range set.Rules {
				ids[r] = r.Name
			}
			p := &plan.Planner{Bindings: plan.Bind(set, ids), Epoch: 1, Incarnation: "i"}
			for _, r := range set.Rules {
				if aggregates.Of(r) != nil {
					fuzzRule(t, p, p.Of(r), attributes.ItemToTable(row), x)
				}
			}
		}
	})
}

func fuzzRule(t *testing.T, p *plan.Planner, b *plan.Binding, row table.Row, held string) {
	g := plan.GroupRef{Binding: b, Group: "g"}
	total := groups.AddUp(g, map[table.Key]table.Row{state.AccumulatorKey(g, 0): row, state.LocatorKey(b.Locator, "g"): row})
	if total.Operations < 0 || total.Changes < 0 {
		t.Errorf("%s: a negative count: %+v", b.ID, total)
	}
	key := change.Key{Partition: "P"}
	for _, text := range []string{held, stamp.Context(p.Incarnation, key, "g") + held} {
		if n := (&audit.Auditor{Planner: p}).CountShown(b, key, "g", change.Item{b.Stamp: change.String(text)}); n < 0 {
			t.Errorf("%s: a negative count: %d", b.ID, n)
		}
	}
}
