package projections

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/projections/internal/plan"
)

// Limiter holds writes back. It must be safe for concurrent use.
type Limiter interface {
	// Wait returns when a request may be sent that takes at least this many
	// write units, or with the context's error when that ends.
	Wait(ctx context.Context, units int) error
	// Pay says that a request took this many units more than it had waited for.
	Pay(units int)
}

// The least that a write takes (DynamoDB developer guide, "DynamoDB read and
// write operations"): a unit for an item of up to 1 KB, two in a transaction.
// A refused condition takes them too, and no answer says so.
const (
	writeUnitsMin       = 1
	transactionUnitsMin = 2
)

// EngineRule stands in RuleStats for writes that serve no rule alone: the
// registry, the seeding cursor, and ledger entries without an effect.
const EngineRule = "(engine)"

// RuleStats are the counts of one rule since Open.
type RuleStats struct {
	Rule   string // its name, "unique <Entity>" for the locators of one, or EngineRule
	Writes int64  // actions that DynamoDB accepted, each on one item
	// WriteUnits are what DynamoDB reported of them. The units of a transaction
	// are shared among its rules by the number of their actions, its ledger
	// entries included; what DynamoDB refused is not in it.
	WriteUnits float64
}

// ownerCounts are what was written for one owner.
type ownerCounts struct {
	writes int64   // actions that DynamoDB accepted, each on one item
	units  float64 // what DynamoDB reported of them
}

// meter adds up what was written for whom.
type meter struct {
	mu      sync.Mutex
	byOwner map[string]ownerCounts // "": for no owner alone
}

// writtenFor returns what was written so far, by the id of the rule; "" for writes that serve no rule alone.
func (ts *tables) writtenFor() map[string]ownerCounts {
	ts.meter.mu.Lock()
	defer ts.meter.mu.Unlock()
	return maps.Clone(ts.meter.byOwner)
}

// add notes a request that was accepted. owners names the rule of each action, "" for none.
func (m *meter) add(owners []string, units float64) {
	owned := 0
	for _, id := range owners {
		if id != "" {
			owned++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if owned == 0 {
		m.addTo("", max(1, len(owners)), units)
		return
	}
	for _, id := range owners {
		if id != "" {
			m.addTo(id, 1, units/float64(owned))
		}
	}
}

func (m *meter) addTo(id string, writes int, units float64) {
	if m.byOwner == nil {
		m.byOwner = map[string]ownerCounts{}
	}
	before := m.byOwner[id]
	m.byOwner[id] = ownerCounts{before.writes + int64(writes), before.units + units}
}

// RuleStats returns the counts of every rule, sorted by name: of those that
// wrote nothing, too.
func (e *Engine) RuleStats() []RuleStats {
	byName := map[string]RuleStats{EngineRule: {Rule: EngineRule}}
	for _, r := range e.planner.Set.Rules {
		byName[r.Name] = RuleStats{Rule: r.Name}
	}
	for id, counts := range e.tables.writtenFor() {
		name := e.ruleName(id)
		before := byName[name] // of a former rule, or of one that has its name
		byName[name] = RuleStats{Rule: name, Writes: before.Writes + counts.writes, WriteUnits: before.WriteUnits + counts.units}
	}
	all := make([]RuleStats, 0, len(byName))
	for _, counts := range byName {
		all = append(all, counts)
	}
	slices.SortFunc(all, func(a, b RuleStats) int { return cmp.Compare(a.Rule, b.Rule) })
	return all
}

func (rd *ruleReader) ruleName(id string) string {
	if b := cmp.Or(rd.planner.ByID(id), rd.planner.Former(id)); b != nil {
		return b.Rule.Name
	}
	if locator, ok := plan.LocatorIn(id); ok {
		return "unique " + locator
	}
	return cmp.Or(id, EngineRule)
}

// write sends one write request, within the limit that there may be, and adds
// up what it took. atLeast is what it takes as far as is known before.
func write[T any](ctx context.Context, ts *tables, doing string, owners []string, atLeast int, send func() (T, error), used func(T) float64) (T, error) {
	out, err := attempt(ctx, ts.reader, doing, func() (T, error) {
		if ts.limiter != nil {
			if err := ts.limiter.Wait(ctx, atLeast); err != nil {
				var none T
				return none, err
			}
		}
		return send()
	})
	if err != nil {
		return out, err
	}
	units := used(out)
	ts.meter.add(owners, units)
	if more := int(math.Ceil(units)) - atLeast; ts.limiter != nil && more > 0 {
		ts.limiter.Pay(more)
	}
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

// ownersOf names the rule of each action of a ledger transaction.
func ownersOf(parts []part) []string {
	owners := make([]string, len(parts))
	for i, p := range parts {
		owners[i] = p.id
	}
	return owners
}
