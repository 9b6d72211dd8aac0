package projections

import (
	"strings"

	"github.com/dynamill/dynamill/change"
)

// A stamp is the text that the engine leaves in a target's attribute
// `_dm_<rule id>` with every write: context, version and digest, parted by
// spaces. The context names the item, the state table's incarnation and, where
// it has one, the parent or group; a stamp of another context counts as none.
// The digest is that of the values written, so a stamp beside other values
// betrays somebody else's write.
type stamp struct {
	context string
	version version
	digest  string
}

// StampPrefix begins the name of every attribute in which the engine leaves a stamp.
const StampPrefix = "_dm_"

func (s stamp) String() string { return s.context + " " + string(s.version) + " " + s.digest }

// stampContext makes the context of an item's stamp. within is the parent's key or the group.
func stampContext(incarnation string, item change.Key, within string) string {
	return change.Digest(change.String(incarnation), change.String(item.String()), change.String(within))
}

// readStamp returns the stamp in v, if it is one of this context.
func readStamp(v change.Value, context string) (stamp, bool) {
	if v.Kind() != change.KindString {
		return stamp{}, false
	}
	c, rest, ok := strings.Cut(v.Text(), " ")
	ver, digest, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || c != context {
		return stamp{}, false
	}
	return stamp{c, version(ver), digest}, true
}

// untouched reports whether a record left a rule's attributes and stamp on an item as they were.
func untouched(b *binding, old, new change.Image) bool {
	return old.Lookup(b.stamp).Equal(new.Lookup(b.stamp)) && !changed(b.rule.Writes, old, new)
}

// foreign reports whether a record that touched a rule's attributes or stamp
// is somebody else's write. A write of our own leaves a stamp of the item's
// context over the values it digests, higher than the stamp before. An
// insertion is never our own (promise 4): an item put back whole carries
// stamps that were true once.
func foreign(b *binding, context string, old, new change.Image) bool {
	if old == nil {
		return true
	}
	now, ok := readStamp(new.Lookup(b.stamp), context)
	if !ok || now.digest != digestOf(b, new) {
		return true
	}
	before, ok := readStamp(old.Lookup(b.stamp), context)
	if ok && now == before { // our correction of what somebody wrote under our stamp
		return before.digest == digestOf(b, old)
	}
	return ok && now.version <= before.version
}

// stamped reports whether an image carries the rule's stamp in this context.
func stamped(b *binding, context string, img change.Image) bool {
	if img == nil {
		return false
	}
	_, ok := readStamp(img.Lookup(b.stamp), context)
	return ok
}

// digestOf digests what the rule's attributes on an item hold.
func digestOf(b *binding, img change.Image) string {
	vs := make([]change.Value, len(b.rule.Writes))
	for i, name := range b.rule.Writes {
		vs[i] = img.Lookup(name)
	}
	return change.Digest(vs...)
}
