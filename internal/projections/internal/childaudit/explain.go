package childaudit

import (
	"fmt"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// StampScope implements explaining.Family: the parent.
func (Auditing[K]) StampScope(b *plan.Binding, s *audit.Subject) (string, bool) {
	parent, ok := referredParent(b, s)
	return parent.String(), ok
}

// referredParent is the parent to which an item refers.
func referredParent(b *plan.Binding, s *audit.Subject) (change.Key, bool) {
	if s.Match.Entity != b.Rule.Target {
		return change.Key{}, false
	}
	l := familyOf(b).Link(b, &s.Match, s.Image)
	return l.Parent, l.Refers
}

// RowsOf implements explaining.Family: the reference of the item at its parent, and what is kept of the parent; and what is
// kept of the item as a parent, also if that is gone.
func (Auditing[K]) RowsOf(x *explaining.Explainer, b *plan.Binding, s *audit.Subject) (rows []explaining.Row) {
	if parent, ok := referredParent(b, s); ok {
		if !b.Rule.Collection {
			rows = append(rows, explaining.Row{Key: state.ReferenceKey(b, parent, s.Key), Name: "reference", Rule: b.ID,
				Says: func(r table.Row) string { return referenceWords(b, parent, r) }})
		}
		rows = append(rows, parentRows(x, b, parent)...)
	}
	if parent, ok := parentItself(b, s); ok || !b.Rule.ByUnique && b.Rule.Source.HasKey(s.Key) {
		rows = append(rows, parentRows(x, b, parent)...)
	}
	return rows
}

func referenceWords(b *plan.Binding, parent change.Key, r table.Row) string {
	if r == nil {
		return "there is none at its parent " + children.NameOf(b, parent)
	}
	return familyOf(b).Takes() + " " + children.NameOf(b, parent) + seenWords(b, r)
}

// seenWords tell as of which version a row is.
func seenWords(b *plan.Binding, r table.Row) string {
	if at, ok := stamp.ParseVersion(string(state.SeenAt(b, r))); ok {
		return ", as of " + at.Words()
	}
	return ", as of a version that cannot be read"
}

// parentRows are those that are kept of a parent: its position, and the tasks that write it to its children.
func parentRows(x *explaining.Explainer, b *plan.Binding, parent change.Key) []explaining.Row {
	position := explaining.Row{Key: state.ParentKey(b, parent), Name: "parent's position", Rule: b.ID, Says: func(r table.Row) string {
		if r == nil {
			return ""
		}
		if family, is := b.Family.(children.Marking); is {
			return family.MarkWords(b, parent, r)
		}
		if b.Rule.ByUnique {
			changes := printable.Counted(state.ParentAt(b, r).Count(), "change")
			return "the children of " + children.NameOf(b, parent) + " were filled after " + changes
		}
		return parent.String() + " is written to its children" + seenWords(b, r)
	}}
	task := func(refill bool, what string) explaining.Row {
		t := state.Task{Parent: plan.ItemRule{Binding: b, Key: parent}, Refill: refill}
		return explaining.Row{Key: state.TaskKey(t), Name: "task", Rule: b.ID, Says: func(r table.Row) string {
			if r == nil {
				return ""
			}
			t, _ := state.ReadTask(x.Reader, x.Planner, r)
			return taskWords(t, what+" "+children.NameOf(b, parent))
		}}
	}
	return []explaining.Row{position, task(false, "writes the remaining children of"), task(true, "fills again the children of")}
}

func taskWords(t state.Task, text string) string {
	if t.Torn != nil {
		return t.Torn.Error()
	}
	text += fmt.Sprintf(": %s looked at so far, %d of them its children", printable.Counted(t.Children, "item"), t.Referring)
	if t.Ranges > 0 {
		text += fmt.Sprintf("; %s cut off, %d done", printable.Counted(t.Ranges, "range"), t.RangesEnded)
	}
	if !t.Since.IsZero() {
		text += "; kept since " + t.Since.Format(time.RFC3339)
	}
	return text
}
