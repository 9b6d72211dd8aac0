package projections

import (
	"context"
	"errors"
	"slices"
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// What rederiving an item cannot mend is mended here: what only the engine
// knows. Each reports false if another writer has changed it since it was read.

// MendSum adds to an aggregate what its accumulators lack. That counts as an
// operation, so that a worker that is about to show an older sum comes too late; and
// it counts as so many that what is shown already is older, too.
//
// What is lacking was read while nothing moved, and a worker that moves a
// contribution since changes ledger and accumulators by the same: what is
// lacking stays what it is. Only another mending changes it. Every mending goes
// to the same suffix and raises its count, so the condition that this count is
// as it was read keeps two from adding it twice, however many suffixes there are.
func (a *Audit) MendSum(ctx context.Context, r drift.Reading) (bool, error) {
	g := a.groupOf(r.Suspect)
	totals, err := a.totalsOf(ctx, []drift.Suspect{r.Suspect})
	if err != nil {
		return false, err
	}
	t := totals[g]
	if strconv.FormatInt(t.Operations, 10) != r.Fix.Seen {
		return false, nil
	}
	ahead, stuck, err := a.shownAhead(ctx, g, r.Fix.Keys)
	if err != nil {
		return false, err
	}
	key, c := state.AccumulatorKey(g, 0), table.NewExpression()
	condition := table.Whole(c.Same("operations", attributes.FromTable(t.rows[key]["operations"])))
	add := c.Format("ADD %n %v, %n %v", "value", &ddb.AttributeValueMemberN{Value: r.Fix.Lacks}, "operations", table.Number(max(1, ahead-t.Operations)))
	items := []ddb.TransactWriteItem{a.tables.UpdatePart(key, add, condition, c)}
	for _, torn := range t.torn[:min(len(t.torn), setChecksMax)] {
		operations := state.CountOf(t.rows[torn]["operations"])
		c := table.NewExpression()
		condition := table.Whole(c.SameAs(t.rows[torn], "value", "operations"))
		if torn != key {
			reset := c.Format("SET %n = %v, %n = %v", "value", table.Number(0), "operations", table.Number(operations))
			items = append(items, a.tables.UpdatePart(torn, reset, condition, c))
			continue
		}
		set := c.Format("SET %n = %v, %n = %v", "value", &ddb.AttributeValueMemberN{Value: r.Fix.Lacks}, "operations", table.Number(operations+max(1, ahead-t.Operations)))
		items[0] = a.tables.UpdatePart(key, set, condition, c)
	}
	items = append(items, stuck[:min(len(stuck), plan.TransactActionsMax-len(items))]...)
	return a.mended(a.tables.Transact(ctx, "mending the sum of "+r.Suspect.Group, []string{g.ID}, items))
}

// MendEntry makes a ledger entry readable again: it takes out what cannot be
// read, if that is still so. What it lacks then, rederiving brings back.
func (a *Audit) MendEntry(ctx context.Context, r drift.Reading) (bool, error) {
	s := a.newRead()
	again, err := s.read(ctx, []drift.Suspect{r.Suspect})
	if err != nil || again[0].State != r.State {
		return false, err
	}
	key := state.EntryKey(r.Suspect.Item)
	left := a.planner.Readable(attributes.ItemFromTable(s.rows[key]))
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(s.rows[key], "at", "rederived", "effects"))
	set := c.Format("SET %n = %v, %n = %v", "at", attributes.ToTable(left["at"]), "effects", attributes.ToTable(left["effects"]))
	if _, ok := left["rederived"]; !ok {
		set += " REMOVE " + c.Name("rederived")
	}
	items := []ddb.TransactWriteItem{a.tables.UpdatePart(key, set, condition, c)}
	return a.mended(a.tables.Transact(ctx, "mending the ledger entry of "+r.Suspect.Item.String(), nil, items))
}

// mended says what became of a mending transaction.
func (a *Audit) mended(err error) (bool, error) {
	if canceled := new(ddb.TransactionCanceledException); errors.As(err, &canceled) && table.Refusal(err) == "" {
		return false, nil
	}
	return err == nil, err
}

// shownAhead is a count of operations that no target of an aggregate shows yet. Of
// the targets whose stamp no count is raised above, the stamp is taken off.
func (a *Audit) shownAhead(ctx context.Context, g plan.GroupRef, targets []change.Key) (ahead int64, stuck []ddb.TransactWriteItem, err error) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(k change.Key) bool { return !a.tables.CanExist(k) })
	items, err := a.tables.ReadItems(ctx, "reading what displays a sum", targets)
	highest := int64(0)
	for _, key := range targets {
		item, ok := items[key]
		if !ok {
			continue
		}
		shown := aggregates.CountShown(a.auditor, g.Binding, key, g.Group, item)
		if shown <= aggregates.RaisedMax {
			highest = max(highest, shown)
			continue
		}
		c := table.NewExpression()
		condition, remove := table.Whole(c.Same(g.Stamp, item.Lookup(g.Stamp))), c.Format("REMOVE %n", g.Stamp)
		stuck = append(stuck, ddb.TransactWriteItem{Update: &ddb.Update{
			TableName: &a.tables.Table, Key: a.tables.ItemKey(key), UpdateExpression: &remove, ConditionExpression: &condition,
			ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
		}})
	}
	return highest + 1, stuck, err
}

