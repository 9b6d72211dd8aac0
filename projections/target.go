package projections

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// targetWrite is what one rule wants of one item of the user's table, and what must hold of
// the item for it. Every target is written in this form, in a ledger transaction or alone.
type targetWrite struct {
	*expression
	b         *plan.Binding
	doing     string
	key       change.Key
	condition string

	set, remove []string
}

func onTarget(b *plan.Binding, doing string, key change.Key) *targetWrite {
	return &targetWrite{expression: newExpression(), b: b, doing: doing, key: key}
}

// put sets an attribute, or removes it if the value is absent.
func (t *targetWrite) put(attribute string, v change.Value) {
	if v.Kind() == change.KindAbsent {
		t.takeOff(attribute)
		return
	}
	t.set = append(t.set, t.sprintf("%n = %v", attribute, attributes.ToTable(v)))
}

// stamp sets the rule's stamp.
func (t *targetWrite) stamp(s plan.Stamp) { t.put(t.b.Stamp, change.String(s.String())) }

// takeOff removes attributes.
func (t *targetWrite) takeOff(names ...string) {
	for _, name := range names {
		t.remove = append(t.remove, t.name(name))
	}
}

// holds adds the condition that attributes still hold what was seen.
func (t *targetWrite) holds(seen change.Image, names ...string) {
	for _, name := range names {
		t.condition += t.same(name, seen.Lookup(name))
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

// allOld has a refused write return the item that it found. It costs nothing (API reference, UpdateItem).
const allOld = ddb.ReturnValuesOnConditionCheckFailureAllOld

// inTransaction is the write as a part of a transaction; one that changes nothing is a check.
func (rd *ruleReader) inTransaction(t *targetWrite) ddb.TransactWriteItem {
	update := t.update()
	if update == "" {
		return ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
			TableName: &rd.table, Key: rd.itemKey(t.key), ConditionExpression: &t.condition,
			ExpressionAttributeNames: t.names, ExpressionAttributeValues: t.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	}
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &rd.table, Key: rd.itemKey(t.key), UpdateExpression: &update, ConditionExpression: &t.condition,
		ExpressionAttributeNames: t.names, ExpressionAttributeValues: t.values, ReturnValuesOnConditionCheckFailure: allOld,
	}}
}

// outcome is how the write of a target ended.
type outcome uint8

const (
	written  outcome = iota
	raceLost         // the item is not as the conditions say
	refused          // DynamoDB never takes the write: the (item, rule) is parked
)

// writeTarget sends one write of a target. If it lost the race, standing is the item that
// stands there instead, as of that moment; nil if there is none.
func (e *Engine) writeTarget(ctx context.Context, t *targetWrite) (ended outcome, standing change.Image, err error) {
	update := t.update()
	_, err = e.tables.updateItem(ctx, t.b.ID, t.doing, &dynamodb.UpdateItemInput{
		TableName: &e.table, Key: e.itemKey(t.key), UpdateExpression: &update, ConditionExpression: &t.condition,
		ExpressionAttributeNames: t.names, ExpressionAttributeValues: t.values,
		ReturnValuesOnConditionCheckFailure: allOld,
	})
	var failed *ddb.ConditionalCheckFailedException
	switch {
	case err == nil:
		return written, nil, nil
	case refusal(err) != "":
		return refused, nil, e.parkRefused(ctx, t.b, t.key, err)
	case classify(err) != classCondition:
		return raceLost, nil, err
	case errors.As(err, &failed) && len(failed.Item) > 0:
		standing = attributes.ItemFromTable(failed.Item)
	}
	return raceLost, standing, nil
}

// stillEntity is the condition that an item exists and is still of its entity.
func (rd *ruleReader) stillEntity(c *expression, entity *rules.Entity) string {
	condition := c.sprintf("attribute_exists(%n)", rd.partitionKey)
	for _, eq := range entity.Equals {
		condition += c.sprintf(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
	}
	return condition
}

// stillGroup is the condition that an item known by a unique attribute still has that value, whatever its type.
func stillGroup(c *expression, g plan.GroupRef) string {
	entity := g.Rule.Target
	if !g.Rule.ByUnique || entity.UniqueInKey() {
		return ""
	}
	condition := c.sprintf(" AND (%n = %v", entity.Unique, textValue(g.Group))
	if n, err := decimal.Parse(g.Group); err == nil {
		condition += c.sprintf(" OR %n = %v", entity.Unique, attributes.ToTable(change.Number(n.String())))
	}
	if g.Group == "true" || g.Group == "false" {
		condition += c.sprintf(" OR %n = %v", entity.Unique, attributes.ToTable(change.Bool(g.Group == "true")))
	}
	return condition + ")"
}
