package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
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
// those that it writes, but for what tells the item's entity. On an item that has become one
// of another entity, an attribute goes only if the stamp proves that the rule wrote its value.
func Released(b *Binding, img change.Image) []string {
	names := slices.Clone(b.Rule.Writes)
	if !b.Rule.Target.Is(img) {
		written, _ := stamp.Parse(img.Lookup(b.Stamp))
		names = b.Covered(written.Digest, img)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(b.Rule.Target.Equals, func(eq rules.Equals) bool { return eq.Attribute == name })
	})
}
