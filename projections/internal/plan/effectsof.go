package plan

import "github.com/dynamill/dynamill/change"

// EffectsOf works out what an image causes, by rule id and locator. A nil image causes nothing.
func (bs *Bindings) EffectsOf(key change.Key, img change.Image) Effects {
	return bs.effectsOf(key, img)
}

// LocatorID is the id under which effects hold a locator.
func LocatorID(locator string) string { return locatorPrefix + locator }

// FormerlyOn are what retired rules left on an item.
func (p *Planner) FormerlyOn(key change.Key, img change.Image) *Asked[ItemRule, Leftover] {
	pl := &Changes{}
	if img != nil && p.WroteAt(key) {
		p.Formerly(pl, key, img)
	}
	return &pl.Leftovers
}
