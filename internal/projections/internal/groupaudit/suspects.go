package groupaudit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

var procedure = &auditing.Procedure{
	Rows: auditing.Rows{totalRows}, More: readMore, Items: auditing.Items{displayCandidates}, Judge: judge, Parkings: displayParkings,
	Operations: operations, Mend: mendTotal,
}

// Procedure implements auditing.Family.
func (Auditing) Procedure(of drift.Kind) *auditing.Procedure {
	switch of {
	case drift.Sum, drift.Display:
		return procedure
	case MemberRow:
		return memberProcedure
	}
	return nil
}

// groupOf is the aggregate that a suspect is about.
func groupOf(t *auditing.Table, sus drift.Suspect) plan.GroupRef {
	return plan.GroupRef{Binding: t.ByID(sus.Rule), Group: sus.Group}
}

// displayParkings are the keys under which a suspect's display is parked. A finding about a parked record has none.
func displayParkings(_ *auditing.Evidence, r *drift.Reading, f drift.Finding) []table.Key {
	if f.Kind == drift.Parked || r.Suspect.Item == (change.Key{}) {
		return nil
	}
	return []table.Key{state.ParkedKey(audit.DisplayID(r.Suspect.Rule, r.Suspect.Item))}
}

func totalRows(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	if sus.Group == "" {
		return nil
	}
	g := groupOf(e.Table, sus)
	keys := groups.TotalKeys(g)
	if g.Rule.Derives() {
		keys = auditedItem(e, sus).Rows()
	}
	if g.Rule.HasPer() {
		keys = append(keys, groups.CrowdedKey(g))
	}
	return append(keys, dueRows(e, sus)...)
}

// dueRows are the rows of the roll-ups that write what a suspect displays, if they were put off. One roll-up writes a derived item for all
// of its rules.
func dueRows(e *auditing.Evidence, sus drift.Suspect) (keys []table.Key) {
	g := groupOf(e.Table, sus)
	if sus.Kind != drift.Display || sus.Group == "" {
		return nil
	}
	if !g.Rule.Derives() {
		return []table.Key{state.DueRollupKey(g)}
	}
	for _, b := range auditedItem(e, sus).Live {
		keys = append(keys, state.DueRollupKey(plan.GroupRef{Binding: b, Group: g.Group}))
	}
	return keys
}

// auditedTotal is an aggregate's accumulators added up, but for those that are torn.
type auditedTotal struct {
	groups.Total
	torn []table.Key
}

func totalOf(e *auditing.Evidence, sus drift.Suspect) auditedTotal {
	g, t, rows := groupOf(e.Table, sus), auditedTotal{}, e.Rows
	if sus.Group == "" || e.Incarnation == "" {
		return t
	}
	for suffix := range g.Suffixes {
		key := state.AccumulatorKey(g, suffix)
		if r, ok := rows[key]; ok && audit.TornSum(g.Binding, attributes.ItemFromTable(r)) {
			t.torn = append(t.torn, key)
		}
	}
	if len(t.torn) > 0 {
		rows = maps.Clone(rows)
		for _, key := range t.torn { // it holds nothing that counts
			rows[key] = table.Row{"value": table.Number(0), "ops": table.Number(state.CountOf(rows[key]["ops"]))}
		}
	}
	t.Total = groups.AddUp(g, rows)
	t.More = e.More[sus.ID()]
	return t
}

// readMore reads what a target shows beside the accumulators.
func readMore(ctx context.Context, e *auditing.Evidence, sus drift.Suspect) error {
	g := groupOf(e.Table, sus)
	reader, ok := g.Rule.Form.(groups.Reader)
	if !ok || sus.Kind != drift.Display || sus.Group == "" {
		return nil
	}
	var t groups.Total
	err := reader.Read(ctx, e.Tables.Reader, g, &t)
	e.More[sus.ID()] = t.More
	return err
}

func operations(e *auditing.Evidence, sus drift.Suspect) int64 { return totalOf(e, sus).Operations }

// displayCandidates are the items that may display a sum: those of a suspect display alone are read.
func displayCandidates(e *auditing.Evidence, sus drift.Suspect) []change.Key {
	if sus.Kind == drift.Sum {
		return nil
	}
	return append([]change.Key{sus.Item}, otherCandidates(sus, totalOf(e, sus))...)
}

