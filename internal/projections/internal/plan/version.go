package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// Version orders what the engine writes: by rules epoch, then by what follows,
// which is a position or a count of operations. Its text sorts as it compares,
// so DynamoDB can compare it in a condition. A version is made by VersionAt or
// VersionOf, or read by ParseVersion; "" is none.
type Version string

// ParseVersion reads a version that a table holds. It reports false for a text
// that VersionAt, VersionOf and Rederived do not write.
func ParseVersion(text string) (Version, bool) {
	epoch, place, ok := strings.Cut(text, "|")
	place, times, rederived := strings.Cut(place, "!")
	ok = ok && isNumber(epoch, epochDigits, epochDigits) && Version(text).RulesEpoch() <= EpochMax &&
		(!rederived || isNumber(times, timesDigits, timesDigits))
	if label, sequence, positioned := strings.Cut(place, "#"); positioned {
		ok = ok && label != "" && !strings.ContainsAny(label, " |") && isNumber(sequence, 1, change.SequenceDigitsMax)
	} else {
		_, err := strconv.ParseInt(place, 10, 64)
		ok = ok && isNumber(place, 0, change.SequenceDigitsMax) && (err == nil || len(place) != countDigits)
	}
	if !ok {
		return "", false
	}
	return Version(text), true
}

// The lengths of the numbers in a version.
const (
	epochDigits = 6
	countDigits = 20
	timesDigits = 12
)

// isNumber reports whether a text is nothing but so many digits.
func isNumber(text string, digitsMin, digitsMax int) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return len(text) >= digitsMin && len(text) <= digitsMax
}

// VersionAt is the version of a position under a rules epoch.
func VersionAt(epoch int, p change.Position) Version {
	return Version(fmt.Sprintf("%06d|%s", epoch, p))
}

// VersionOf is the version of a count of operations under a rules epoch.
func VersionOf(epoch int, operations int64) Version {
	return Version(fmt.Sprintf("%06d|%020d", epoch, operations))
}

// EpochMax is the highest rules epoch: rules change less often than that.
const EpochMax = 100_000

// Epoch is the lowest version of the same rules epoch.
func (v Version) Epoch() Version { return VersionAt(v.RulesEpoch(), change.Position{}) }

// RulesEpoch is the number of that rules epoch.
func (v Version) RulesEpoch() int {
	number, _, _ := strings.Cut(string(v), "|")
	epoch, _ := strconv.Atoi(number) // none is 0
	return epoch
}

// place is what follows the rules epoch.
func (v Version) place() string {
	_, place, _ := strings.Cut(string(v), "|")
	return place
}

// Count is the count of operations in v; 0 if it holds none.
func (v Version) Count() int64 {
	n, _ := strconv.ParseInt(v.place(), 10, 64) // a position is none
	return n
}

// Has reports whether v includes w: an earlier position under newer
// rules is still earlier, and the same one is not.
func (v Version) Has(w Version) bool { return v >= w || v.place() > w.place() }

// UnderEpoch is the same position under another rules epoch.
func (v Version) UnderEpoch(epoch int) Version {
	return Version(fmt.Sprintf("%06d|%s", epoch, v.place()))
}

// Rederived is the version of a source that was rederived n times at its
// position: after the position itself, before any later one, for "!" sorts
// before every character of a position.
func (v Version) Rederived(n int64) Version { return v + Version(fmt.Sprintf("!%012d", n)) }

// NextRederived is the version after v at the same position.
func (v Version) NextRederived() Version {
	base, count, _ := strings.Cut(string(v), "!")
	n, _ := strconv.ParseInt(count, 10, 64) // none is 0
	return Version(base).Rederived(n + 1)
}
