package plan

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Untouched reports whether a record left a rule's attributes and stamp on an item as they were.
func Untouched(b *Binding, old, new change.Image) bool {
	return old.Lookup(b.Stamp).Equal(new.Lookup(b.Stamp)) && !Changed(b.Rule.Writes, old, new)
}

// Foreign reports whether a record that touched a rule's attributes or stamp is another program's write. Our own leaves a stamp of the
// item's context over the values it digests, higher than the one before. An insertion is never our own (promise 4): an item put
// back whole carries stamps that were true once.
func Foreign(b *Binding, context string, old, new change.Image) bool {
	if old == nil {
		return true
	}
	now, ok := stamp.Read(new.Lookup(b.Stamp), context)
	if !ok || !tells(b, now, new) {
		return true
	}
	before, ok := stamp.Read(old.Lookup(b.Stamp), context)
	if ok && now == before { // our correction of what another program wrote under our stamp
		return tells(b, before, old)
	}
	return ok && now.Version <= before.Version
}

// Tied reports whether a record shows the writes of two workers under one version, each with a true stamp. Both are our
// own; the later one may be of the worker that read earlier, so a worker looks again.
func Tied(b *Binding, context string, old, new change.Image) bool {
	before, is := stamp.Read(old.Lookup(b.Stamp), context)
	now, stays := stamp.Read(new.Lookup(b.Stamp), context)
	return is && stays && now.Version == before.Version && now != before && tells(b, before, old) && tells(b, now, new)
}

// tells reports whether a stamp digests what the rule's attributes on an item hold. A mark may stand behind.
func tells(b *Binding, s stamp.Stamp, img change.Image) bool {
	return strings.HasPrefix(s.Digest, DigestOf(b, img))
}

// Stamped reports whether an image carries the rule's stamp in this context.
func Stamped(b *Binding, context string, img change.Image) bool {
	if img == nil {
		return false
	}
	_, ok := stamp.Read(img.Lookup(b.Stamp), context)
	return ok
}

// Holds reports whether an item holds anything that a rule writes, its stamp included.
func Holds(b *Binding, img change.Image) bool {
	return img.Lookup(b.Stamp).Kind() != change.KindAbsent || slices.ContainsFunc(b.Rule.Writes, func(name string) bool {
		return img.Lookup(name).Kind() != change.KindAbsent
	})
}

// DigestOf digests what the rule's attributes on an item hold.
func DigestOf(b *Binding, img change.Image) string { return Digest(b, ValuesOf(b.Rule, img)) }

// Digest digests values of the rule's attributes, given in their order, for a stamp.
func Digest(b *Binding, values []change.Value) string { return stamp.Digest(b.Rule.ByName(values)) }

// ValuesOf are the values that an item has of the attributes that a rule writes.
func ValuesOf(r *rules.Rule, img change.Image) []change.Value {
	vs := make([]change.Value, len(r.Writes))
	for i, name := range r.Writes {
		vs[i] = img.Lookup(name)
	}
	return vs
}

// Covered are those of a rule's attributes that hold what the digest of its stamp tells.
func (b *Binding) Covered(digest string, img change.Image) []string {
	var names []string
	length, byName := stamp.DigitsOfEach(len(b.Rule.Writes)), slices.Sorted(slices.Values(b.Rule.Writes))
	for _, name := range b.Rule.Writes {
		i, _ := slices.BinarySearch(byName, name)
		if one := stamp.ShortDigest(length, img.Lookup(name)); len(digest) >= (i+1)*length && digest[i*length:(i+1)*length] == one {
			names = append(names, name)
		}
	}
	return names
}

// MadeAttribute marks an item that the engine made: only such an item is ever deleted (promise 8). Its value is MadeMark of the item's
// own key, so that a clone under another key is not taken for one.
const MadeAttribute = "_dm"

// MadeMark is the value of MadeAttribute on an item that the engine made.
func MadeMark(item change.Key) string { return change.Digest(change.String(item.String())) }

// IsMade reports whether the engine made the item that stands under a key.
func IsMade(item change.Key, img change.Image) bool {
	if img == nil {
		return false
	}
	mark := img.Lookup(MadeAttribute) // most items have none: for these, the mark is not worked out
	return mark.Kind() != change.KindAbsent && mark.Equal(change.String(MadeMark(item)))
}

// Released are the attributes that a rule which makes items gives up on one of the application's, but for those that tell its entity.
// On an item of another entity an attribute goes only if the stamp proves that the rule wrote it.
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
