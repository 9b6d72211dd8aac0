package dynamosim

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/expression"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Usage counts requests and capacity units since the Sim was made, by the rules
// of the developer guide ("Capacity unit consumption"). Writes to indexes are not counted.
type Usage struct {
	Requests   map[string]int // by operation, failed ones too, save those that Options.Before failed
	WriteUnits float64
	ReadUnits  float64
	Tables     map[string]TableUsage
}

// TableUsage is one table's share in capacity units.
type TableUsage struct{ WriteUnits, ReadUnits float64 }

func newUsage() Usage { return Usage{Requests: map[string]int{}, Tables: map[string]TableUsage{}} }

// Usage returns what has been used so far.
func (s *Sim) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.usage
	u.Requests = maps.Clone(u.Requests)
	u.Tables = maps.Clone(u.Tables)
	return u
}

// Sub returns what was used between earlier and u. Operations and tables that were not used are left out.
func (u Usage) Sub(earlier Usage) Usage {
	d := newUsage()
	d.WriteUnits = u.WriteUnits - earlier.WriteUnits
	d.ReadUnits = u.ReadUnits - earlier.ReadUnits
	for op, n := range u.Requests {
		if n -= earlier.Requests[op]; n != 0 {
			d.Requests[op] = n
		}
	}
	for name, t := range u.Tables {
		t.WriteUnits -= earlier.Tables[name].WriteUnits
		t.ReadUnits -= earlier.Tables[name].ReadUnits
		if t != (TableUsage{}) {
			d.Tables[name] = t
		}
	}
	return d
}

var noUpdate expression.Update

// units rounds bytes up to blocks, at least one.
func units(bytes, block int) float64 { return float64(max(1, (bytes+block-1)/block)) }

// writeUnits is one per KB, rounded up, of the larger of the item before and
// after; a failed condition costs by the item before.
func writeUnits(o outcome) float64 {
	size := 0
	if o.old != nil {
		size = values.Size(o.old)
	}
	if o.after != nil {
		size = max(size, values.Size(o.after))
	}
	return units(size, 1<<10)
}

// readUnits is one per 4 KB, rounded up, half of it for an eventually consistent read.
func readUnits(bytes int, consistent *bool) float64 {
	u := units(bytes, 4<<10)
	if !aws.ToBool(consistent) {
		u /= 2
	}
	return u
}

func (s *Sim) chargeWrite(t *table, units float64) *types.ConsumedCapacity {
	u := s.usage.Tables[t.name]
	u.WriteUnits += units
	s.usage.Tables[t.name] = u
	s.usage.WriteUnits += units
	return &types.ConsumedCapacity{TableName: aws.String(t.name), CapacityUnits: aws.Float64(units)}
}

func (s *Sim) chargeRead(t *table, units float64) *types.ConsumedCapacity {
	u := s.usage.Tables[t.name]
	u.ReadUnits += units
	s.usage.Tables[t.name] = u
	s.usage.ReadUnits += units
	return &types.ConsumedCapacity{TableName: aws.String(t.name), CapacityUnits: aws.Float64(units)}
}

// shown is the ConsumedCapacity of a reply: nil unless asked for.
func shown(want types.ReturnConsumedCapacity, consumed *types.ConsumedCapacity) *types.ConsumedCapacity {
	switch want {
	case types.ReturnConsumedCapacityTotal:
		return consumed
	case types.ReturnConsumedCapacityIndexes:
		consumed.Table = &types.Capacity{CapacityUnits: consumed.CapacityUnits}
		return consumed
	}
	return nil
}
