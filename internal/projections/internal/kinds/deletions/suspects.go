package deletions

import (
	"context"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var orphans = &auditing.Procedure{
	Rows: auditing.Rows{childaudit.LocatorRow, markRow}, Items: auditing.Items{auditing.OwnItem, childaudit.ParentsOf}, Judge: judgeOrphan,
	Tasks: childaudit.TasksOf, Mend: deleteOrphan,
}

// Procedure implements auditing.Family.
func (k kind) Procedure(of drift.Kind) *auditing.Procedure {
	if of == child {
		return orphans
	}
	return k.Auditing.Procedure(of)
}

// parentOf is the parent of a suspect.
func parentOf(e *auditing.Evidence, sus drift.Suspect) plan.ItemRule {
	return plan.ItemRule{Binding: e.ByID(sus.Rule), Key: change.ParseKey(sus.Group)}
}

func markRow(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	parent := parentOf(e, sus)
	return []table.Key{state.ParentKey(parent.Binding, parent.Key)}
}

// judgeOrphan judges a child without a parent. If a mark says that the parent was deleted, the child must not be there any more. Otherwise
// it is an orphan: nothing tells that its parent was ever there.
func judgeOrphan(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	parent, l := parentOf(e, sus), childaudit.SuspectLink(e, sus)
	mark := e.Rows[state.ParentKey(parent.Binding, parent.Key)]
	exists := childaudit.ParentNow(e, sus, parent.Key) != nil
	orphaned := l.Refers && l.Parent == parent.Key && !exists
	reading := drift.ReadingOf(sus, change.Digest(auditing.RowValue(mark), change.String(fmt.Sprint(l.Parent, l.Refers, exists))))
	for _, key := range childaudit.ParentsOf(e, sus) {
		reading.Concerns = append(reading.Concerns, drift.KeyToken(key))
	}
	name := children.NameOf(parent.Binding, parent.Key)
	if parent.Rule.ByUnique {
		reading.Concerns = append(reading.Concerns, audit.LocatorToken(effects.LocatorID(parent.Locator), name))
	}
	if !orphaned {
		return reading
	}
	f := e.Finding(sus, drift.Orphaned)
	f.Group, f.WriteUnits = "", 2*audit.UnitsOf(e.Items[sus.Item])
	f.Found = fmt.Sprintf("its %s %s is not there", parent.Rule.Source.Name, name)
	if reading.Optional = !state.IsMarked(mark); reading.Optional {
		reading.Fix.Way = drift.MendAlone
	} else {
		f.What, f.Found = drift.Surplus, fmt.Sprintf("its %s %s was deleted", parent.Rule.Source.Name, name)
	}
	reading.Findings = []drift.Finding{f}
	return reading
}

// deleteOrphan deletes a child without a parent, if it still has none.
func deleteOrphan(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	parent, key := parentOf(e, r.Suspect), r.Suspect.Item
	if len(r.Findings) == 0 {
		return false, nil
	}
	mark := e.Rows[state.ParentKey(parent.Binding, parent.Key)]
	parts := append(absence(e.Tables.Reader, parent, mark, []change.Key{key}), deletion(e.Tables.Reader, parent.Binding, key, e.Items[key]))
	if state.IsMarked(mark) {
		parts = append(parts, marked(e.Tables.Reader, parent, mark))
	}
	return e.Transact(ctx, "deleting the orphan "+key.String(), parent.ID, parts)
}
