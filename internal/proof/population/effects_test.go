package population

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestRulesHaveEffectsSoon(t *testing.T) {
	const populations, writes = 300, 100
	var idle, ruleTotal, rulesIdle int
	for seed := range populations {
		r := source(seed)
		p := Draw(r, projections.Kinds)
		had := map[string]bool{}
		lookForEffects(p, r, writes, had)
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
	if idle*10 > populations {
		t.Errorf("%d of %d populations have a rule without effect after %d writes, more than a tenth", idle, populations, writes)
	}
	if rulesIdle*50 > ruleTotal {
		t.Errorf("%d of %d rules have no effect after %d writes, more than a fiftieth", rulesIdle, ruleTotal, writes)
	}
}

// TestWrittenRulesHaveEffects finds rules whose values no population has: the histories would say nothing about them.
func TestWrittenRulesHaveEffects(t *testing.T) {
	const rounds, writes = 5, 100
	for _, p := range Written(projections.Kinds) {
		had := map[string]bool{}
		for seed := range rounds {
			lookForEffects(p, source(seed), writes, had)
		}
		for _, rule := range p.Set.Rules {
			if !had[rule.Name] {
				t.Errorf("%s: rule %s has no effect in %d rounds of %d writes", p.Name, rule.Name, rounds, writes)
			}
		}
	}
}

// lookForEffects writes items and adds the rules that have an effect on the way, now and then.
func lookForEffects(p *Population, r *rand.Rand, writes int, had map[string]bool) {
	const lookEvery = 10
	items := map[change.Key]change.Item{}
	for n := range writes {
		it := p.Item(r)
		items[p.Key(it)] = it
		if n%lookEvery == lookEvery-1 && len(had) < len(p.Set.Rules) {
			addEffects(p, items, had)
		}
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
	owned := map[*rules.Entity]map[string]bool{} // the unique values of its items
	each(func(_ change.Key, m *rules.Match, it change.Item) {
		if value, ok, err := m.Entity.UniqueValue(m, it); ok && err == nil {
			if owned[m.Entity] == nil {
				owned[m.Entity] = map[string]bool{}
			}
			owned[m.Entity][value] = true
		}
		for _, r := range m.Entity.Displays {
			if displayed[r] == nil {
				displayed[r] = map[string]bool{}
			}
			if group, ok, err := r.GroupOf(m, it); ok && err == nil {
				displayed[r][group] = true
			}
		}
	})
	each(func(_ change.Key, m *rules.Match, it change.Item) {
		for _, r := range m.Entity.Sources {
			if r.MakesItems() && !r.Derives() {
				_ = r.ForEach(m, it, func(_ string, m *rules.Match) error {
					_, ok, err := r.Form.(rules.Maker).Item(m, it)
					if ok && err == nil {
						had[r.Name] = true
					}
					return err
				})
				continue
			}
			adder, adds := r.Form.(rules.Adder)
			_ = r.ForEach(m, it, func(_ string, m *rules.Match) error {
				if !adds { // what a rule shows of its items by their order is known to the oracle
					had[r.Name] = true
					return nil
				}
				c, ok, err := adder.Contribution(m, it)
				if ok && err == nil && displayed[r][c.Group] {
					had[r.Name] = true
				}
				return err
			})
		}
		for _, r := range m.Entity.Own {
			if !it.Lookup(r.Writes[0]).Missing() {
				had[r.Name] = true // never false: the caller stops looking once every rule is in the map
			}
		}
		for _, r := range m.Entity.Children {
			parent, ok, err := r.JoinedKey(m, it)
			of, known := p.Set.Identify(parent, items[parent])
			if known = known && of.Entity == r.Source; r.ByUnique {
				known = owned[r.Source][parent.Partition]
			}
			if ok && err == nil && known {
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
