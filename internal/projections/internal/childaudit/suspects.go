package childaudit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

var procedures = map[drift.Kind]*auditing.Procedure{
	drift.Reference: {Rows: auditing.Rows{referenceRow}, Judge: judgeReference, Tasks: TasksOf, Mend: pruneOrphan},
	drift.Parked:    {Rows: auditing.Rows{auditing.ParkedRows}, Judge: judgeParked, Mend: clearParked},
}

// Procedure implements auditing.Family: those for references, and for children that cannot name their parent. A family adds that for
// its own sort of drift.
func (Auditing[K]) Procedure(of drift.Kind) *auditing.Procedure { return procedures[of] }

func referenceKey(t *auditing.Table, sus drift.Suspect) table.Key {
	return state.ReferenceKey(t.ByID(sus.Rule), change.ParseKey(sus.Group), sus.Item)
}

func referenceRow(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	return []table.Key{referenceKey(e.Table, sus)}
}

// TasksOf are where unfinished work on a child's parent is kept.
func TasksOf(e *auditing.Evidence, r *drift.Reading) []table.Key {
	id := plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: change.ParseKey(r.Suspect.Group)}
	return []table.Key{state.TaskKey(state.Task{Parent: id}), state.TaskKey(state.Task{Parent: id, Refill: true})}
}

// SuspectLink is the link of a suspect child as it was read.
func SuspectLink(e *auditing.Evidence, sus drift.Suspect) children.Link {
	return children.LinkOf(e.Planner, e.ByID(sus.Rule), sus.Item, table.Image(e.Items[sus.Item]))
}

// LocatorRow is where it stands which items are known by the value of a suspect's parent.
func LocatorRow(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	b := e.ByID(sus.Rule)
	if !b.Rule.ByUnique || sus.Group == "" {
		return nil
	}
	return []table.Key{state.LocatorKey(b.Locator, change.ParseKey(sus.Group).Partition)}
}

// ParentsOf are the items among which is the parent of a suspect child. Those that are known by one value are
// the ones of its locator, and the one that was found in the table, whatever the locator says.
func ParentsOf(e *auditing.Evidence, sus drift.Suspect) (keys []change.Key) {
	l, b := SuspectLink(e, sus), e.ByID(sus.Rule)
	switch {
	case !l.Refers:
		return nil
	case !b.Rule.ByUnique:
		return []change.Key{l.Parent}
	case l.Parent.String() != sus.Group:
		return nil // the child refers elsewhere by now: its record tells
	}
	for _, key := range LocatorRow(e, sus) {
		for _, text := range append(state.ReadSet(e.Rows[key], true).Sources, sus.Members...) {
			if text != "" {
				keys = append(keys, change.ParseKey(text))
			}
		}
	}
	slices.SortFunc(keys, func(a, b change.Key) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(keys)
}

// ParentNow is the parent to which a suspect child refers, as it was read.
func ParentNow(e *auditing.Evidence, sus drift.Suspect, parent change.Key) change.Image {
	id := plan.ItemRule{Binding: e.ByID(sus.Rule), Key: parent}
	for _, key := range ParentsOf(e, sus) {
		if children.IsParent(e.Planner, id, key, e.Items[key]) {
			return table.Image(e.Items[key])
		}
	}
	return nil
}

func judgeReference(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	parent, r := change.ParseKey(sus.Group), e.Rows[referenceKey(e.Table, sus)]
	l := SuspectLink(e, sus)
	reading := drift.ReadingOf(sus, change.Digest(auditing.RowValue(r), change.String(fmt.Sprint(l.Parent, l.Refers, l.Bad == nil))))
	if !e.ByID(sus.Rule).Rule.ByUnique {
		reading.Concerns = append(reading.Concerns, drift.KeyToken(parent))
	}
	wanted := l.Refers && l.Parent == parent
	f := e.Finding(sus, drift.Missing)
	switch {
	case wanted && len(r) == 0:
		f.Expected = "refers to " + sus.Group
		reading.Findings = []drift.Finding{f}
	case !wanted && len(r) > 0 && l.Bad == nil:
		f.What, f.Found = drift.Orphaned, "refers to "+sus.Group
		reading.Findings, reading.Fix.Way = []drift.Finding{f}, drift.MendAlone
	}
	return reading
}

// pruneOrphan deletes a reference whose child is gone or refers elsewhere. It reports false if the reference was put again.
func pruneOrphan(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	return children.PruneReference(ctx, e.Tables, r.Suspect.Rule, e.Rows[referenceKey(e.Table, r.Suspect)])
}

func judgeParked(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	if bad := SuspectLink(e, sus).Bad; bad != nil {
		return e.JudgeParked(sus, bad.Code)
	}
	return e.JudgeParked(sus, "")
}

// clearParked deletes the parked record of a child that can name its parent, if it
// still names it as it did when it was read.
func clearParked(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	id := plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: r.Suspect.Item}
	return e.DeleteParked(ctx, r.Suspect, target.StillReads(e.Tables.Reader, id, familyOf(id.Binding).Reads(id.Binding), e.Items[id.Key])...)
}
