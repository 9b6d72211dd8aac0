package projections

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// groupOf is the aggregate that a suspect is about.
func (a *Audit) groupOf(sus drift.Suspect) plan.GroupRef {
	return plan.GroupRef{Binding: a.planner.ByID(sus.Rule), Group: sus.Group}
}

// Operations reads how often each aggregate was changed. Every move of a
// contribution raises it in the same transaction: where it stands still,
// nothing was added or taken away.
func (a *Audit) Operations(ctx context.Context, suspects []drift.Suspect) ([]int64, error) {
	all := make([]int64, 0, len(suspects))
	for chunk := range slices.Chunk(suspects, auditAtOnce) {
		totals, err := a.totalsOf(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for _, sus := range chunk {
			all = append(all, totals[a.groupOf(sus)].Operations)
		}
	}
	return all, nil
}

// auditTotal is an aggregate's accumulators added up, but for those that are torn.
type auditTotal struct {
	aggregates.Total
	rows map[table.Key]table.Row
	torn []table.Key
}

func (a *Audit) totalsOf(ctx context.Context, suspects []drift.Suspect) (map[plan.GroupRef]auditTotal, error) {
	var groups []plan.GroupRef
	for _, sus := range suspects {
		if g := a.groupOf(sus); sus.Group != "" && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	totals := map[plan.GroupRef]auditTotal{}
	if a.planner.Incarnation == "" || len(groups) == 0 {
		return totals, nil
	}
	rows, err := a.tables.ReadState(ctx, "reading accumulators", aggregates.TotalKeys(groups))
	for _, g := range groups {
		totals[g] = auditTotalOf(g, rows)
	}
	return totals, err
}

func auditTotalOf(g plan.GroupRef, rows map[table.Key]table.Row) auditTotal {
	t := auditTotal{rows: rows}
	for suffix := range g.Suffixes {
		key := state.AccumulatorKey(g, suffix)
		if r, ok := rows[key]; ok && audit.TornSum(attributes.ItemFromTable(r)) {
			t.torn = append(t.torn, key)
		}
	}
	if len(t.torn) > 0 {
		rows = maps.Clone(rows)
		for _, key := range t.torn { // it holds nothing that counts
			rows[key] = table.Row{"value": table.Number(0), "operations": table.Number(state.CountOf(rows[key]["operations"]))}
		}
	}
	t.Total = aggregates.AddUp(g, rows)
	return t
}

// ReadSums reads aggregates, and what displays them, anew. want says what the
// sum of the ledger entries is, where it is known; else what the accumulators
// hold is taken for right. moved reports aggregates whose count of operations
// is not the one given in before any more: what want says of them is of no use.
func (a *Audit) ReadSums(ctx context.Context, suspects []drift.Suspect, want map[string]string, before map[string]int64) ([]drift.Reading, error) {
	return readChunks(ctx, suspects, func(ctx context.Context, chunk []drift.Suspect) ([]drift.Reading, error) {
		return a.newRead().readSums(ctx, chunk, want, before)
	})
}

func (s *auditRead) readSums(ctx context.Context, chunk []drift.Suspect, want map[string]string, before map[string]int64) ([]drift.Reading, error) {
	totals, err := s.totalsOf(ctx, chunk)
	if err != nil {
		return nil, err
	}
	var items []change.Key
	for _, sus := range chunk {
		if sus.Kind == drift.Display {
			items = append(append(items, sus.Item), rivals(sus, totals[s.groupOf(sus)])...)
		}
	}
	if err := s.fetchItems(ctx, items); err != nil {
		return nil, err
	}
	readings := make([]drift.Reading, len(chunk))
	for i, sus := range chunk {
		t := totals[s.groupOf(sus)]
		sum, known := want[sus.GroupID()]
		readings[i] = s.judgeSum(sus, t, sum, known)
		if ops, counted := before[sus.GroupID()]; counted && ops != t.Operations {
			readings[i].Waiting = "it is changing too fast to be judged"
		}
	}
	return readings, s.excuse(ctx, readings)
}

func (s *auditRead) judgeSum(sus drift.Suspect, t auditTotal, sum string, known bool) drift.Reading {
	b := s.planner.ByID(sus.Rule)
	reading := drift.Reading{
		Suspect: sus, Concerns: []string{audit.SumToken(sus.Rule, sus.Group)}, Fix: drift.Fix{Keys: t.Targets, Seen: strconv.FormatInt(t.Operations, 10)},
	}
	if b.Rule.ByUnique {
		reading.Concerns = append(reading.Concerns, audit.LocatorToken(plan.LocatorID(b.Locator), sus.Group))
	}
	if t.Err != nil {
		return reading // no number holds it: that is parked
	}
	if !known {
		sum = t.Value.String()
	}
	if sus.Kind == drift.Sum {
		reading.State = change.Digest(change.String(reading.Fix.Seen), change.String(t.Value.String()), change.String(sum), change.Number(strconv.Itoa(len(t.torn))))
		s.compareSum(&reading, b, t, sum)
		return reading
	}
	item := s.items[sus.Item]
	reading.Concerns = append(reading.Concerns, drift.KeyToken(sus.Item))
	reading.Fix.Keys = []change.Key{sus.Item}
	m, ok := s.planner.Set.Identify(sus.Item, item)
	if item == nil || !ok || m.Entity != b.Rule.Target {
		return reading
	}
	group, has, err := aggregates.Of(b.Rule).GroupOf(&m, item)
	shower := s.shower(b, sus, t)
	reading.State = change.Digest(change.String(reading.Fix.Seen), change.String(strconv.FormatInt(t.Changes, 10)), ruleValue(b, item), change.String(group), change.String(shower.String()))
	switch {
	case err != nil || has && group != sus.Group: // another group's: that one is judged
	case !has:
		reading.Findings = aggregates.CompareDisplay(b, sus.Item, "", item, "")
	case shower != sus.Item: // another item has this unique value, too, and shows the sum
		reading.Findings = aggregates.CompareDisplay(b, sus.Item, sus.Group, item, "")
	default:
		reading.Findings = aggregates.CompareDisplay(b, sus.Item, sus.Group, item, aggregates.SumText(sum))
	}
	lacks, _ := aggregates.Lacks(sum, t.Value.String()) // mending that raises the count, too
	if count := aggregates.CountShown(s.auditor, b, sus.Item, sus.Group, item); sus.Group != "" && lacks == "" && count > t.Operations+t.Changes {
		reading.Findings = append(reading.Findings, aggregates.StampAhead(b, sus.Item, sus.Group, t.Operations+t.Changes, item))
		reading.Fix.Lacks = "0" // it is the count that has to be raised, or the stamp that goes
	}
	return reading
}

// rivals are the items that may display a sum in place of a suspect.
func rivals(sus drift.Suspect, t auditTotal) []change.Key {
	all := slices.Clone(t.Targets[:min(len(t.Targets), 1)])
	for _, first := range sus.Members {
		all = append(all, change.ParseKey(first))
	}
	return all
}

// shower is the item that is to display a sum in the place of which a suspect
// was found: of those with its unique value the first, whatever the locator says.
func (s *auditRead) shower(b *plan.Binding, sus drift.Suspect, t auditTotal) change.Key {
	first := sus.Item
	if !b.Rule.ByUnique {
		return first
	}
	for _, key := range rivals(sus, t) {
		f := s.planner.EffectsOf(key, table.Image(s.items[key]))[plan.LocatorID(b.Locator)]
		if f.Kind == plan.Located && f.Value == sus.Group && key.String() < first.String() {
			first = key
		}
	}
	return first
}

func (s *auditRead) compareSum(reading *drift.Reading, b *plan.Binding, t auditTotal, sum string) {
	lacks, ok := aggregates.Lacks(sum, t.Value.String())
	if !ok || lacks == "" && len(t.torn) == 0 {
		return
	}
	f := drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Sum, What: drift.Wrong, Group: reading.Suspect.Group, Attribute: b.Rule.Writes[0],
		Expected: sum, Found: t.Value.String(), WriteUnits: table.TransactionUnitsMin,
	}
	if len(t.Targets) > 0 {
		f.Item = t.Targets[0]
	}
	if len(t.torn) > 0 {
		r := attributes.ItemFromTable(t.rows[t.torn[0]])
		f.Found = fmt.Sprintf("no number: value %s, operations %s", audit.Text(r["value"]), audit.Text(r["operations"]))
	}
	reading.Findings = []drift.Finding{f}
	reading.Fix.Lacks = cmp.Or(lacks, "0")
}
