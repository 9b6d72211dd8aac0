package population

import (
	"maps"
	"slices"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestRulesHaveEffectsSoon(t *testing.T) {
	const populations, writes, lookEvery = 300, 100, 10
	var idle, ruleTotal, rulesIdle int
	for seed := range populations {
		r := source(seed)
		p := Draw(r, projections.Kinds)
		items := map[change.Key]change.Item{}
		had := map[string]bool{}
		for n := range writes {
			it := p.Item(r)
			items[p.Key(it)] = it
			if n%lookEvery == lookEvery-1 && len(had) < len(p.Set.Rules) {
				addEffects(p, items, had)
			}
		}
		before := rulesIdle
		for _, rule := range p.Set.Rules {
			ruleTotal++
			if !had[rule.Name] {
				rulesIdle++
				t.Logf("seed %d (%s): rule %s has no effect after %d writes", seed, p.Name, rule.Name, writes)
			}
		}
		if rulesIdle > before {
			idle++
		}
	}
	t.Logf("%d of %d populations have an idle rule; %d of %d rules are idle", idle, populations, rulesIdle, ruleTotal)
	if idle*7 > populations {
		t.Errorf("%d of %d populations have a rule without effect after %d writes, more than a seventh", idle, populations, writes)
	}
	if rulesIdle*30 > ruleTotal {
		t.Errorf("%d of %d rules have no effect after %d writes, more than a thirtieth", rulesIdle, ruleTotal, writes)
	}
}

// addEffects adds the rules that have an effect on something that exists, once
// everything that rules derive from the items is there.
func addEffects(p *Population, items map[change.Key]change.Item, had map[string]bool) {
	items = settled(p, items)
	displayed := map[*rules.Rule]map[string]bool{}
	each := func(do func(key change.Key, m *rules.Match, it change.Item)) {
		for key, it := range items {
			if m, ok := p.Set.Identify(key, it); ok {
				do(key, &m, it)
			}
		}
	}
	each(func(_ change.Key, m *rules.Match, it change.Item) {
		for _, r := range m.Entity.Displays {
			if displayed[r] == nil {
				displayed[r] = map[string]bool{}
			}
			if group, ok, err := r.Form.(rules.Adder).GroupOf(m, it); ok && err == nil {
				displayed[r][group] = true
			}
		}
	})
	each(func(_ change.Key, m *rules.Match, it change.Item) {
		for _, r := range m.Entity.Sources {
			if r.MakesItems() {
				if _, ok, err := r.Form.(rules.Maker).Item(m, it); ok && err == nil {
					had[r.Name] = true
				}
			} else if c, ok, err := r.Form.(rules.Adder).Contribution(m, it); ok && err == nil && displayed[r][c.Group] {
				had[r.Name] = true
			}
		}
		for _, r := range m.Entity.Own {
			had[r.Name] = had[r.Name] || !it.Lookup(r.Writes[0]).Missing()
		}
		for _, r := range m.Entity.Children {
			parent, ok, err := r.ParentKey(m, it)
			if of, known := p.Set.Identify(parent, items[parent]); ok && err == nil && known && of.Entity == r.Source {
				had[r.Name] = true
			}
		}
	})
}

// settled adds what is derived, as the oracle finds it missing.
func settled(p *Population, items map[change.Key]change.Item) map[change.Key]change.Item {
	items = maps.Clone(items)
	for range 2*len(p.Set.Rules) + 2 {
		drift := oracle.Drift(p.Set, slices.Collect(maps.Values(items)))
		if len(drift) == 0 {
			break
		}
		for _, d := range drift {
			it := maps.Clone(items[d.Key])
			switch {
			case d.Attribute == "" && d.Want.Kind() == change.KindAbsent:
				delete(items, d.Key)
				continue
			case d.Attribute == "":
				it = maps.Clone(change.Item(d.Want.Map()))
			default:
				s := slot{name: d.Attribute}
				s.write(it, d.Want)
			}
			items[d.Key] = it
		}
	}
	return items
}
