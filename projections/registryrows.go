package projections

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// checkRows refuses a registry in which another program has written what no engine
// can work with. Nothing else tells which rules were in force.
func (rd *reader) checkRows(table row, known map[string]row) error {
	it := attributes.ItemFromTable(table)
	_, live := plan.ReadCount(it["live"])
	switch {
	case !isWhole(it["epoch"], 0, plan.EpochMax):
		return rd.tornRegistry(registryTable, "epoch", it)
	case it["incarnation"].Kind() != change.KindString || it["incarnation"].Text() == "":
		return rd.tornRegistry(registryTable, "incarnation", it)
	case !live:
		return rd.tornRegistry(registryTable, "live", it)
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		it, row := attributes.ItemFromTable(known[id]), registryRule+id
		switch {
		case !slices.Contains([]string{stateSeeding, stateLive, stateRetiring, stateRetired}, it["state"].Text()):
			return rd.tornRegistry(row, "state", it)
		case !isWhole(it["epoch"], 0, plan.EpochMax):
			return rd.tornRegistry(row, "epoch", it)
		case it["writeShardsMax"].Kind() != change.KindAbsent && !isWhole(it["writeShardsMax"], 0, aggregates.WriteShardsMax):
			return rd.tornRegistry(row, "writeShardsMax", it)
		}
	}
	return nil
}

func (rd *reader) tornRegistry(row, attribute string, it change.Item) error {
	return &SetupError{
		Problem: fmt.Sprintf("row registry %s of state table %s cannot be read: its %s is %s", row, rd.stateTable, attribute, orNothing(audit.Text(it[attribute]))),
		Remedy:  "restore the row from a backup, or start over (docs/state-table.md)",
	}
}

func orNothing(text string) string {
	if text == "" {
		return "missing"
	}
	return text
}

// isWhole reports whether a value is a whole number between two others.
func isWhole(v change.Value, low, high int64) bool {
	n, ok := plan.ReadCount(v)
	return ok && v.Kind() == change.KindNumber && n >= low && n <= high
}