// otherCandidates are the items that may display a sum in place of a suspect.
func otherCandidates(sus drift.Suspect, t auditedTotal) []change.Key {
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
		reading.Concerns = append(reading.Concerns, audit.LocatorToken(effects.LocatorID(b.Locator), sus.Group))
	}
	if before, counted := e.Before[sus.GroupID()]; counted && before != t.Operations {
		reading.Waiting = "it is changing too fast to be judged"
	}
	if t.Err != nil {
		return reading // no number holds it: that is parked
	}
	sum := t.Amount
	if text, known := e.Want[sus.GroupID()]; known {
		if sum = tally.Parse(text); sum.Overflow {
			return reading
		}
	}
	switch {
	case sus.Kind == drift.Sum:
		judgeTotal(e, &reading, b, t, sum)
	case b.Rule.Derives():
		judgeDerived(e, &reading, b, t, sum)
	default:
		judgeDisplay(e, &reading, b, t, sum)
	}
	putOff := slices.ContainsFunc(dueRows(e, sus), func(key table.Key) bool { return len(e.Rows[key]) > 0 })
	if putOff && reading.Waiting == "" {
		reading.Waiting = "its roll-up is put off, and due"
	}
	return reading
}

// textOf says what a group adds up to, and of how many sources.
func textOf(r *rules.Rule, a tally.Amount) string {
	sources := printable.Counted(a.Members, "source")
	if summed := formOf(r).Summed(a); summed != "" {
		return summed + " from " + sources
	}
	return sources
}

func judgeTotal(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, t auditedTotal, sum tally.Amount) {
	reading.State = change.Digest(
		change.String(reading.Fix.Seen), change.String(t.Amount.String()), change.String(sum.String()), change.Number(strconv.Itoa(len(t.torn))))
	lacks := sum.Lacks(t.Amount)
	reading.Fix.Lacks = lacks.String()
	if lacks.Overflow || lacks.Equals(tally.Amount{}) && len(t.torn) == 0 {
		judgeListing(e, reading, b, sum)
		return
	}
	f := drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Sum, What: drift.Wrong, Group: reading.Suspect.Group, Attribute: plan.Listed(b.Rule.Writes),
		Expected: formOf(b.Rule).Summed(sum), Found: formOf(b.Rule).Summed(t.Amount), WriteUnits: table.TransactionUnitsMin,
	}
	if lacks.Value.IsZero() && lacks.Parts.String() == "" {
		f.Expected, f.Found = textOf(b.Rule, sum), textOf(b.Rule, t.Amount)
	}
	if len(t.Targets) > 0 {
		f.Item = t.Targets[0]
	}
	if len(t.torn) > 0 {
		r := attributes.ItemFromTable(e.Rows[t.torn[0]])
		f.Expected = cmp.Or(formOf(b.Rule).Summed(sum), textOf(b.Rule, sum))
		f.Found = fmt.Sprintf("no number: value %s, members %s, operations %s",
			audit.Text(r["value"]), audit.Text(r["members"]), audit.Text(r["ops"]))
	}
	reading.Findings = []drift.Finding{f}
	reading.Fix.Way = drift.MendFirst
}

func judgeDisplay(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, t auditedTotal, sum tally.Amount) {
	sus := reading.Suspect
	item := e.Items[sus.Item]
	reading.Concerns = append(reading.Concerns, drift.KeyToken(sus.Item))
	reading.Fix.Keys = []change.Key{sus.Item}
	m, ok := e.Set.Identify(sus.Item, item)
	if item == nil || !ok || m.Entity != b.Rule.Target {
		return
	}
	group, has, err := b.Rule.GroupOf(&m, item)
	shower := displayingItem(e, b, sus, t)
	reading.State = change.Digest(
		change.String(reading.Fix.Seen), change.String(strconv.FormatInt(t.Changes, 10)), auditing.RuleValue(b, item),
		change.String(group), change.String(shower.String()))
	switch {
	case err != nil || has && group != sus.Group: // another group's: that one is judged
	case !has:
		reading.Findings = compareDisplay(b, sus.Item, "", item, make([]change.Value, len(b.Rule.Writes)))
	case shower != sus.Item: // another item has this unique value, too, and shows the sum
		reading.Findings = compareDisplay(b, sus.Item, sus.Group, item, make([]change.Value, len(b.Rule.Writes)))
	default:
		reading.Findings = compareShown(b, sus.Item, sus.Group, item, t, sum)
	}
	if count := e.CountShown(b, sus.Item, sus.Group, item); sus.Group != "" && sum.Equals(t.Amount) && count > t.Operations+t.Changes {
		reading.Findings = append(reading.Findings, stampAhead(b, sus.Item, sus.Group, t.Operations+t.Changes, item))
		// It is the count that has to be raised, or the stamp that goes.
		reading.Fix.Way, reading.Fix.Lacks = drift.MendFirst, tally.Amount{}.String()
	}
}

