package state

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ReferenceRows begins the partition keys of references.
const ReferenceRows = "references"

// ReferenceKey is the key of the reference that a child has put at its parent.
func ReferenceKey(b *plan.Binding, parent, child change.Key) table.Key {
	return table.NewKey(ReferenceRows+"/"+b.ID+"/"+parent.String(), child.String())
}

// ReferenceChild is the child that a reference names; long keys are kept beside their hash.
func ReferenceChild(reference table.Row) change.Key {
	if key := table.TextOf(reference["child"]); key != "" {
		return change.ParseKey(key)
	}
	return change.ParseKey(table.TextOf(reference[table.SK]))
}
