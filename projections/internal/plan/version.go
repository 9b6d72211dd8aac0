package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/guard"
)

// Version orders what the engine writes: by rules epoch, then by what follows,
// which is a position or a count of operations. Its text sorts as it compares,
// so DynamoDB can compare it in a condition.
type Version string

// VersionAt is the version of a position under a rules epoch.
func VersionAt(epoch int, p change.Position) Version {
	if guard.Off(guard.PositionPadded) && !p.IsZero() {
		return Version(fmt.Sprintf("%06d|%s#%s", epoch, p.Epoch(), p.SequenceNumber()))
	}
	if guard.Off(guard.PositionLabel) && !p.IsZero() {
		_, number, _ := strings.Cut(p.String(), "#")
		return Version(fmt.Sprintf("%06d|%s", epoch, number))
	}
	return Version(fmt.Sprintf("%06d|%s", epoch, p))
}

// VersionOf is the version of a count of operations under a rules epoch.
func VersionOf(epoch int, operations int64) Version {
	return Version(fmt.Sprintf("%06d|%020d", epoch, operations))
}

// EpochMax is the highest rules epoch: rules change less often than that.
const EpochMax = 100_000

// IsValid reports whether v is a version at all: what begins with a rules epoch.
func (v Version) IsValid() bool { return form.MatchString(string(v)) && v.RulesEpoch() <= EpochMax }

var form = regexp.MustCompile(`^[0-9]{6}[|]`)

// Epoch is the lowest version of the same rules epoch.
func (v Version) Epoch() Version { return v[:epochChars] }

// RulesEpoch is the number of that rules epoch.
func (v Version) RulesEpoch() int {
	number, _, _ := strings.Cut(string(v), "|")
	epoch, _ := strconv.Atoi(number) // none is 0
	return epoch
}

// Has reports whether who is at v has seen w: an earlier position under newer
// rules is still earlier, and the same one is not.
func (v Version) Has(w Version) bool { return v >= w || v[epochChars:] > w[epochChars:] }

// epochChars is the length of "000001|".
const epochChars = 7

// UnderEpoch is the same position under another rules epoch.
func (v Version) UnderEpoch(epoch int) Version {
	return Version(fmt.Sprintf("%06d|%s", epoch, v[epochChars:]))
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