// compareShown compares what an item displays with what its group adds up to. If rows beside the accumulators tell what is displayed, and
// there is none yet, as before a new rule comes into force, only that something is displayed can be foreseen.
func compareShown(b *plan.Binding, key change.Key, group string, item change.Image, t auditedTotal, sum tally.Amount) []drift.Finding {
	want := valuesOf(t.Total, b, sum)
	if _, reads := b.Rule.Form.(groups.Reader); !reads || t.Operations > 0 || sum.Members == 0 || !groups.IsNothing(want) {
		return compareDisplay(b, key, group, item, want)
	}
	f := drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Display, What: drift.Missing, Item: key, Group: group, Attribute: plan.Listed(b.Rule.Writes),
		Expected: "what " + textOf(b.Rule, sum) + " show", WriteUnits: audit.UnitsOf(item),
	}
	for _, v := range plan.ValuesOf(b.Rule, item) {
		if text := formOf(b.Rule).Text(v); text != "" {
			f.What, f.Found = drift.Wrong, text
		}
	}
	return []drift.Finding{f}
}

// displayingItem returns the item that must display a sum: the first one with the suspect's unique value, whatever the locator says.
func displayingItem(e *auditing.Evidence, b *plan.Binding, sus drift.Suspect, t auditedTotal) change.Key {
	first := sus.Item
	if !b.Rule.ByUnique {
		return first
	}
	for _, key := range otherCandidates(sus, t) {
		_, f := e.Asked(key).In(effects.LocatorID(b.Locator), sus.Group)
		if f.Kind == effects.Located && key.String() < first.String() {
			first = key
		}
	}
	return first
}

// tornMax bounds how many torn accumulators one transaction mends, beside the one that is added to.
const tornMax = plan.TransactActionsMax - 2

// mendTotal adds to an aggregate what its accumulators lack. That counts as so many operations that a worker that is about to
// show an older sum comes too late, and what is shown already is older, too.
//
// What is lacking was read while nothing moved. A worker that moves a contribution since changes ledger and accumulators by the
// same, so only another mending changes what is lacking. Every mending raises the count of the same suffix: the condition that
// this count is as it was read keeps two from adding it twice.
func mendTotal(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	g, total := groupOf(e.Table, r.Suspect), totalOf(e, r.Suspect)
	ahead, stuck, err := shownAhead(ctx, e.Table, g, r.Fix.Keys)
	if err != nil {
		return false, err
	}
	if g.Rule.HasPer() {
		return mendParts(ctx, e, r, total, ahead, stuck)
	}
	key, c := state.AccumulatorKey(g, 0), table.NewExpression()
	condition := table.Whole(c.SameAs(e.Rows[key], "ops"))
	lacks := tally.Parse(r.Fix.Lacks)
	raised := max(1, ahead-total.Operations)
	add := state.AddAmount(c, tally.Amount{Value: lacks.Value, Members: lacks.Members}, raised)
	items := []ddb.TransactWriteItem{e.Tables.UpdatePart(key, add, condition, c)}
	for _, torn := range total.torn[:min(len(total.torn), tornMax)] {
		row := e.Rows[torn]
		operations := state.CountOf(row["ops"])
		c := table.NewExpression()
		condition := table.Whole(c.SameAs(row, "value", "members", "ops"))
		if torn != key {
			items = append(items, e.Tables.UpdatePart(torn, reset(c, tally.Amount{}, operations), condition, c))
			continue
		}
		items[0] = e.Tables.UpdatePart(key, reset(c, lacks, operations+raised), condition, c)
	}
	items = append(items, stuck[:min(len(stuck), plan.TransactActionsMax-len(items))]...)
	return e.Transact(ctx, "mending the sum of "+r.Suspect.Group, g.ID, items)
}

// reset puts an accumulator in the place of a torn one.
func reset(c *table.Expression, a tally.Amount, operations int64) string {
	return c.Format("SET %n = %v, %n = %v, %n = %v",
		"value", state.Number(a.Value), "members", table.Number(a.Members), "ops", table.Number(operations))
}

// shownAhead is a count of operations that no target of an aggregate shows yet. Of
// the targets whose stamp no count is raised above, the stamp is taken off.
func shownAhead(ctx context.Context, t *auditing.Table, g plan.GroupRef, targets []change.Key) (ahead int64, stuck []ddb.TransactWriteItem,
	err error) {
	items, err := t.Tables.ReadItems(ctx, "reading what displays a sum", targets)
	highest := int64(0)
	for _, key := range targets {
		item, ok := items[key]
		if !ok {
			continue
		}
		shown := t.CountShown(g.Binding, key, g.Group, item)
		if shown <= audit.RaisedMax {
			highest = max(highest, shown)
			continue
		}
		w := target.On(g.Binding, "", key)
		w.TakeOff(g.Stamp)
		w.Condition = table.Whole(w.Same(g.Stamp, item.Lookup(g.Stamp)))
		stuck = append(stuck, w.InTransaction(t.Tables.Reader))
	}
	return highest + 1, stuck, err
}

// valuesOf are what a target shows, had its group this sum.
func valuesOf(t groups.Total, b *plan.Binding, sum tally.Amount) []change.Value {
	t.Amount = sum
	return formOf(b.Rule).Values(t)
}
