// Package children follows parents to their children for the families of kinds that need it: how a child names its parent, the
// reference rows by which a parent's children are found, the positions of parents, parents that are known by a unique value, fan-outs
// with their tasks, and the filling of one child from its parent. It knows no kind. A family implements Family, and its kinds embed
// Following.
//
// The order of the steps keeps promise 1. A child's fill puts the reference first, then reads the parent's position and the child, then
// the parent, then has the family write the child. A parent's fan-out raises the position first, then looks up the children. So either
// the child's fill sees the new parent or the fan-out sees the child; and a child's write is on condition of the stamp that was read.
package children

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// Family is a family of kinds whose rules follow parents (a rule's Source) to their children (its Target). It says what a parent gives,
// and writes one child; package children reads both, finds children, and keeps the order of the steps.
type Family interface {
	plan.Family

	// Link is how an image of a child refers to its parent: most families use that of Following.
	Link(b *plan.Binding, m *rules.Match, img change.Image) Link
	// Reads are the attributes of a child on which its Link, and what Write does beside the parent, depend.
	Reads(b *plan.Binding) []string
	// Concerns reports whether a change of a parent matters to its children: their fan-out begins then.
	Concerns(p *plan.Planner, b *plan.Binding, v plan.View) bool
	// Overwritten reports whether a record of a child, which left its Reads as they were, shows that another program touched what the
	// rule wrote; and whether the correction counts against the bound on corrections.
	Overwritten(p *plan.Planner, b *plan.Binding, v plan.View, l Link) (due, correction bool)

	// Write brings a child that refers to a parent to what the parent gives, both as they were read. The write must be on condition that
	// the child's Reads and stamp still are as in f.Child (see StillChild). After RaceLost both are read again.
	Write(ctx context.Context, w *host.Run, to target.Sender, f *Filling) (target.Outcome, error)
	// Unlinked brings an item that is there and refers to no parent, also because its Link is bad, to what it must hold then.
	Unlinked(ctx context.Context, w *host.Run, id plan.ItemRule, f *Fill) error

	// Needs reports whether an item that refers to no parent may hold something that Unlinked changes.
	Needs(b *plan.Binding, img change.Image) bool
}

// Spreader is a Family that can write what a parent gives without reading the parent again for the children. The fan-outs of other
// families fill each child anew.
type Spreader interface {
	Family
	// Spread writes what a parent gives to some children, given by rows of their collection, or by their references. It returns how
	// many of them refer to the parent; references that dangle it prunes.
	Spread(ctx context.Context, w Run, s *Spreading, rows []Row) (referring int, err error)
}

// Filling is a child as it is filled from its parent.
type Filling struct {
	plan.ItemRule
	Parent     change.Key
	Child      change.Item
	Given      change.Image  // the parent; nil: it does not exist
	At         stamp.Version // the parent's position, read before the parent: the write must be later than what a fan-out of it writes
	Correction bool          // a correction of a foreign write: it counts against the bound
	Repark     bool          // what is parked of the child is parked anew
}

// Spreading is one state of a parent that is written on its children.
type Spreading struct {
	*plan.Binding
	Span
	Version stamp.Version
	Since   stamp.Version // children at this version or later are left alone; "": only those later than Version
	Given   change.Image  // the parent; nil: it does not exist
}

// LeavesAlone reports whether a child with version v is left alone: it already has this state of the parent, or a later one.
func (s *Spreading) LeavesAlone(v stamp.Version) bool {
	return v > s.Version || s.Since != "" && v >= s.Since
}

// familyOf is the family of a rule that follows parents.
func familyOf(b *plan.Binding) Family { return b.Family.(Family) }

// isOf reports whether a rule is of the family for which kind acts.
func isOf(b *plan.Binding, kind any) bool {
	return b != nil && b.Rule != nil && host.SameFamily(b.Rule.Kind, kind)
}
