// Package sweep goes over the state table. It deletes what former rules kept there, and finds rows that
// no scan of the user's table leads to: ledger entries and references of items that vanished.
package sweep

import (
	"context"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Sweep sweeps the state table under one engine.
type Sweep struct {
	*host.Host
	Kinds []rules.Kind
	// Entry decodes a ledger entry. It fails for one that newer rules have written.
	Entry func(ctx context.Context, r table.Row) (*plan.Entry, error)
	// Rederive brings the effects of items to what the items themselves ask for.
	Rederive func(ctx context.Context, items []change.Key) error
}

// Rows are rows of the state table, by what a sweep does with them.
type Rows struct {
	entries, named []table.Key            // to be read first; named: rows whose rule is an attribute
	kept           map[string][]table.Key // by the words of host.Keepers: of rules in force; a host.Sweeper reads its own first
	dead           []table.Key            // of retired rules
}

// Work sweeps rows, given by pk and sk.
func (s *Sweep) Work(ctx context.Context, keys []change.Key) error {
	found := s.Classify(keys)
	read := slices.Clone(found.entries)
	for _, sweeper := range host.FamiliesWith[host.Sweeper](s.Kinds) {
		read = append(read, found.kept[sweeper.Swept()]...)
	}
	rows, err := s.Tables.ReadState(ctx, "reading rows to sweep", append(read, found.named...))
	if err != nil {
		return err
	}
	var listed []audit.ContestedTarget
	for _, key := range found.named {
		if s.Planner.RetiredID(table.TextOf(rows[key]["rule"])) {
			found.dead = append(found.dead, key)
		} else if t, ok := audit.ReadContested(attributes.ItemFromTable(rows[key])); ok {
			listed = append(listed, t)
		}
	}
	err = s.Tables.Each(ctx, len(found.dead), func(ctx context.Context, i int) error {
		return s.Tables.DeleteState(ctx, "", "deleting what a former rule kept", found.dead[i], "", table.NewExpression())
	})
	if err != nil {
		return err
	}
	for _, sweeper := range host.FamiliesWith[host.Sweeper](s.Kinds) {
		if err := sweeper.Sweep(ctx, s.Host, rowsOf(rows, found.kept[sweeper.Swept()])); err != nil {
			return err
		}
	}
	if err := s.sweepEntries(ctx, rowsOf(rows, found.entries)); err != nil {
		return err
	}
	// If records were lost, nothing else tells that the last claimants of a target are gone.
	return s.Tables.Each(ctx, len(listed), func(ctx context.Context, i int) error { return s.UnlistIfUncontested(ctx, listed[i]) })
}

func rowsOf(rows map[table.Key]table.Row, keys []table.Key) (found []table.Row) {
	for _, k := range keys {
		if rows[k] != nil {
			found = append(found, rows[k])
		}
	}
	return found
}

// Classify decides by the keys of rows, given by pk and sk, what a sweep does with the rows.
func (s *Sweep) Classify(keys []change.Key) Rows {
	found := Rows{kept: map[string][]table.Key{}}
	for _, k := range keys {
		s.sort(&found, table.Key{Partition: k.Partition, Sort: k.Sort})
	}
	return found
}

func (s *Sweep) sort(found *Rows, key table.Key) {
	word, rest, _ := strings.Cut(key.Partition, "/")
	id, _, _ := strings.Cut(rest, "/")
	dead := false
	switch word {
	case "i":
		found.entries = append(found.entries, key)
	case state.ParkedPartition, state.TasksPartition:
		found.named = append(found.named, key)
	case state.MissingPartition:
		dead = s.Planner.RetiredID(key.Sort)
	case "locator":
		dead = s.Planner.RetiredLocator(id)
	case state.HealsRows:
		dead = s.Planner.RetiredID(id)
	default:
		dead = s.Planner.RetiredID(id) && s.isKept(word)
		if s.Planner.ByID(id) != nil {
			found.kept[word] = append(found.kept[word], key)
		}
	}
	if dead {
		found.dead = append(found.dead, key)
	}
}

// isKept reports whether a kind of rule keeps rows that begin with a word.
func (s *Sweep) isKept(word string) bool {
	return slices.ContainsFunc(host.FamiliesWith[host.Keeper](s.Kinds), func(k host.Keeper) bool { return slices.Contains(k.Rows(), word) })
}

// sweepEntries rederives the items of ledger entries that hold a due mark, or other
// effects than their items ask for: the items vanished, or came back after the scan of
// the table was past them, which their records do not say; or the effects are
// of former rules.
func (s *Sweep) sweepEntries(ctx context.Context, rows []table.Row) error {
	var stale, unsure []change.Key
	entries := map[change.Key]*plan.Entry{}
	for _, r := range rows {
		key, ok := state.EntryItem(r)
		if !ok {
			continue // cut, and another program took the whole key away; the scan of the table comes by the item
		}
		ent, err := s.Entry(ctx, r)
		switch {
		case err != nil:
			return err
		case len(ent.Due) > 0:
			stale = append(stale, key)
		case len(ent.Effects) > 0:
			unsure, entries[key] = append(unsure, key), ent
		}
	}
	items, err := s.Tables.ReadItems(ctx, "reading the items of ledger entries", unsure)
	if err != nil {
		return err
	}
	for _, k := range unsure {
		if s.Planner.MoveFrom(k, entries[k], table.Image(items[k]), plan.Itself, plan.Late{}).HoldsStaleEffects() {
			stale = append(stale, k)
		}
	}
	return s.Rederive(ctx, stale)
}
