package target

import (
	"math"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
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

// StillGroup is the condition that an item known by a unique attribute still has that value, whatever its type.
func StillGroup(c *table.Expression, g plan.GroupRef) string {
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

// UnstampedOr is the condition that the stamp is not one of this context, or not higher
// than the version of a count. A text above every count of the same rules epoch, or
// above every epoch, is no stamp.
func UnstampedOr(c *table.Expression, attribute string, s plan.Stamp) string {
	n := c.Name(attribute)
	text := func(v plan.Version) ddb.AttributeValue { return table.Text(s.Context + " " + string(v) + " ~") }
	epoch := s.Version.RulesEpoch()
	return "(attribute_not_exists(" + n + ") OR NOT begins_with(" + n + ", " + c.Value(table.Text(s.Context+" ")) +
		") OR " + n + " <= " + c.Value(text(s.Version)) +
		" OR " + n + " BETWEEN " + c.Value(text(plan.VersionOf(epoch, math.MaxInt64))) + " AND " +
		c.Value(text(plan.VersionAt(epoch, change.Position{})+"~")) +
		" OR " + n + " > " + c.Value(text(plan.VersionAt(plan.EpochMax, change.Position{})+"~")) + ")"
}
