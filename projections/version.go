package projections

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
)

// version orders what the engine writes: by rules epoch, then by what follows,
// which is a position or a count of operations. Its text sorts as it compares,
// so DynamoDB can compare it in a condition.
type version string

// versionAt is the version of a position under a rules epoch.
func versionAt(epoch int, p change.Position) version {
	return version(fmt.Sprintf("%06d|%s", epoch, p))
}

// versionOf is the version of a count of operations under a rules epoch.
func versionOf(epoch int, operations int64) version {
	return version(fmt.Sprintf("%06d|%020d", epoch, operations))
}

// underEpoch is the same position under another rules epoch.
func (v version) underEpoch(epoch int) version {
	if len(v) < 7 {
		return versionAt(epoch, change.Position{})
	}
	return version(fmt.Sprintf("%06d|%s", epoch, v[7:]))
}

// rederived is the version of a source that was rederived n times at its
// position: after the position itself, before any later one, for "!" sorts
// before every character of a position.
func (v version) rederived(n int64) version { return v + version(fmt.Sprintf("!%012d", n)) }
