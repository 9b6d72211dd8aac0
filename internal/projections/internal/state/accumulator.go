package state

import (
	"strconv"

	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// AccumulatorRows begins the partition keys of accumulators.
const AccumulatorRows = "sum"

// AccumulatorKey is the key of an accumulator of an aggregate: that of one write suffix.
func AccumulatorKey(g plan.GroupRef, suffix int) table.Key {
	return table.NewKey(AccumulatorRows+"/"+g.ID+"/"+escape(g.Group)+"/"+strconv.Itoa(suffix), "accumulator")
}

// ReadAccumulator reads an accumulator; the error says that its value is no decimal.
func ReadAccumulator(r table.Row) (value decimal.Decimal, operations int64, err error) {
	value, err = decimal.Parse(table.TextOf(r["value"]))
	return value, CountOf(r["operations"]), err
}
