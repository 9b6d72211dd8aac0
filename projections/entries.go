package projections

import (
	"fmt"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// readEntry decodes a ledger entry; nil for an item that is not there.
func (rd *ruleReader) readEntry(r table.Row) (*plan.Entry, error) {
	ent, err := rd.planner.ReadEntry(attributes.ItemFromTable(r))
	if err != nil {
		return nil, tornError(r, err.Error())
	}
	return ent, nil
}

// tornError says that another program has written in a row. verify says what is to be made of it.
func tornError(r table.Row, what string) error {
	return fmt.Errorf("row %s of the state table cannot be read, it has %s: run `dynamill verify` with repair, which mends it", table.TextOf(r[table.PK]), what)
}

// effectsValue is effects as a ledger entry holds them.
func effectsValue(fs plan.Effects) ddb.AttributeValue {
	m := make(map[string]ddb.AttributeValue, len(fs))
	for id, f := range fs {
		m[id] = table.Text(f.String())
	}
	return &ddb.AttributeValueMemberM{Value: m}
}

// entryWrite is the ledger half of the move's transaction: the entry, compared and swapped.
func (e *Engine) entryWrite(mv *plan.Move) ddb.TransactWriteItem {
	key := entryKey(mv.Key)
	item := key.Attributes()
	at, rederived := mv.At(e.planner.Epoch)
	effects := mv.Next()
	item["at"] = table.Text(string(at))
	item["effects"] = effectsValue(effects)
	if key.Partition != entryPrefix+mv.Key.String() {
		item["item"] = table.Text(mv.Key.String()) // the key was cut: a sweep needs it whole
	}
	if rederived > 0 {
		item["rederived"] = table.Number(rederived)
	}
	if len(effects) == 0 {
		item["ttl"] = table.Number(e.now().Add(tombstoneTTL).Unix())
	}
	if len(mv.Due) > 0 {
		due := make([]string, len(mv.Due))
		for i, g := range mv.Due {
			due[i] = g.String()
		}
		item["due"] = &ddb.AttributeValueMemberSS{Value: due}
	}
	put := &ddb.Put{
		TableName: &e.tables.StateTable, Item: item,
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch c := table.NewExpression(); {
	case mv.Exact:
		put.ConditionExpression = new(entryIs(c, mv.Entry))
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = c.Names, c.Values
	default:
		condition := c.Format("%n = %v", "effects", effectsValue(mv.Old)) +
			c.Format(" AND %n >= %v AND %n < %v", "at", table.Text(string(mv.To.Epoch())), "at", table.Text(string(mv.To))) +
			c.Format(" AND attribute_not_exists(%n)", "due")
		if len(mv.Old) == 0 {
			condition = "attribute_not_exists(pk) OR (" + condition + ")"
		}
		put.ConditionExpression = &condition
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = c.Names, c.Values
	}
	return ddb.TransactWriteItem{Put: put}
}

// entryIs is the condition that a ledger entry is exactly e.
func entryIs(c *table.Expression, e *plan.Entry) string {
	if e == nil {
		return "attribute_not_exists(pk)"
	}
	if e.Rederived == 0 {
		return c.Format("%n = %v AND attribute_not_exists(%n)", "at", table.Text(string(e.At)), "rederived")
	}
	return c.Format("%n = %v AND %n = %v", "at", table.Text(string(e.At)), "rederived", table.Number(e.Rederived))
}
