package state

import (
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ParentRows begins the partition keys of parents' positions.
const ParentRows = "parent"

// ParentKey is the key of the position up to which a rule has seen a parent.
func ParentKey(b *plan.Binding, parent change.Key) table.Key {
	return table.NewKey(ParentRows+"/"+b.ID+"/"+parent.String(), "position")
}

// ReferenceRows begins the partition keys of references.
const ReferenceRows = "ref"

// ReferenceKey is the key of the reference that a child has put at its parent.
func ReferenceKey(b *plan.Binding, parent, child change.Key) table.Key {
	return table.NewKey(ReferenceRows+"/"+b.ID+"/"+parent.String(), child.String())
}

// ReferenceRow is a reference as of a version of the child.
func ReferenceRow(b *plan.Binding, parent, child change.Key, at stamp.Version) table.Row {
	key := ReferenceKey(b, parent, child)
	r := key.Attributes()
	r["a"] = table.Text(string(at))
	if key.Sort != child.String() {
		r["child"] = table.Text(child.String())
	}
	return r
}

// ReferenceChild is the child that a reference names; long keys are kept beside their hash.
func ReferenceChild(reference table.Row) change.Key {
	if key := table.TextOf(reference["child"]); key != "" {
		return change.ParseKey(key)
	}
	return change.ParseKey(table.TextOf(reference[table.SK]))
}

// ParentAt is the version of a parent's position; "" if there is none. Where a unique value is the parent, the row holds a count of
// changes instead.
func ParentAt(b *plan.Binding, r table.Row) stamp.Version {
	if !b.Rule.ByUnique {
		return SeenAt(b, r)
	}
	if changes := CountOf(r["changes"]); changes > 0 {
		return stamp.VersionOf(b.Epoch, changes)
	}
	return ""
}

// IsMarked reports whether the row of a parent says that the parent was deleted: only then do children go with it. A row without that,
// which another program made or wrote over, deletes nothing.
func IsMarked(r table.Row) bool { return attributes.FromTable(r["deleted"]).Bool() }

// FormerParents are items that had a unique value and were deleted, as the value's row tells.
func FormerParents(r table.Row) (keys []change.Key) {
	if former, ok := r["former"].(*ddb.AttributeValueMemberSS); ok {
		for _, text := range former.Value {
			keys = append(keys, change.ParseKey(text))
		}
	}
	return keys
}

// SeenAt is the version of a row of references, or of a parent with a position; "" if there is none.
func SeenAt(b *plan.Binding, r table.Row) stamp.Version {
	if at := stamp.Version(table.TextOf(r["a"])); at < beyond(b) {
		return at
	}
	return ""
}

// beyond is later than every version of a rule in force. A worker of a lost state table has left what is later still.
func beyond(b *plan.Binding) stamp.Version { return stamp.VersionAt(b.Epoch+1, change.Position{}) }

// SeenBefore is the condition that the row is not there yet or has a version below v ("<"; "<=": or just that).
func SeenBefore(c *table.Expression, b *plan.Binding, below string, v stamp.Version) string {
	return c.Format("attribute_not_exists(%n) OR %n "+below+" %v OR %n >= %v",
		"a", "a", table.Text(string(v)), "a", table.Text(string(beyond(b))))
}
