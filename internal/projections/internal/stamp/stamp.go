package stamp

import (
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// Stamp is what the engine leaves on a target with every write: context, version and digest, with nothing between. The context names the
// item, the incarnation and the parent or group; a stamp of another context counts as none. The digest has a part for each value
// written: other values beside it betray another program's write.
type Stamp struct {
	Context string
	Version Version
	Digest  string
}

// Prefix begins the name of every attribute in which the engine leaves a stamp.
const Prefix = "_dm_"

// A context has 48 bits, and so have the digests of one or two values: docs/adr/0025-small-stamps.md says what two that
// are equal by accident do.
const (
	contextDigits = 8
	// DigestDigits is the length of the digest of all that a rule writes together.
	DigestDigits = 8
)

// String is the stamp as the attribute holds it.
func (s Stamp) String() string { return s.Context + s.Version.inStamp() + s.Digest }

// Context makes the context of an item's stamp. within is the parent's key or the group.
func Context(incarnation string, item change.Key, within string) string {
	return ShortDigest(contextDigits, change.String(incarnation), change.String(item.String()), change.String(within))
}

// Behind sorts after every stamp of a context and version, whatever its digest.
func Behind(context string, v Version) string { return context + string(v) + "~" }

// ShortDigest is the first part of a digest of values, of at most ten digits with 6 bits each.
func ShortDigest(length int, values ...change.Value) string {
	n, _ := strconv.ParseUint(change.Digest(values...), 16, 64) // Digest returns 16 hexadecimal digits
	return string(appendDigits(make([]byte, 0, length), n>>(64-bitsInDigit*length), length))
}

// Read returns the stamp in v, if it is one of this context.
func Read(v change.Value, context string) (Stamp, bool) {
	s, ok := Parse(v)
	if !ok || s.Context != context {
		return Stamp{}, false
	}
	return s, true
}

// Parse returns the stamp in v, whatever its context. What cannot be read is no stamp.
func Parse(v change.Value) (Stamp, bool) {
	if v.Kind() != change.KindString || len(v.Text()) < contextDigits {
		return Stamp{}, false
	}
	context, rest := v.Text()[:contextDigits], v.Text()[contextDigits:]
	version, digest, ok := cutInStamp(rest)
	_, digits := readDigits(digest)
	return Stamp{context, version, digest}, ok && digits
}

// Digest digests values one by one, so that each attribute tells whether it still has the value that the rule wrote.
func Digest(values []change.Value) string {
	var text strings.Builder
	for _, v := range values {
		text.WriteString(ShortDigest(DigitsOfEach(len(values)), v))
	}
	return text.String()
}

// markDigits is the length of a mark.
const markDigits = 2

// AppendedNumber is a number from 0 to 4095 behind the digest of a stamp: what a rule tells of the item beside its values.
func AppendedNumber(n int) string {
	return string(appendDigits(make([]byte, 0, markDigits), uint64(n), markDigits)) //nolint:gosec // it is not negative
}

// ReadAppendedNumber reads what AppendedNumber wrote.
func ReadAppendedNumber(text string) (int, bool) {
	n, ok := readDigits(text)
	return int(n), ok && len(text) == markDigits //nolint:gosec // of two digits
}

// DigitsOfEach is the length of the digest of each of several values: 48 bits of all together, unless the digest of
// one would be shorter than 18 bits.
func DigitsOfEach(values int) int { return max(DigestDigits/max(values, 1), 3) } // a mirror rule may write no attribute