// setChecksMax is how many members' entries a mending transaction checks: one
// action is the set itself, another the row of a contested target. Of more members
// the entries are only read.
const setChecksMax = plan.TransactActionsMax - 2

// MendSet puts in a locator, or in the claims of a mirror item, those whose
// ledger entries say that they belong there, provided that neither has changed
// since it was read. It takes the target off the list of contested ones: rederiving
// what goes by the set lists it anew if it is contested.
func (a *Audit) MendSet(ctx context.Context, r drift.Reading) (bool, error) {
	s := a.newRead()
	again, err := s.read(ctx, []drift.Suspect{r.Suspect})
	if err != nil || again[0].State != r.State {
		return false, err
	}
	r = again[0]
	key := s.rowsOf(r.Suspect)[0]
	ahead, err := a.setShownAhead(ctx, r)
	if err != nil {
		return false, err
	}
	attribute := "items"
	if r.Suspect.Kind == drift.Claims {
		attribute = "sources"
	}
	c := table.NewExpression()
	condition, changes := table.Whole(c.SameAs(s.rows[key], "changes")), state.CountOf(s.rows[key]["changes"])
	update := c.Format("SET %n = %v", "changes", table.Number(max(changes+1, ahead)))
	if len(r.Fix.Should) > 0 {
		update += c.Format(", %n = %v REMOVE %n", attribute, &ddb.AttributeValueMemberSS{Value: r.Fix.Should}, "listed")
	} else {
		update += " REMOVE " + c.List([]string{attribute, "listed"})
	}
	items := []ddb.TransactWriteItem{a.tables.UpdatePart(key, update, condition, c), a.tables.DeletePart(s.rowsOf(r.Suspect)[1], "", table.NewExpression())}
	for _, member := range s.membersOf(r.Suspect)[:min(setChecksMax, len(s.membersOf(r.Suspect)))] {
		check, err := s.entryCheck(change.ParseKey(member))
		if err != nil {
			return false, err
		}
		items = append(items, check)
	}
	return a.mended(a.tables.Transact(ctx, "mending "+key.Partition, []string{r.Suspect.Rule}, items))
}

// entryCheck checks that a ledger entry is as it was read.
func (s *auditRead) entryCheck(item change.Key) (ddb.TransactWriteItem, error) {
	key := state.EntryKey(item)
	ent, err := state.ReadEntry(s.planner, s.rows[key])
	c := table.NewExpression()
	condition := state.EntryIs(c, ent)
	return s.tables.CheckPart(key, condition, c), err
}

// setShownAhead is a count of changes with which no stamp is as high as what is shown by it next.
func (a *Audit) setShownAhead(ctx context.Context, r drift.Reading) (int64, error) {
	items, err := a.tables.ReadItems(ctx, "reading what goes by a set", r.Fix.Keys)
	if err != nil {
		return 0, err
	}
	highest := int64(0)
	if r.Suspect.Kind == drift.Claims {
		b := a.planner.ByID(r.Suspect.Rule)
		if shown := aggregates.CountShown(a.auditor, b, r.Suspect.Item, "", items[r.Suspect.Item]); shown <= aggregates.RaisedMax {
			highest = shown
		}
		return highest + 1, nil
	}
	locator, _ := plan.LocatorIn(r.Suspect.Rule)
	for _, rule := range a.planner.Set.Rules {
		if !rule.ByUnique || a.planner.Of(rule).Locator != locator {
			continue
		}
		for key, item := range items { // the operations come on top of it
			if shown := aggregates.CountShown(a.auditor, a.planner.Of(rule), key, r.Suspect.Group, item); shown <= aggregates.RaisedMax {
				highest = max(highest, shown)
			}
		}
	}
	return highest + 1, nil
}

// PruneReference deletes a reference whose child is gone or refers elsewhere, unless it was put again.
func (a *Audit) PruneReference(ctx context.Context, r drift.Reading) (bool, error) {
	s := a.newRead()
	again, err := s.read(ctx, []drift.Suspect{r.Suspect})
	if err != nil {
		return false, err
	}
	orphaned := slices.ContainsFunc(again[0].Findings, func(f drift.Finding) bool { return f.What == drift.Orphaned })
	if !orphaned || again[0].Fix.Seen != r.Fix.Seen {
		return false, nil
	}
	key := s.rowsOf(r.Suspect)[0]
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(s.rows[key], "at"))
	return true, a.tables.DeleteState(ctx, r.Suspect.Rule, "pruning a reference", key, condition, c)
}

// DropTorn deletes a parent's position that no fan-out would ever be higher than,
// or a task that no process can work off, as it was read. Rederiving the parent brings
// its children to what it is.
func (a *Audit) DropTorn(ctx context.Context, r drift.Reading) (bool, error) {
	s := a.newRead()
	again, err := s.read(ctx, []drift.Suspect{r.Suspect})
	if err != nil || again[0].State != r.State {
		return false, err
	}
	key := s.rowsOf(r.Suspect)[0]
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(s.rows[key], "at", "rule", "parent", "refill", "changes"))
	return true, a.tables.DeleteState(ctx, r.Suspect.Rule, "dropping a torn row of "+r.Suspect.Item.String(), key, condition, c)
}
