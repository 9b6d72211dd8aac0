package audit

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// A row is torn if the engine cannot work with it: somebody else has written
// there. It cannot take it for what it was, and DynamoDB refuses to add to it.

// TornEntry reports whether a ledger entry is torn.
func TornEntry(row change.Item) bool {
	if !IsVersion(row["at"]) || row["effects"].Kind() != change.KindMap || NotNumber(row["rederived"]) {
		return true
	}
	for _, v := range row["effects"].Map() {
		if !Readable(v) {
			return true
		}
	}
	return false
}

// IsVersion reports whether a value is the version of a ledger entry or a parent's position.
func IsVersion(v change.Value) bool {
	return v.Kind() == change.KindString && plan.Version(v.Text()).IsValid()
}

// Readable reports whether an effect in a ledger entry is one.
func Readable(v change.Value) bool {
	_, err := plan.ParseEffect(v.Text())
	return v.Kind() == change.KindString && err == nil
}

// TornSum reports whether an accumulator is torn.
func TornSum(row change.Item) bool {
	return row["value"].Kind() != change.KindNumber || NotNumber(row["operations"])
}

// TornSet reports whether a locator, or the claims of a mirror item, are torn.
func TornSet(row change.Item) bool { return NotNumber(row["changes"]) }

// TornPosition reports whether a parent's position is torn: no fan-out would ever be higher.
func TornPosition(row change.Item) bool {
	return row["at"].Kind() != change.KindAbsent && !IsVersion(row["at"])
}

// NotNumber reports whether a value is there and is no number.
func NotNumber(v change.Value) bool {
	return v.Kind() != change.KindAbsent && v.Kind() != change.KindNumber
}
