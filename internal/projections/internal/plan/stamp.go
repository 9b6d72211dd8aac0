package plan

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// Stamp is the text that the engine leaves in a target's attribute
// `_dm_<rule id>` with every write: context, version and digest, parted by
// spaces. The context names the item, the state table's incarnation and, where
// it has one, the parent or group; a stamp of another context counts as none.
// The digest is that of the values written, of copies one for each with dots between
// them, so a stamp beside other values betrays another program's write.
type Stamp struct {
	Context string
	Version Version
	Digest  string
}

// StampPrefix begins the name of every attribute in which the engine leaves a stamp.
const StampPrefix = "_dm_"

// String is the stamp as the attribute holds it.
func (s Stamp) String() string { return s.Context + " " + string(s.Version) + " " + s.Digest }

// StampContext makes the context of an item's stamp. within is the parent's key or the group.
func StampContext(incarnation string, item change.Key, within string) string {
	return change.Digest(change.String(incarnation), change.String(item.String()), change.String(within))
}

// ReadStamp returns the stamp in v, if it is one of this context.
func ReadStamp(v change.Value, context string) (Stamp, bool) {
	s, ok := parseStamp(v)
	if !ok || s.Context != context {
		return Stamp{}, false
	}
	return s, true
}

// parseStamp returns the stamp in v, whatever its context. What cannot be read is no stamp.
func parseStamp(v change.Value) (Stamp, bool) {
	if v.Kind() != change.KindString {
		return Stamp{}, false
	}
	context, rest, _ := strings.Cut(v.Text(), " ")
	text, digest, ok := strings.Cut(rest, " ")
	version, readable := ParseVersion(text)
	return Stamp{context, version, digest}, ok && readable
}

// Untouched reports whether a record left a rule's attributes and stamp on an item as they were.
func Untouched(b *Binding, old, new change.Image) bool {
	return old.Lookup(b.Stamp).Equal(new.Lookup(b.Stamp)) && !Changed(b.Rule.Writes, old, new)
}

// Foreign reports whether a record that touched a rule's attributes or stamp
// is another program's write. A write of our own leaves a stamp of the item's
// context over the values it digests, higher than the stamp before. An
// insertion is never our own (promise 4): an item put back whole carries
// stamps that were true once.
func Foreign(b *Binding, context string, old, new change.Image) bool {
	if old == nil {
		return true
	}
	now, ok := ReadStamp(new.Lookup(b.Stamp), context)
	if !ok || now.Digest != DigestOf(b, new) {
		return true
	}
	before, ok := ReadStamp(old.Lookup(b.Stamp), context)
	if ok && now == before { // our correction of what another program wrote under our stamp
		return before.Digest == DigestOf(b, old)
	}
	return ok && now.Version <= before.Version
}

// Stamped reports whether an image carries the rule's stamp in this context.
func Stamped(b *Binding, context string, img change.Image) bool {
	if img == nil {
		return false
	}
	_, ok := ReadStamp(img.Lookup(b.Stamp), context)
	return ok
}

// Holds reports whether an item holds anything that a rule writes, its stamp included.
func Holds(b *Binding, img change.Image) bool {
	return img.Lookup(b.Stamp).Kind() != change.KindAbsent || slices.ContainsFunc(b.Rule.Writes, func(name string) bool {
		return img.Lookup(name).Kind() != change.KindAbsent
	})
}

// DigestOf digests what the rule's attributes on an item hold.
func DigestOf(b *Binding, img change.Image) string {
	vs := make([]change.Value, len(b.Rule.Writes))
	for i, name := range b.Rule.Writes {
		vs[i] = img.Lookup(name)
	}
	return b.Digest(vs)
}

// Digest digests values of the attributes that a rule writes, for its stamp.
func (b *Binding) Digest(values []change.Value) string {
	if own, ok := b.Family.(Digester); ok {
		return own.Digest(values)
	}
	return change.Digest(values...)
}

// Covered are those of a rule's attributes that hold what the digest of its stamp tells.
func (b *Binding) Covered(digest string, img change.Image) []string {
	if own, ok := b.Family.(Digester); ok {
		return own.Covered(b, digest, img)
	}
	if digest == DigestOf(b, img) {
		return b.Rule.Writes
	}
	return nil
}
