package projections

import (
	"math"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/table"
)

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
