package projections

import (
	"fmt"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// readEntry decodes a ledger entry; nil for an item that is not there.
func (rd *ruleReader) readEntry(r row) (*plan.Entry, error) {
	ent, err := rd.planner.ReadEntry(attributes.ItemFromTable(r))
	if err != nil {
		return nil, tornError(r, err.Error())
	}
	return ent, nil
}

// tornError says that another program has written in a row. verify says what is to be made of it.
func tornError(r row, what string) error {
	return fmt.Errorf("row %s of the state table cannot be read, it has %s: run `dynamill verify` with repair, which mends it", textOf(r[statePartition]), what)
}

// effectsValue is effects as a ledger entry holds them.
func effectsValue(fs plan.Effects) ddb.AttributeValue {
	m := make(map[string]ddb.AttributeValue, len(fs))
	for id, f := range fs {
		m[id] = textValue(f.String())
	}
	return &ddb.AttributeValueMemberM{Value: m}
}

// entryWrite is the ledger half of the move's transaction: the entry, compared and swapped.
func (e *Engine) entryWrite(mv *plan.Move) ddb.TransactWriteItem {
	key := entryKey(mv.Key)
	item := key.attributes()
	at, rederived := mv.At(e.planner.Epoch)
	effects := mv.Next()
	item["at"] = textValue(string(at))
	item["effects"] = effectsValue(effects)
	if key.partition != entryPrefix+mv.Key.String() {
		item["item"] = textValue(mv.Key.String()) // the key was cut: a sweep needs it whole
	}
	if rederived > 0 {
		item["rederived"] = numberValue(rederived)
	}
	if len(effects) == 0 {
		item["ttl"] = numberValue(e.now().Add(tombstoneTTL).Unix())
	}
	if len(mv.Due) > 0 {
		due := make([]string, len(mv.Due))
		for i, g := range mv.Due {
			due[i] = g.String()
		}
		item["due"] = &ddb.AttributeValueMemberSS{Value: due}
	}
	put := &ddb.Put{
		TableName: &e.stateTable, Item: item,
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch c := newExpression(); {
	case mv.Exact:
		put.ConditionExpression = new(entryIs(c, mv.Entry))
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = c.names, c.values
	default:
		condition := c.sprintf("%n = %v", "effects", effectsValue(mv.Old)) +
			c.sprintf(" AND %n >= %v AND %n < %v", "at", textValue(string(mv.To.Epoch())), "at", textValue(string(mv.To))) +
			c.sprintf(" AND attribute_not_exists(%n)", "due")
		if len(mv.Old) == 0 {
			condition = "attribute_not_exists(pk) OR (" + condition + ")"
		}
		put.ConditionExpression = &condition
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = c.names, c.values
	}
	return ddb.TransactWriteItem{Put: put}
}

// entryIs is the condition that a ledger entry is exactly e.
func entryIs(c *expression, e *plan.Entry) string {
	if e == nil {
		return "attribute_not_exists(pk)"
	}
	if e.Rederived == 0 {
		return c.sprintf("%n = %v AND attribute_not_exists(%n)", "at", textValue(string(e.At)), "rederived")
	}
	return c.sprintf("%n = %v AND %n = %v", "at", textValue(string(e.At)), "rederived", numberValue(e.Rederived))
}
