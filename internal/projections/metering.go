package projections

import (
	"cmp"
	"maps"
	"slices"
)

// engineRule stands in RuleStats for writes that serve no rule alone: the
// registry, the seeding cursor, and ledger entries without an effect.
const engineRule = "(engine)"

// RuleStats returns the counts of every rule, sorted by name: of those that
// wrote nothing, too.
func (e *Engine) RuleStats() []RuleStats {
	byName := map[string]RuleStats{engineRule: {Rule: engineRule}}
	for _, r := range e.planner.Set.Rules {
		byName[r.Name] = RuleStats{Rule: r.Name}
	}
	for id, counts := range e.tables.WrittenFor() {
		name := e.ruleName(id)
		before := byName[name] // of a former rule, or of one that has its name
		byName[name] = RuleStats{Rule: name, Writes: before.Writes + counts.Writes, WriteUnits: before.WriteUnits + counts.Units}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b RuleStats) int { return cmp.Compare(a.Rule, b.Rule) })
}

func (rd *ruleReader) ruleName(id string) string { return cmp.Or(rd.planner.NameOf(id), engineRule) }
