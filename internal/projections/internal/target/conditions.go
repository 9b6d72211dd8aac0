package target

import (
	"math"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// StillEntity is the condition that an item exists and is still of its entity.
func StillEntity(rd *table.Reader, c *table.Expression, entity *rules.Entity) string {
	condition := c.Format("attribute_exists(%n)", rd.PartitionKey)
	for _, eq := range entity.Equals {
		condition += c.Format(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
	}
	return condition
}

// StillReads checks that an item is there or not, and holds what a rule reads, which decides its entity, as when it was seen.
// A key under which the table can hold no item needs no check.
func StillReads(rd *table.Reader, id plan.ItemRule, reads []string, seen change.Item) []ddb.TransactWriteItem {
	if !rd.CanExist(id.Key) {
		return nil
	}
	t := On(id.Binding, "", id.Key)
	t.Condition = t.Format("attribute_not_exists(%n)", rd.PartitionKey)
	if seen != nil {
		t.Condition = t.Format("attribute_exists(%n)", rd.PartitionKey)
		t.Holds(seen, reads...)
	}
	return []ddb.TransactWriteItem{t.InTransaction(rd)}
}

// StillGroup is the condition that an item known by a unique attribute still has that value, whatever its type.
func StillGroup(c *table.Expression, g plan.GroupRef) string {
	entity := g.Rule.Target
	if !g.Rule.ByUnique || entity.UniqueInKey() {
		return ""
	}
	return HoldsText(c, entity.Unique, g.Group)
}

// HoldsText is the further condition that an attribute holds a value of this text, whatever its type.
func HoldsText(c *table.Expression, attribute, text string) string {
	condition := c.Format(" AND (%n = %v", attribute, table.Text(text))
	if n, err := decimal.Parse(text); err == nil && n.String() == text { // the number 1 has the text 1, not 01
		condition += c.Format(" OR %n = %v", attribute, attributes.ToTable(change.Number(n.String())))
	}
	if text == "true" || text == "false" {
		condition += c.Format(" OR %n = %v", attribute, attributes.ToTable(change.Bool(text == "true")))
	}
	return condition + ")"
}

// UnstampedOrBelow is the further condition that the stamp is not one of a context, or sorts below a text. Both are placeholders.
func UnstampedOrBelow(c *table.Expression, attribute, context, below string) string {
	return c.Format(" AND (attribute_not_exists(%n) OR NOT begins_with(%n, %s) OR %n < %s)", attribute, attribute, context, attribute, below)
}

// IsLater reports whether a stamp that was read makes UnstampedOrNotLater false: no worker writes over it.
func IsLater(stamped change.Value, s stamp.Stamp) bool {
	behind := func(v stamp.Version) string { return stamp.Behind(s.Context, v) }
	text, epoch := stamped.Text(), s.Version.RulesEpoch()
	return stamped.Kind() == change.KindString && strings.HasPrefix(text, s.Context) && text > behind(s.Version) &&
		(text < behind(stamp.VersionOf(epoch, math.MaxInt64)) || text > behind(stamp.BehindEpoch(epoch))) &&
		text <= behind(stamp.BehindEpoch(stamp.EpochMax))
}

// UnstampedOrNotLater is the condition that the stamp is not one of this context, or not higher
// than the version of a count. A text above every count of the same rules epoch, or
// above every epoch, is no stamp.
func UnstampedOrNotLater(c *table.Expression, attribute string, s stamp.Stamp) string {
	behind := func(v stamp.Version) ddb.AttributeValue { return table.Text(stamp.Behind(s.Context, v)) }
	epoch := s.Version.RulesEpoch()
	return c.Format("(attribute_not_exists(%n) OR NOT begins_with(%n, %v) OR %n <= %v OR %n BETWEEN %v AND %v OR %n > %v)",
		attribute, attribute, table.Text(s.Context), attribute, behind(s.Version),
		attribute, behind(stamp.VersionOf(epoch, math.MaxInt64)), behind(stamp.BehindEpoch(epoch)),
		attribute, behind(stamp.BehindEpoch(stamp.EpochMax)))
}
