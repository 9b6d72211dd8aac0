package stamp

import (
	"fmt"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
)

// Version orders what the engine writes: by rules epoch, then by a position or a count of operations, then by how often a source was
// rederived. Its text sorts as it compares, also with more text behind it, so DynamoDB can compare it. "" is none.
// docs/state-table.md says how each part is written.
type Version string

// The first character of a place. The others begin the time of a stream label.
const (
	placeNone  = '-' // the zero position
	placeCount = '0'
	placeLabel = 'z' // a position in a stream whose label is no time: the label follows, up to labelEnd
	labelEnd   = "#"
)

// The time of a stream label is written in milliseconds since 1970.
const (
	labelForm   = "2006-01-02T15:04:05.000"
	timeDigits  = 7
	timeMin     = 2 << (bitsInDigit * (timeDigits - 1))
	timeBeyond  = 63 << (bitsInDigit * (timeDigits - 1))
	versionRoom = 64 // bytes of nearly every version
)

// ParseVersion reads a version that a table holds; false for a text that no function here writes.
func ParseVersion(text string) (Version, bool) {
	parts, rest, ok := cutVersion(text)
	if ok && rest != "" {
		parts.Times, rest, ok = cutTimes(rest)
		ok = ok && rest == "" && parts.Times > 0
	}
	if !ok || string(parts.version()) != text {
		return "", false
	}
	return Version(text), true
}

// ReadVersion reads the version that an attribute holds.
func ReadVersion(v change.Value) (Version, bool) {
	if v.Kind() != change.KindString {
		return "", false
	}
	return ParseVersion(v.Text())
}

// Parts are what a version is made of.
type Parts struct {
	Epoch    int             // of the rules
	Position change.Position // zero if none, or a count
	Count    int64           // of operations, if Counted
	Counted  bool
	Times    int64 // that the source was rederived at the position
}

// Parts are what v is made of.
func (v Version) Parts() Parts {
	parts, rest, _ := cutVersion(string(v))
	parts.Times, _, _ = cutTimes(rest)
	return parts
}

// Words tell people what v says.
func (v Version) Words() string {
	p := v.Parts()
	text := fmt.Sprintf("rules epoch %d, ", p.Epoch)
	switch {
	case p.Counted && p.Count >= 1<<GenerationShift:
		operations := p.Count & (1<<GenerationShift - 1)
		text += fmt.Sprintf("generation %d, %s", p.Count>>GenerationShift, printable.Counted(operations, "operation"))
	case p.Counted:
		text += printable.Counted(p.Count, "operation")
	case p.Position.IsZero():
		text += "no record"
	default:
		text += "record " + p.Position.SequenceNumber() + " of stream " + p.Position.Epoch()
	}
	if p.Times > 0 {
		text += fmt.Sprintf(", filled or rederived since: %d", p.Times)
	}
	return text
}

func (p Parts) version() Version {
	v := VersionAt(p.Epoch, p.Position)
	if p.Counted {
		v = VersionOf(p.Epoch, p.Count)
	}
	if p.Times > 0 {
		v = v.Rederived(p.Times)
	}
	return v
}

// skipPlain reads over a position at the beginning of a text, if it is of the form that nearly all have: by the time of a stream, written
// as VersionAt does. Every record of a child that the engine wrote has two of them, which only have to be compared.
func skipPlain(text string) (rest string, ok bool) {
	epoch, rest, ok := cutNumber(text)
	if !ok || epoch > EpochMax || len(rest) < timeDigits {
		return "", false
	}
	if ms, ok := readDigits(rest[:timeDigits]); !ok || ms < timeMin || ms >= timeBeyond {
		return "", false
	}
	return skipPlainSequence(rest[timeDigits:])
}

// cutVersion reads epoch and place at the beginning of a text. It does not check that VersionAt or VersionOf wrote it: ParseVersion does.
func cutVersion(text string) (p Parts, rest string, ok bool) {
	epoch, rest, ok := cutNumber(text)
	if !ok || rest == "" || epoch > EpochMax {
		return p, "", false
	}
	p.Epoch = int(epoch)
	switch rest[0] {
	case placeNone:
		return p, rest[1:], true
	case placeCount:
		var n uint64
		n, rest, ok = cutNumber(rest[1:])
		p.Count, p.Counted = int64(n), true
		return p, rest, ok && p.Count >= 0
	}
	label, rest, ok := cutLabel(rest)
	if !ok {
		return p, "", false
	}
	sequence, rest, ok := cutSequence(rest)
	if !ok {
		return p, "", false
	}
	var err error
	p.Position, err = change.NewPosition(label, sequence)
	return p, rest, err == nil
}

