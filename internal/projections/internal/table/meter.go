package table

import (
	"context"
	"maps"
	"slices"
	"sync"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The least that a write takes, also one whose condition fails (DynamoDB developer guide, "DynamoDB read and write operations").
const (
	WriteUnitsMin       = 1
	TransactionUnitsMin = 2
)

// Written are what was written for one owner.
type Written struct {
	Writes int64   // actions that DynamoDB accepted, each on one item
	Units  float64 // what DynamoDB reported of them
}

// meter adds up what was written for whom.
type meter struct {
	mu      sync.Mutex
	byOwner map[string]Written // "": for no owner alone
}

// WrittenFor returns what was written so far, by the id of the rule; "" for writes that serve no rule alone.
func (ts *Tables) WrittenFor() map[string]Written {
	ts.meter.mu.Lock()
	defer ts.meter.mu.Unlock()
	return maps.Clone(ts.meter.byOwner)
}

// add notes a request that had actions accepted. owners names the rule of each of these actions, "" for none.
func (m *meter) add(owners []string, units float64) {
	owned := slices.DeleteFunc(slices.Clone(owners), func(id string) bool { return id == "" })
	if len(owned) == 0 {
		owned = make([]string, len(owners))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byOwner == nil {
		m.byOwner = map[string]Written{}
	}
	for _, id := range owned {
		before := m.byOwner[id]
		m.byOwner[id] = Written{before.Writes + 1, before.Units + units/float64(len(owned))}
	}
}

// write sends one write request, and again where that may help. The other parameters are those of writeOnce.
func write[T any](ctx context.Context, ts *Tables, doing string, atLeast int, send func() (T, error),
	used func(T) (owners []string, units float64)) (T, error) {
	return Attempt(ctx, ts.Reader, doing, func() (T, error) { return writeOnce(ts, atLeast, send, used) })
}

// writeOnce sends one write request, charges the budget, and adds up what it took. atLeast is what it takes as far as is known before;
// used tells the owners of the actions that took effect, and the units.
func writeOnce[T any](ts *Tables, atLeast int, send func() (T, error), used func(T) (owners []string, units float64)) (T, error) {
	ts.Budget.Spend(float64(atLeast), ts.Work != "")
	out, err := send()
	if err != nil {
		return out, err
	}
	owners, units := used(out)
	ts.meter.add(owners, units)
	ts.Budget.Spend(max(0, units-float64(atLeast)), ts.Work != "")
	return out, nil
}

// unitsOf sums up capacity of writes; nothing where an endpoint reports none.
func unitsOf(consumed ...ddb.ConsumedCapacity) (units float64) {
	for _, c := range consumed {
		if c.CapacityUnits != nil {
			units += *c.CapacityUnits
		}
	}
	return units
}

func unitsOfOne(consumed *ddb.ConsumedCapacity) float64 {
	if consumed == nil {
		return 0
	}
	return unitsOf(*consumed)
}
