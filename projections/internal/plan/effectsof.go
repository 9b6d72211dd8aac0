package plan

import "github.com/dynamill/dynamill/change"

// EffectsOf works out what an image causes, by rule id and locator. A nil image causes nothing.
func (bs *Bindings) EffectsOf(key change.Key, img change.Image) Effects {
	return bs.effectsOf(key, img)
}

// DigestOfMirror is the digest that an effect of this content has, and the item when it is right.
func DigestOfMirror(b *Binding, attributes map[string]change.Value) string {
	return DigestOf(b, change.Item(attributes))
}

// LocatorID is the id under which effects hold the locator of an entity.
func LocatorID(entity string) string { return locatorPrefix + entity }
