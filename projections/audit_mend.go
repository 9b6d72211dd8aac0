package projections

import (
	"context"
	"errors"
	"slices"
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// What rederiving an item cannot mend is mended here: what only the engine
// knows. Each reports false if somebody else has changed it since it was read.

// MendSum adds to an aggregate what its accumulators lack. That counts as an
// operation, so that whoever is about to show an older sum comes too late; and
// it counts as so many that what is shown already is older, too.
//
// What is lacking was read while nothing moved, and whoever moves a
// contribution since changes ledger and accumulators by the same: what is
// lacking stays what it is. Only another mending changes it. Every mending goes
// to the same suffix and raises its count, so the condition that this count is
// as it was read keeps two from adding it twice, however many suffixes there are.
func (a *Audit) MendSum(ctx context.Context, r drift.Reading) (bool, error) {
	g := a.groupOf(r.Suspect)
	var keys []stateKey
	for suffix := range readSuffixes(g) {
		keys = append(keys, accumulatorKey(g, suffix))
	}
	rows, err := a.readState(ctx, "reading accumulators to mend", keys)
	if err != nil {
		return false, err
	}
	t := addUp(g, rows)
	if strconv.FormatInt(t.operations, 10) != r.Fix.Seen {
		return false, nil
	}
	ahead, err := a.shownAhead(ctx, g, r.Fix.Keys)
	if err != nil {
		return false, err
	}
	key, c := keys[0], newExpression()
	condition := c.sprintf("attribute_not_exists(%n)", "operations")
	if n, ok := rows[key]["operations"]; ok {
		condition = c.sprintf("%n = %v", "operations", n)
	}
	add := c.sprintf("ADD %n %v, %n %v", "value", &ddb.AttributeValueMemberN{Value: r.Fix.Lacks}, "operations", numberValue(max(1, ahead-t.operations)))
	return a.mended(a.transact(ctx, "mending the sum of "+r.Suspect.Group, []string{g.ID}, []ddb.TransactWriteItem{{Update: &ddb.Update{
		TableName: &a.stateTable, Key: key.attributes(), UpdateExpression: &add, ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}))
}

// mended says what became of a mending transaction.
func (a *Audit) mended(err error) (bool, error) {
	if canceled := new(ddb.TransactionCanceledException); errors.As(err, &canceled) && refusal(err, canceled) == "" {
		return false, nil
	}
	return err == nil, err
}

// shownAhead is a count of operations that no target of an aggregate shows yet.
func (a *Audit) shownAhead(ctx context.Context, g plan.GroupRef, targets []change.Key) (int64, error) {
	items, err := a.readItems(ctx, "reading what displays a sum", targets)
	highest := int64(0)
	for key, item := range items {
		highest = max(highest, a.auditor.CountShown(g.Binding, key, g.Group, item))
	}
	return highest + 1, err
}

// setChecksMax is how many members' entries a mending transaction checks: one
// action is the set itself. Of more members the entries are only read.
const setChecksMax = plan.TransactActionsMax - 1

// MendSet puts in a locator, or in the claims of a mirror item, those whose
// ledger entries say that they belong there, provided that neither has changed
// since it was read.
func (a *Audit) MendSet(ctx context.Context, r drift.Reading) (bool, error) {
	s := a.newRead(ctx)
	again, err := s.read([]drift.Suspect{r.Suspect})
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
	c := newExpression()
	condition, changes := c.sprintf("attribute_not_exists(%n)", "changes"), numberOf(s.rows[key]["changes"])
	if len(s.rows[key]) > 0 {
		condition = c.sprintf("%n = %v", "changes", s.rows[key]["changes"])
	}
	update := c.sprintf("SET %n = %v", "changes", numberValue(max(changes+1, ahead)))
	if len(r.Fix.Should) > 0 {
		update += c.sprintf(", %n = %v", attribute, &ddb.AttributeValueMemberSS{Value: r.Fix.Should})
	} else {
		update += " REMOVE " + c.name(attribute)
	}
	items := []ddb.TransactWriteItem{{Update: &ddb.Update{
		TableName: &a.stateTable, Key: key.attributes(), UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}
	for _, member := range s.membersOf(r.Suspect)[:min(setChecksMax, len(s.membersOf(r.Suspect)))] {
		check, err := s.entryCheck(change.ParseKey(member))
		if err != nil {
			return false, err
		}
		items = append(items, check)
	}
	return a.mended(a.transact(ctx, "mending "+key.partition, []string{r.Suspect.Rule}, items))
}

// entryCheck checks that a ledger entry is as it was read.
func (s *auditRead) entryCheck(item change.Key) (ddb.TransactWriteItem, error) {
	key := entryKey(item)
	ent, err := readEntry(s.rows[key])
	c := newExpression()
	condition := c.entryIs(ent)
	return ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
		TableName: &s.stateTable, Key: key.attributes(), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}, err
}

// setShownAhead is a count of changes with which no stamp is as high as what is shown by it next.
func (a *Audit) setShownAhead(ctx context.Context, r drift.Reading) (int64, error) {
	items, err := a.readItems(ctx, "reading what goes by a set", r.Fix.Keys)
	if err != nil {
		return 0, err
	}
	highest := int64(0)
	if r.Suspect.Kind == drift.Claims {
		b := a.planner.ByID(r.Suspect.Rule)
		highest = a.auditor.CountShown(b, r.Suspect.Item, "", items[r.Suspect.Item])
		return highest + 1, nil
	}
	locator, _ := plan.LocatorIn(r.Suspect.Rule)
	for _, rule := range a.planner.Set.Rules {
		if !rule.ByUnique || a.planner.Of(rule).Locator != locator {
			continue
		}
		for key, item := range items { // the operations come on top of it
			highest = max(highest, a.auditor.CountShown(a.planner.Of(rule), key, r.Suspect.Group, item))
		}
	}
	return highest + 1, nil
}

// PruneReference deletes a reference whose child is gone or refers elsewhere, unless it was put again.
func (a *Audit) PruneReference(ctx context.Context, r drift.Reading) (bool, error) {
	again, err := a.Read(ctx, []drift.Suspect{r.Suspect})
	if err != nil {
		return false, err
	}
	orphaned := slices.ContainsFunc(again[0].Findings, func(f drift.Finding) bool { return f.What == drift.Orphaned })
	if !orphaned || again[0].Fix.Seen != r.Fix.Seen {
		return false, nil
	}
	b := a.planner.ByID(r.Suspect.Rule)
	reference := referenceKey(b, change.ParseKey(r.Suspect.Group), r.Suspect.Item).attributes()
	reference["at"] = textValue(r.Fix.Seen)
	return true, a.pruneReference(ctx, b.ID, reference)
}
