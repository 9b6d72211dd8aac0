package state

import (
	"errors"
	"strconv"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// AccumulatorRows begins the partition keys of accumulators.
const AccumulatorRows = "sum"

// ExpiredAt is the attribute of an accumulator that says after how many operations, on all accumulators of a derived item,
// DynamoDB's time to live deleted this item. After one more operation the item comes back.
const ExpiredAt = "expired"

// AccumulatorKey is the key of an accumulator of an aggregate: that of one write suffix.
func AccumulatorKey(g plan.GroupRef, suffix int) table.Key {
	return table.NewKey(AccumulatorRows+"/"+g.ID+"/"+escape(g.Group)+"/"+strconv.Itoa(suffix), "a")
}

// Accumulator is a part of one aggregate: that of one write suffix.
type Accumulator struct {
	Value      decimal.Decimal
	Members    int64 // sources that contribute; below 0 if they gave up here what they added under other suffixes
	Operations int64
}

// ReadAccumulator reads an accumulator; the error says that its value or its members are no number.
func ReadAccumulator(r table.Row) (a Accumulator, err error) {
	a.Operations = CountOf(r["ops"])
	members, readable := plan.ReadMembers(attributes.FromTable(r["members"]))
	if a.Members = members; !readable {
		return a, errors.New("the members are no number")
	}
	a.Value, err = decimal.Parse(table.TextOf(r["value"]))
	return a, err
}
