package effects

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Key says under which rule or locator an item has an effect, and what for, if it can have several there.
type Key struct{ ID, For string }

// String is the key in words. No id holds a blank.
func (k Key) String() string {
	if k.For == "" {
		return k.ID
	}
	return k.ID + " " + k.For
}

// purposeBytesMax is how long a text may be that stands in an effect key as it is. So an entry with many effects stays small.
const purposeBytesMax = 64

// purposeDigestMark begins a purpose that stands for a longer text.
const purposeDigestMark = "~"

// Purpose is what an effect is for, of a text that tells it from the others under its rule: this text, or the digest of a long one.
func Purpose(text string) string {
	if len(text) <= purposeBytesMax && !strings.HasPrefix(text, purposeDigestMark) {
		return text
	}
	digest := sha256.Sum256([]byte(text))
	return purposeDigestMark + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// Compare orders keys by their ids first.
func (k Key) Compare(l Key) int {
	return cmp.Or(cmp.Compare(k.ID, l.ID), cmp.Compare(k.For, l.For))
}

// ByKey are the effects of one item.
type ByKey map[Key]Effect

const locatorPrefix = "@"

// LocatorID is the id under which effects hold a locator.
func LocatorID(locator string) string { return locatorPrefix + locator }

// LocatorIn is the locator (by default its entity's name) that an id names, if it names one.
func LocatorIn(id string) (string, bool) { return strings.CutPrefix(id, locatorPrefix) }

// Keys are those under which there is an effect, sorted.
func (fs ByKey) Keys() []Key { return slices.SortedFunc(maps.Keys(fs), Key.Compare) }

// In is the effect under an id that makes the item a part of a group; of no kind if there is none.
func (fs ByKey) In(id, group string) (Key, Effect) {
	for _, k := range fs.Keys() {
		if k.ID == id && fs[k].Group == group && fs[k].Kind != Parked {
			return k, fs[k]
		}
	}
	return Key{ID: id}, Effect{}
}

// ParkedUnder is why the item is parked under an id, by the first effect that says so; of no kind if none does.
func (fs ByKey) ParkedUnder(id string) (first Effect) {
	what := ""
	for k, f := range fs {
		if k.ID == id && f.Kind == Parked && (first.Kind == 0 || k.For < what) {
			first, what = f, k.For
		}
	}
	return first
}

// Same reports whether others leave nothing to write.
func (fs ByKey) Same(gs ByKey) bool { return maps.EqualFunc(fs, gs, Effect.Same) }

// Without are the effects that the others do not have in the same way.
func (fs ByKey) Without(gs ByKey) ByKey {
	left := ByKey{}
	for k, f := range fs {
		if !f.Same(gs[k]) {
			left[k] = f
		}
	}
	return left
}

// WithoutElements are the effects, but for those of elements that the others have in the same way: if one element of many
// comes or goes, what hangs on the others is not rolled up.
func (fs ByKey) WithoutElements(gs ByKey) ByKey {
	left := maps.Clone(fs)
	maps.DeleteFunc(left, func(k Key, f Effect) bool { return k.For != "" && f.Same(gs[k]) })
	return left
}

// TextsUnder are what the effects under an id are parts of, with their values of `per` and amounts, or with their members.
func (fs ByKey) TextsUnder(id string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k, f := range fs {
			text := f.Group + f.Per + f.Amount.String()
			if f.Member != nil {
				text = f.String()
			}
			if k.ID == id && !yield(text) {
				return
			}
		}
	}
}
