package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// MadeAttribute marks an item that the engine made. Only such an item is ever
// deleted (promise 8). Its value is MadeMark of the item's own key, so that a
// clone under another key is not taken for one.
const MadeAttribute = "_dm"

// MadeMark is the value of MadeAttribute on an item that the engine made.
func MadeMark(item change.Key) string { return change.Digest(change.String(item.String())) }

// IsMade reports whether the engine made the item that stands under a key.
func IsMade(item change.Key, img change.Image) bool {
	return img != nil && img.Lookup(MadeAttribute).Equal(change.String(MadeMark(item)))
}

// Released are the attributes that a rule which makes items gives up on one of the application's:
// those that it writes, but for what tells the item's entity. On an item that has
// become one of another entity only what the stamp proves to be the rule's goes.
func Released(b *Binding, img change.Image) []string {
	if !b.Rule.Target.Is(img) {
		stamp, _ := parseStamp(img.Lookup(b.Stamp))
		if stamp.Digest != DigestOf(b, asTarget{img, b.Rule.Target}) {
			return nil
		}
	}
	return slices.DeleteFunc(slices.Clone(b.Rule.Writes), func(name string) bool {
		return slices.ContainsFunc(b.Rule.Target.Equals, func(eq rules.Equals) bool { return eq.Attribute == name })
	})
}

// asTarget is an item as if it were of an entity.
type asTarget struct {
	change.Image
	entity *rules.Entity
}

// Lookup returns an attribute's value.
func (a asTarget) Lookup(name string) change.Value {
	for _, eq := range a.entity.Equals {
		if eq.Attribute == name {
			return eq.Value
		}
	}
	return a.Image.Lookup(name)
}
