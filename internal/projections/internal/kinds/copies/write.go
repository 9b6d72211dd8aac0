package copies

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// run applies the changes that copy rules ask for.
type run struct{ children.Run }

// parentWrite is what one state of a parent puts on its children.
type parentWrite struct {
	*children.Spreading
	values []change.Value
}

// Write implements children.Family: no fill has the version of another, and each is later than what a fan-out of the parent's
// position writes.
func (kind) Write(ctx context.Context, r *host.Run, to target.Sender, f *children.Filling) (target.Outcome, error) {
	w := run{children.Run{Run: r}}
	pw := parentWrite{
		&children.Spreading{Binding: f.Binding, Span: children.Span{Parent: f.Parent}, Version: f.At.Rederived(1), Given: f.Given},
		Of(f.Rule).Given(f.Given),
	}
	if s, ok := stamp.Read(f.Child.Lookup(f.Stamp), stamp.Context(w.Planner.Incarnation, f.Key, f.Parent.String())); ok {
		if s.Version >= f.At && s.Digest == plan.Digest(pw.Binding, pw.values) && pw.isOn(f.Child) {
			return target.Written, nil // it has what the parent says
		}
		pw.Version = max(pw.Version, s.Version.NextRederived())
	}
	if allowed, err := w.MayHeal(ctx, f.Binding, f.Key, f.Correction); err != nil || !allowed {
		return target.Written, err
	}
	ended, _, err := w.writeCopies(ctx, to, pw, f.Key, f.Child)
	return ended, err
}

// isOn reports whether a child holds the parent's values. The digest of each in a stamp is too short to tell.
func (pw parentWrite) isOn(child change.Image) bool {
	return change.Digest(plan.ValuesOf(pw.Rule, child)...) == change.Digest(pw.values...)
}

func (pw parentWrite) putCopies(t *target.Write) {
	for i, copied := range pw.Rule.Attributes {
		t.Put(copied.As, pw.values[i])
	}
}

// writeChild writes a parent's state on a child as it was read, trying again with the child as it is as often as it
// moves. It reads a child that is nil: an endpoint may refuse a write without the item.
// It reports whether the child refers to the parent.
func (w run) writeChild(ctx context.Context, to target.Sender, pw parentWrite, key change.Key, child change.Image) (refers bool,
	err error) {
	err = table.Contend(ctx, "copying to "+key.String(), func() (table.Round, error) {
		if child == nil {
			items, err := w.Tables.ReadItems(ctx, "reading child "+key.String(), []change.Key{key})
			if err != nil {
				return table.Lost, err
			}
			child = table.Image(items[key])
		}
		l := children.LinkOf(w.Planner, pw.Binding, key, child)
		if refers = l.Refers && l.Parent == pw.Parent; !refers {
			return table.Finished, nil
		}
		context := stamp.Context(w.Planner.Incarnation, key, pw.Parent.String())
		if s, ok := stamp.Read(child.Lookup(pw.Stamp), context); ok && pw.LeavesAlone(s.Version) {
			return table.Finished, nil // a later state of the parent is there already
		}
		ended, current, err := w.writeCopies(ctx, to, pw, key, child)
		child = current
		return table.FinishedIf(ended != target.RaceLost), err
	})
	return refers, err
}

// writeCopies writes copies and stamp, unless the child holds both already. If the child
// changed since it was read, current is the child as it is now.
func (w run) writeCopies(ctx context.Context, to target.Sender, pw parentWrite, key change.Key, child change.Image) (
	ended target.Outcome, current change.Image, err error) {
	s := stamp.Stamp{Context: stamp.Context(w.Planner.Incarnation, key, pw.Parent.String()), Version: pw.Version,
		Digest: plan.Digest(pw.Binding, pw.values)}
	if child.Lookup(pw.Stamp).Equal(change.String(s.String())) && pw.isOn(child) {
		return target.Written, nil, nil
	}
	t := target.On(pw.Binding, "copying to "+key.String(), key)
	t.Stamp(s)
	pw.putCopies(t)
	children.StillChild(w.Tables.Reader, t, child)
	if ended, current, err = to.Write(ctx, t); ended == target.Written && err == nil {
		w.Counters.Children.Add(1)
	}
	return ended, current, err
}

// Unlinked implements children.Family: copies and stamp go off a child that refers to no parent, if that is still so. One whose parent
// cannot be named keeps them.
func (kind) Unlinked(ctx context.Context, r *host.Run, id plan.ItemRule, f *children.Fill) error {
	if f.Bad != nil {
		return nil
	}
	if allowed, err := r.MayHeal(ctx, id.Binding, id.Key, f.Correction); err != nil || !allowed {
		return err
	}
	doing := "taking copies off " + id.Key.String()
	return table.Contend(ctx, doing, func() (table.Round, error) {
		items, err := r.Tables.ReadItems(ctx, "reading child "+id.Key.String(), []change.Key{id.Key})
		child := items[id.Key]
		if l := children.LinkOf(r.Planner, id.Binding, id.Key, table.Image(child)); err != nil || !l.IsChild || l.Refers || l.Bad != nil {
			return table.Finished, err
		}
		names := slices.DeleteFunc(append(slices.Clone(id.Rule.Writes), id.Stamp), func(name string) bool {
			return child.Lookup(name).Kind() == change.KindAbsent
		})
		if len(names) == 0 {
			return table.Finished, nil
		}
		t := target.On(id.Binding, doing, id.Key)
		t.TakeOff(names...)
		children.StillChild(r.Tables.Reader, t, child)
		ended, _, err := r.Targets.Write(ctx, t)
		return table.FinishedIf(ended != target.RaceLost), err
	})
}