// cutLabel reads a stream label at the beginning of a text.
func cutLabel(text string) (label, rest string, ok bool) {
	if text[0] == placeLabel {
		return strings.Cut(text[1:], labelEnd)
	}
	if len(text) < timeDigits {
		return "", "", false
	}
	ms, ok := readDigits(text[:timeDigits])
	return time.UnixMilli(int64(ms)).UTC().Format(labelForm), text[timeDigits:], ok
}

// cutTimes reads a number of times at the beginning of a text.
func cutTimes(text string) (int64, string, bool) {
	n, rest, ok := cutNumber(text)
	return int64(n), rest, ok && n <= TimesMax
}

// VersionAt is the version of a position under a rules epoch.
func VersionAt(epoch int, p change.Position) Version {
	text := beginVersion(epoch)
	switch ms, isTime := labelTime(p.Epoch()); {
	case p.IsZero():
		return Version(append(text, placeNone))
	case isTime:
		text = appendDigits(text, ms, timeDigits)
	default:
		text = append(append(append(text, placeLabel), p.Epoch()...), labelEnd...)
	}
	return Version(appendSequence(text, p.SequenceNumber()))
}

// labelTime is the time of a stream label, in milliseconds since 1970; false for another form, which a table's labels share.
func labelTime(label string) (uint64, bool) {
	t, err := time.Parse(labelForm, label)
	ms := t.UnixMilli()
	if err != nil || ms < timeMin || ms >= timeBeyond || string(t.AppendFormat(make([]byte, 0, len(labelForm)), labelForm)) != label {
		return 0, false
	}
	return uint64(ms), true
}

// GenerationShift is how far the number of a generation stands above the operations in a count of both: that leaves room for a thousand
// operations a second for 500 years.
const GenerationShift = 44

// VersionOf is the version of a count of operations under a rules epoch.
func VersionOf(epoch int, operations int64) Version {
	return Version(appendNumber(append(beginVersion(epoch), placeCount), uint64(max(operations, 0))))
}

func beginVersion(epoch int) []byte {
	return appendNumber(make([]byte, 0, versionRoom), uint64(max(epoch, 0)))
}

// TimesMax is the highest number of times that a version has room for.
const TimesMax = 999_999_999_999

// EpochMax is the highest rules epoch: rules change less often than that.
const EpochMax = 100_000

// EpochStart is the lowest version of the same rules epoch.
func (v Version) EpochStart() Version { return VersionAt(v.RulesEpoch(), change.Position{}) }

// BehindEpoch sorts after every version of a rules epoch, and before those of the next. It is a bound for conditions, not a version.
func BehindEpoch(epoch int) Version { return Version(beginVersion(epoch)) + "~" }

// RulesEpoch is the number of v's rules epoch; 0 for "".
func (v Version) RulesEpoch() int {
	n, _, _ := cutNumber(string(v)) // none is 0
	return int(min(n, EpochMax))
}

// place is what follows the rules epoch.
func (v Version) place() string {
	_, place, _ := cutNumber(string(v))
	return place
}

// Count is the count of operations in v; 0 if it holds none.
func (v Version) Count() int64 { return v.Parts().Count }

// Covers reports whether v includes w: v is equal or later, or stands at a later place, whatever the rules epochs.
func (v Version) Covers(w Version) bool { return v >= w || v.place() > w.place() }

// UnderEpoch is the same position under another rules epoch.
func (v Version) UnderEpoch(epoch int) Version {
	return Version(append(beginVersion(epoch), v.place()...))
}

// Rederived is the version of a source that was rederived n times at its
// position: after the position itself, before any later one.
func (v Version) Rederived(n int64) Version {
	return v + Version(appendNumber(nil, uint64(max(n, 0))))
}

// NextRederived is the version after v at the same position.
func (v Version) NextRederived() Version {
	_, rest, _ := cutVersion(string(v))
	times, _, _ := cutTimes(rest) // none is 0
	return v[:len(v)-len(rest)].Rederived(times + 1)
}

// inStamp is v as a stamp holds it, where the number of times always stands.
func (v Version) inStamp() string {
	rest, ok := skipPlain(string(v))
	if !ok {
		_, rest, ok = cutVersion(string(v))
	}
	if ok && rest == "" {
		v = v.Rederived(0)
	}
	return string(v)
}

// cutInStamp reads what inStamp wrote at the beginning of a text.
func cutInStamp(text string) (v Version, rest string, ok bool) {
	rest, plain := skipPlain(text)
	if ok = plain; !plain {
		_, rest, ok = cutVersion(text)
	}
	v = Version(text[:len(text)-len(rest)])
	times, rest, timed := cutTimes(rest)
	if times > 0 {
		v = v.Rederived(times)
	}
	if !plain {
		_, plain = ParseVersion(string(v))
	}
	return v, rest, ok && timed && plain
}
