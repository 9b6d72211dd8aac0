package copies

import (
	"context"
	"fmt"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// copied is the kind of drift of an attribute that a rule copies.
const copied drift.Kind = "copy"

var procedures = map[drift.Kind]*auditing.Procedure{
	copied:          {MoreItems: parentOf, Judge: judgeCopy, Tasks: tasksOf},
	drift.Reference: {Rows: referenceRow, Judge: judgeReference, Tasks: tasksOf, Mend: pruneOrphan},
	drift.Parked:    {Rows: auditing.ParkedRows, Judge: judgeParked, Mend: clearParked},
}

// Procedure implements auditing.Family.
func (kind) Procedure(of drift.Kind) *auditing.Procedure { return procedures[of] }

func referenceKey(t *auditing.Table, sus drift.Suspect) table.Key {
	return state.ReferenceKey(t.ByID(sus.Rule), change.ParseKey(sus.Group), sus.Item)
}

func referenceRow(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	return []table.Key{referenceKey(e.Table, sus)}
}

// tasksOf are where unfinished work on a child's parent is kept.
func tasksOf(e *auditing.Evidence, r *drift.Reading) []table.Key {
	id := plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: change.ParseKey(r.Suspect.Group)}
	return []table.Key{state.TaskKey(state.Task{Parent: id}), state.TaskKey(state.Task{Parent: id, Refill: true})}
}

// reference is the parent that a suspect, as it was read, refers to. readable is false
// where it cannot name one, which is parked; isChild is false if it is no child (any more).
func reference(e *auditing.Evidence, sus drift.Suspect) (parent change.Key, refers, readable, isChild bool) {
	b, child := e.ByID(sus.Rule), table.Image(e.Items[sus.Item])
	_, isChild = as(b.Rule.Target, e.Planner, sus.Item, child)
	parent, refers, bad := referenceOf(e.Planner, b, sus.Item, child)
	return parent, refers && bad == nil, bad == nil, isChild
}

func parentOf(e *auditing.Evidence, sus drift.Suspect) []change.Key {
	if parent, refers, _, _ := reference(e, sus); refers {
		return []change.Key{parent}
	}
	return nil
}

func judgeCopy(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	b, child := e.ByID(sus.Rule), e.Items[sus.Item]
	reading := drift.Reading{Suspect: sus, Concerns: []string{drift.KeyToken(sus.Item)}, Fix: drift.Fix{Keys: []change.Key{sus.Item}}}
	parent, refers, readable, isChild := reference(e, sus)
	want := make([]change.Value, len(b.Rule.Attributes))
	if refers {
		want = Of(b.Rule).Given(table.Image(parentIn(e.Planner, b, parent, e.Items)))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(parent))
		reading.Suspect.Group = parent.String()
	}
	refersTo := change.String(fmt.Sprint(isChild, readable, refers, parent))
	reading.State = change.Digest(append([]change.Value{auditing.RuleValue(b, child), refersTo}, want...)...)
	if isChild && readable {
		reading.Findings = Compare(b, sus.Item, child, want)
	}
	return reading
}

func judgeReference(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	b, parent, r := e.ByID(sus.Rule), change.ParseKey(sus.Group), e.Rows[referenceKey(e.Table, sus)]
	found, refers, readable, _ := reference(e, sus)
	reading := drift.Reading{
		Suspect: sus, State: change.Digest(auditing.RowValue(r), change.String(fmt.Sprint(found, refers, readable))),
		Concerns: []string{drift.KeyToken(sus.Item), drift.KeyToken(parent)},
		Fix:      drift.Fix{Keys: []change.Key{sus.Item}, Seen: table.TextOf(r["at"])},
	}
	wanted := refers && found == parent
	f := drift.Finding{Rule: b.Rule.Name, Kind: drift.Reference, Item: sus.Item, Group: sus.Group, WriteUnits: table.WriteUnitsMin}
	switch {
	case wanted && len(r) == 0:
		f.What, f.Expected = drift.Missing, "refers to "+sus.Group
		reading.Findings = []drift.Finding{f}
	case !wanted && len(r) > 0 && readable:
		f.What, f.Found = drift.Orphaned, "refers to "+sus.Group
		reading.Findings, reading.Fix.Way = []drift.Finding{f}, drift.MendAlone
	}
	return reading
}

// pruneOrphan deletes a reference whose child is gone or refers elsewhere, unless it was put again.
func pruneOrphan(ctx context.Context, t *auditing.Table, r drift.Reading) (bool, error) {
	e, again, _, err := t.ReadAgain(ctx, r)
	if err != nil {
		return false, err
	}
	if !again.Found(drift.Orphaned) || again.Fix.Seen != r.Fix.Seen {
		return false, nil
	}
	key, c := referenceKey(t, r.Suspect), table.NewExpression()
	condition := table.Whole(c.SameAs(e.Rows[key], "at"))
	return true, t.Tables.DeleteState(ctx, r.Suspect.Rule, "pruning a reference", key, condition, c)
}

func judgeParked(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	if _, _, bad := referenceOf(e.Planner, e.ByID(sus.Rule), sus.Item, table.Image(e.Items[sus.Item])); bad != nil {
		return e.JudgeParked(sus, bad.Code)
	}
	return e.JudgeParked(sus, "")
}

// clearParked deletes the parked record of a child that can name its parent, if it
// still names it as it did when it was read.
func clearParked(ctx context.Context, t *auditing.Table, r drift.Reading) (bool, error) {
	return t.ClearParkedIf(ctx, r, func(e *auditing.Evidence) (checks []ddb.TransactWriteItem, ok bool, err error) {
		if id := (plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: r.Suspect.Item}); t.Tables.CanExist(id.Key) {
			checks = append(checks, stillNamed(t.Tables.Reader, id, e.Items[id.Key]))
		}
		return checks, true, nil
	})
}
