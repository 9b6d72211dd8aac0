package aggregates

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var procedure = &auditing.Procedure{
	Rows: auditing.Rows{totalRows}, Items: auditing.Items{showers}, Judge: judge, Operations: operations, Mend: mendSum,
}

// Procedure implements auditing.Family.
func (*kind) Procedure(of drift.Kind) *auditing.Procedure {
	if of == drift.Sum || of == drift.Display {
		return procedure
	}
	return nil
}

// groupOf is the aggregate that a suspect is about.
func groupOf(t *auditing.Table, sus drift.Suspect) plan.GroupRef {
	return plan.GroupRef{Binding: t.ByID(sus.Rule), Group: sus.Group}
}

func totalRows(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	if sus.Group == "" {
		return nil
	}
	return totalKeys(groupOf(e.Table, sus))
}

// auditedTotal is an aggregate's accumulators added up, but for those that are torn.
type auditedTotal struct {
	Total
	torn []table.Key
}

func totalOf(e *auditing.Evidence, sus drift.Suspect) auditedTotal {
	g, t, rows := groupOf(e.Table, sus), auditedTotal{}, e.Rows
	if sus.Group == "" || e.Incarnation == "" {
		return t
	}
	for suffix := range g.Suffixes {
		key := state.AccumulatorKey(g, suffix)
		if r, ok := rows[key]; ok && audit.TornSum(attributes.ItemFromTable(r)) {
			t.torn = append(t.torn, key)
		}
	}
	if len(t.torn) > 0 {
		rows = maps.Clone(rows)
		for _, key := range t.torn { // it holds nothing that counts
			rows[key] = table.Row{"value": table.Number(0), "ops": table.Number(state.CountOf(rows[key]["ops"]))}
		}
	}
	t.Total = AddUp(g, rows)
	return t
}

func operations(e *auditing.Evidence, sus drift.Suspect) int64 { return totalOf(e, sus).Operations }

// showers are the items that may display a sum: those of a suspect display alone are read.
func showers(e *auditing.Evidence, sus drift.Suspect) []change.Key {
	if sus.Kind == drift.Sum {
		return nil
	}
	return append([]change.Key{sus.Item}, rivals(sus, totalOf(e, sus))...)
}

// rivals are the items that may display a sum in place of a suspect.
func rivals(sus drift.Suspect, t auditedTotal) []change.Key {
	all := slices.Clone(t.Targets[:min(len(t.Targets), 1)])
	for _, first := range sus.Members {
		all = append(all, change.ParseKey(first))
	}
	return all
}

// judge judges an aggregate, or what displays it.
func judge(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	b, t := e.ByID(sus.Rule), totalOf(e, sus)
	reading := drift.Reading{
		Suspect: sus, Concerns: []string{audit.SumToken(sus.Rule, sus.Group)},
		Fix: drift.Fix{Keys: t.Targets, Seen: strconv.FormatInt(t.Operations, 10)},
	}
	if b.Rule.ByUnique {
		reading.Concerns = append(reading.Concerns, audit.LocatorToken(plan.LocatorID(b.Locator), sus.Group))
	}
	if before, counted := e.Before[sus.GroupID()]; counted && before != t.Operations {
		reading.Waiting = "it is changing too fast to be judged"
	}
	if t.Err != nil {
		return reading // no number holds it: that is parked
	}
	sum := t.Amount
	if text, known := e.Want[sus.GroupID()]; known {
		if sum = audit.ParseAmount(text); sum.Beyond {
			return reading
		}
	}
	if sus.Kind == drift.Sum {
		judgeSum(e, &reading, b, t, sum)
	} else {
		judgeDisplay(e, &reading, b, t, sum)
	}
	return reading
}

func judgeSum(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, t auditedTotal, sum audit.Amount) {
	reading.State = change.Digest(
		change.String(reading.Fix.Seen), change.String(t.Amount.String()), change.String(sum.String()), change.Number(strconv.Itoa(len(t.torn))))
	lacks := sum.Lacks(t.Amount)
	if lacks.Beyond || lacks.Equals(audit.Amount{}) && len(t.torn) == 0 {
		return
	}
	f := drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Sum, What: drift.Wrong, Group: reading.Suspect.Group, Attribute: b.Rule.Writes[0],
		Expected: sum.Value.String(), Found: t.Value.String(), WriteUnits: table.TransactionUnitsMin,
	}
	if lacks.Value.IsZero() {
		f.Expected += fmt.Sprintf(" from %d sources", sum.Members)
		f.Found += fmt.Sprintf(" from %d sources", t.Members)
	}
	if len(t.Targets) > 0 {
		f.Item = t.Targets[0]
	}
	if len(t.torn) > 0 {
		r := attributes.ItemFromTable(e.Rows[t.torn[0]])
		f.Expected = sum.Value.String()
		f.Found = fmt.Sprintf("no number: value %s, members %s, operations %s",
			audit.Text(r["value"]), audit.Text(r["members"]), audit.Text(r["ops"]))
	}
	reading.Findings = []drift.Finding{f}
	reading.Fix.Way, reading.Fix.Lacks = drift.MendFirst, lacks.String()
}

func judgeDisplay(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, t auditedTotal, sum audit.Amount) {
	sus := reading.Suspect
	item := e.Items[sus.Item]
	reading.Concerns = append(reading.Concerns, drift.KeyToken(sus.Item))
	reading.Fix.Keys = []change.Key{sus.Item}
	m, ok := e.Set.Identify(sus.Item, item)
	if item == nil || !ok || m.Entity != b.Rule.Target {
		return
	}
	group, has, err := Of(b.Rule).GroupOf(&m, item)
	shower := showerOf(e, b, sus, t)
	reading.State = change.Digest(
		change.String(reading.Fix.Seen), change.String(strconv.FormatInt(t.Changes, 10)), auditing.RuleValue(b, item),
		change.String(group), change.String(shower.String()))
	switch {
	case err != nil || has && group != sus.Group: // another group's: that one is judged
	case !has:
		reading.Findings = compareDisplay(b, sus.Item, "", item, "")
	case shower != sus.Item: // another item has this unique value, too, and shows the sum
		reading.Findings = compareDisplay(b, sus.Item, sus.Group, item, "")
	default:
		reading.Findings = compareDisplay(b, sus.Item, sus.Group, item, Of(b.Rule).displayed(sum))
	}
	if count := e.CountShown(b, sus.Item, sus.Group, item); sus.Group != "" && sum.Equals(t.Amount) && count > t.Operations+t.Changes {
		reading.Findings = append(reading.Findings, stampAhead(b, sus.Item, sus.Group, t.Operations+t.Changes, item))
		// It is the count that has to be raised, or the stamp that goes.
		reading.Fix.Way, reading.Fix.Lacks = drift.MendFirst, audit.Amount{}.String()
	}
}

// showerOf is the item that is to display a sum in the place of which a suspect
// was found: of those with its unique value the first, whatever the locator says.
func showerOf(e *auditing.Evidence, b *plan.Binding, sus drift.Suspect, t auditedTotal) change.Key {
	first := sus.Item
	if !b.Rule.ByUnique {
		return first
	}
	for _, key := range rivals(sus, t) {
		_, f := e.Asked(key).In(plan.LocatorID(b.Locator), sus.Group)
		if f.Kind == plan.Located && key.String() < first.String() {
			first = key
		}
	}
	return first
}
