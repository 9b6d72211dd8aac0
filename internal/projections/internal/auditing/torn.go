package auditing

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var torn = &Procedure{Rows: Rows{tornRows}, Judge: judgeTorn, Mend: dropTorn}

// tornKey is the key of a parent's position, or of a task.
func tornKey(t *Table, sus drift.Suspect) table.Key {
	if sus.Kind == drift.Position {
		return state.ParentKey(t.ByID(sus.Rule), sus.Item)
	}
	return table.Key{Partition: state.TasksPartition, Sort: sus.Group}
}

func tornRows(e *Evidence, sus drift.Suspect) []table.Key { return []table.Key{tornKey(e.Table, sus)} }

// judgeTorn looks at a parent's position, or at a task, with which the engine may not be able to work.
func judgeTorn(e *Evidence, sus drift.Suspect) drift.Reading {
	r := attributes.ItemFromTable(e.Rows[tornKey(e.Table, sus)])
	reading := drift.ReadingOf(sus, change.Digest(itemValue(r)))
	reading.Fix.Way = drift.MendFirst
	f := drift.Finding{Rule: e.NameOf(sus.Rule), Kind: sus.Kind, What: drift.Wrong, Item: sus.Item, Found: audit.Text(r["a"]),
		WriteUnits: table.WriteUnitsMin}
	if sus.Kind == drift.Position {
		reading.Torn, f.Expected = audit.TornPosition(r), "a position"
		if _, counted := r["changes"]; counted {
			f.Expected, f.Found = "a count of changes", audit.Text(r["changes"])
		}
	} else if r != nil {
		reading.Torn, f.Expected, f.Found = audit.TornTask(e.Planner, r), "a task that can be worked off", audit.Text(change.Map(r))
	}
	if reading.Torn {
		reading.Findings = []drift.Finding{f}
	}
	return reading
}

// dropTorn deletes a parent's position that no fan-out would ever be higher than,
// or a task that no process can work off, as it was read. Rederiving the parent brings
// its children to what it is.
func dropTorn(ctx context.Context, e *Evidence, r drift.Reading) (bool, error) {
	key, c := tornKey(e.Table, r.Suspect), table.NewExpression()
	condition := table.Whole(c.SameAs(e.Rows[key], "a", "rule", "parent", "refill", "changes"))
	return e.Tables.DeleteStateIf(ctx, r.Suspect.Rule, "deleting a torn row of "+r.Suspect.Item.String(), key, condition, c)
}
