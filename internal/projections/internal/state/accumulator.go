package state

import (
	"errors"
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/tally"
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

// AccumulatorRow is an accumulator as a whole, in the place of one that was read.
func AccumulatorRow(key table.Key, read table.Row, a tally.Amount) table.Row {
	r := key.Attributes()
	r["value"], r["members"], r["ops"] = Number(a.Value), table.Number(a.Members), table.Number(a.Operations)
	for _, per := range a.Parts.Values() {
		r[audit.PartValue+per], r[audit.PartMembers+per] = Number(a.Parts[per].Value), table.Number(a.Parts[per].Members)
	}
	for _, name := range []string{ExpiredAt, Listed} {
		if v, ok := read[name]; ok {
			r[name] = v
		}
	}
	return r
}

// Number is a decimal as DynamoDB holds it.
func Number(d decimal.Decimal) ddb.AttributeValue {
	return attributes.ToTable(change.Number(d.String()))
}

// Listed is the attribute of one of an aggregate's accumulators that says that the aggregate is listed as one with too many values.
const Listed = "listed"

// ReadAccumulator reads an accumulator, that of one write suffix, without its parts. Its members are below 0 if sources gave up here what
// they added under other suffixes. The error says that its value or its members are no number.
func ReadAccumulator(r table.Row) (a tally.Amount, err error) {
	a.Operations = CountOf(r["ops"])
	a.Value, err = decimal.Parse(table.TextOf(r["value"]))
	members, readable := plan.ReadMembers(attributes.FromTable(r["members"]))
	if a.Members = members; !readable {
		err = errors.New("the members are no number")
	}
	return a, err
}
