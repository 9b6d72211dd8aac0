package plan

import (
	"maps"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/rules"
)

// ParseEffect reads what String wrote of an effect under a key.
func (bs *Bindings) ParseEffect(k effects.Key, text string) (effects.Effect, error) {
	f, err := effects.Parse(text)
	if b := bs.AnyByID(k.ID); b != nil && f.Kind == effects.OfFamily {
		if owner, ok := b.Family.(Owner); ok {
			return owner.ReadEffect(text)
		}
	}
	return f, err
}

// MatchOf says which entity an image is of: none if it is nil, or matches none.
func (bs *Bindings) MatchOf(key change.Key, img change.Image) (m rules.Match) {
	if img != nil {
		m, _ = bs.Set.Identify(key, img)
	}
	return m
}

// EffectsOf works out what an image causes. A nil image causes nothing.
func (bs *Bindings) EffectsOf(key change.Key, img change.Image) effects.ByKey {
	fs, m := effects.ByKey{}, bs.MatchOf(key, img)
	if m.Entity == nil {
		return fs
	}
	id := ""
	tell := func(what string, f effects.Effect) { fs[effects.Key{ID: id, For: effects.Purpose(what)}] = f }
	for _, r := range m.Entity.Sources {
		b := bs.Of(r)
		id = b.ID
		err := b.Family.(Feeder).Effects(b, &m, img, tell)
		if err == nil && r.Each.Given() {
			err = r.CheckElements(fs.TextsUnder(id))
		}
		if err != nil {
			maps.DeleteFunc(fs, func(k effects.Key, _ effects.Effect) bool { return k.ID == id })
			tell("", effects.ParkedBy(err))
		}
	}
	if m.Entity.Located {
		locator := effects.Key{ID: effects.LocatorID(bs.LocatorOf(m.Entity))}
		if value, ok, err := m.Entity.UniqueValue(&m, img); err != nil {
			fs[locator] = effects.ParkedBy(err)
		} else if ok {
			fs[locator] = effects.Effect{Kind: effects.Located, Group: value}
		}
	}
	return fs
}

// GroupRef names what several sources make together: an aggregate by its group, a claimed item by its key, or the children of a parent by
// its unique value. It is brought up to date after the moves that touch it.
type GroupRef struct {
	*Binding
	Group string
}

// String is the group as a due mark names it.
func (g GroupRef) String() string { return g.ID + " " + g.Group }

// groups are the aggregates and claimed items that effects touch. A locator touches all that find their target through it.
func (bs *Bindings) groups(fs effects.ByKey, add func(GroupRef)) {
	for _, k := range fs.Keys() {
		f := fs[k]
		if b := bs.ByID(k.ID); b != nil && (f.Kind == effects.Contribution || f.Kind == effects.OfFamily && b.Claimed()) {
			add(GroupRef{b, f.Group})
		}
		if locator, _ := effects.LocatorIn(k.ID); f.Kind == effects.Located {
			for _, b := range bs.InForce {
				if b.Rule.ByUnique && b.Locator == locator {
					add(GroupRef{b, f.Group})
				}
			}
		}
	}
}
