package plan

import "github.com/dynamill/dynamill/change"

// EffectsOf works out what an image causes, by rule id and locator. A nil image causes nothing.
func (bs *Bindings) EffectsOf(key change.Key, img change.Image) Effects {
	return bs.effectsOf(key, img)
}

// LocatorID is the id under which effects hold a locator.
func LocatorID(locator string) string { return locatorPrefix + locator }

// LeftoversOn are what rules left on an item on which they do not write any more:
// retired ones, and those that write on items of another entity.
func (p *Planner) LeftoversOn(key change.Key, img change.Image) *Asked[ItemRule, Leftover] {
	pl := &Changes{}
	if img != nil {
		m, _ := p.Set.Identify(key, img)
		p.leftovers(pl, key, 0, img, m.Entity)
		p.formerly(pl, key, 0, nil, img, m.Entity)
	}
	return &pl.Leftovers
}
