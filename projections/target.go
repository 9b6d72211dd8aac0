package projections

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/table"
	"github.com/dynamill/dynamill/rules"
)

// targetWrite is what one rule wants of one item of the user's table, and what must hold of
// the item for it. Every target is written in this form, in a ledger transaction or alone.
type targetWrite struct {
	*table.Expression
	b         *plan.Binding
	doing     string
	key       change.Key
	condition string

	set, remove []string
}

func onTarget(b *plan.Binding, doing string, key change.Key) *targetWrite {
	return &targetWrite{Expression: table.NewExpression(), b: b, doing: doing, key: key}
}

// put sets an attribute, or removes it if the value is absent.
func (t *targetWrite) put(attribute string, v change.Value) {
	if v.Kind() == change.KindAbsent {
		t.takeOff(attribute)
		return
	}
	t.set = append(t.set, t.Format("%n = %v", attribute, attributes.ToTable(v)))
}

// stamp sets the rule's stamp.
func (t *targetWrite) stamp(s plan.Stamp) { t.put(t.b.Stamp, change.String(s.String())) }

// takeOff removes attributes.
func (t *targetWrite) takeOff(names ...string) {
	for _, name := range names {
		t.remove = append(t.remove, t.Name(name))
	}
}

// holds adds the condition that attributes still hold what was seen.
func (t *targetWrite) holds(seen change.Image, names ...string) {
	for _, name := range names {
		t.condition += t.Same(name, seen.Lookup(name))
	}
}

// update is the update expression.
func (t *targetWrite) update() string {
	var parts []string
	if len(t.set) > 0 {
		parts = append(parts, "SET "+strings.Join(t.set, ", "))
	}
	if len(t.remove) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(t.remove, ", "))
	}
	return strings.Join(parts, " ")
}

// inTransaction is the write as a part of a transaction; one that changes nothing is a check.
func (t *targetWrite) inTransaction(rd *table.Reader) ddb.TransactWriteItem {
	update := t.update()
	if update == "" {
		return ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
			TableName: &rd.Table, Key: rd.ItemKey(t.key), ConditionExpression: &t.condition,
			ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values, ReturnValuesOnConditionCheckFailure: table.AllOld,
		}}
	}
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &rd.Table, Key: rd.ItemKey(t.key), UpdateExpression: &update, ConditionExpression: &t.condition,
		ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values, ReturnValuesOnConditionCheckFailure: table.AllOld,
	}}
}

// outcome is how the write of a target ended.
type outcome uint8

const (
	written  outcome = iota
	raceLost         // the item is not as the conditions say
	refused          // DynamoDB never takes the write: the (item, rule) is parked
)

// targetWriter writes targets.
type targetWriter struct {
	tables *table.Tables
	// parkRefused parks the (item, rule) if DynamoDB refuses its write for good, and returns every other error.
	parkRefused func(ctx context.Context, b *plan.Binding, item change.Key, err error) error
}

// write sends one write of a target. If it lost the race, standing is the item that
// stands there instead, as of that moment; nil if there is none.
func (w targetWriter) write(ctx context.Context, t *targetWrite) (ended outcome, standing change.Image, err error) {
	update := t.update()
	_, err = w.tables.UpdateItem(ctx, t.b.ID, t.doing, &dynamodb.UpdateItemInput{
		TableName: &w.tables.Table, Key: w.tables.ItemKey(t.key), UpdateExpression: &update, ConditionExpression: &t.condition,
		ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values,
		ReturnValuesOnConditionCheckFailure: table.AllOld,
	})
	var failed *ddb.ConditionalCheckFailedException
	switch {
	case err == nil:
		return written, nil, nil
	case table.Refusal(err) != "":
		return refused, nil, w.parkRefused(ctx, t.b, t.key, err)
	case awscall.Classify(err) != awscall.Condition:
		return raceLost, nil, err
	case errors.As(err, &failed) && len(failed.Item) > 0:
		standing = attributes.ItemFromTable(failed.Item)
	}
	return raceLost, standing, nil
}

// stillEntity is the condition that an item exists and is still of its entity.
func stillEntity(rd *table.Reader, c *table.Expression, entity *rules.Entity) string {
	condition := c.Format("attribute_exists(%n)", rd.PartitionKey)
	for _, eq := range entity.Equals {
		condition += c.Format(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
	}
	return condition
}

// stillGroup is the condition that an item known by a unique attribute still has that value, whatever its type.
func stillGroup(c *table.Expression, g plan.GroupRef) string {
	entity := g.Rule.Target
	if !g.Rule.ByUnique || entity.UniqueInKey() {
		return ""
	}
	condition := c.Format(" AND (%n = %v", entity.Unique, table.Text(g.Group))
	if n, err := decimal.Parse(g.Group); err == nil {
		condition += c.Format(" OR %n = %v", entity.Unique, attributes.ToTable(change.Number(n.String())))
	}
	if g.Group == "true" || g.Group == "false" {
		condition += c.Format(" OR %n = %v", entity.Unique, attributes.ToTable(change.Bool(g.Group == "true")))
	}
	return condition + ")"
}

// unstampedOr is the condition that the stamp is not one of this context, or not higher
// than the version of a count. A text above every count of the same rules epoch, or
// above every epoch, is no stamp.
func unstampedOr(c *table.Expression, attribute string, s plan.Stamp) string {
	n := c.Name(attribute)
	text := func(v plan.Version) ddb.AttributeValue { return table.Text(s.Context + " " + string(v) + " ~") }
	epoch := s.Version.RulesEpoch()
	return "(attribute_not_exists(" + n + ") OR NOT begins_with(" + n + ", " + c.Value(table.Text(s.Context+" ")) +
		") OR " + n + " <= " + c.Value(text(s.Version)) +
		" OR " + n + " BETWEEN " + c.Value(text(plan.VersionOf(epoch, math.MaxInt64))) + " AND " + c.Value(text(plan.VersionAt(epoch, change.Position{})+"~")) +
		" OR " + n + " > " + c.Value(text(plan.VersionAt(plan.EpochMax, change.Position{})+"~")) + ")"
}
