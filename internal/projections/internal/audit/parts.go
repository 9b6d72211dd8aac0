package audit

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/tally"
)

// A row holds a part in two attributes, whose names begin so.
const (
	PartValue   = "v/"
	PartMembers = "m/"
)

// ReadParts reads the parts that an accumulator holds, the empty ones too; false if one of them is torn.
func ReadParts(row change.Item) (tally.Parts, bool) {
	ps, readable := tally.Parts{}, true
	for name, v := range row {
		if per, ok := strings.CutPrefix(name, PartValue); ok {
			value, err := decimal.Parse(v.Text())
			readable = readable && v.Kind() == change.KindNumber && err == nil
			ps[per] = tally.Share{Value: value, Members: ps[per].Members}
		} else if per, ok := strings.CutPrefix(name, PartMembers); ok {
			members, ok := plan.ReadMembers(v)
			readable = readable && ok
			ps[per] = tally.Share{Value: ps[per].Value, Members: members}
		}
	}
	return ps, readable
}
