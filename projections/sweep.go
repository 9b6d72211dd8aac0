package projections

import (
	"context"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/host"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// A sweep goes over the state table. It deletes what former rules kept there, and
// finds what no scan of the user's table comes by: ledger entries and references of
// items that vanished.

// swept are rows of the state table, by what a sweep does with them.
type swept struct {
	entries, named []table.Key            // to be read first; named: rows whose rule is an attribute
	kept           map[string][]table.Key // by the words of host.Sweepers: of rules in force, to be read first
	dead           []table.Key            // of retired rules
}

// sweep looks at rows of the state table, given by pk and sk.
func (e *Engine) sweep(ctx context.Context, keys []change.Key) error {
	s := swept{kept: map[string][]table.Key{}}
	for _, k := range keys {
		e.sort(&s, table.Key{Partition: k.Partition, Sort: k.Sort})
	}
	read := slices.Clone(s.entries)
	for _, sweeper := range having[host.Sweeper]() {
		read = append(read, s.kept[sweeper.Swept()]...)
	}
	rows, err := e.tables.ReadState(ctx, "reading rows to sweep", append(read, s.named...))
	if err != nil {
		return err
	}
	var listed []audit.ContestedTarget
	for _, key := range s.named {
		if e.retiredID(table.TextOf(rows[key]["rule"])) {
			s.dead = append(s.dead, key)
		} else if t, ok := audit.ReadContested(attributes.ItemFromTable(rows[key])); ok {
			listed = append(listed, t)
		}
	}
	err = table.Each(ctx, len(s.dead), func(ctx context.Context, i int) error {
		return e.tables.DeleteState(ctx, "", "deleting what a former rule kept", s.dead[i], "", table.NewExpression())
	})
	if err != nil {
		return err
	}
	for _, sweeper := range having[host.Sweeper]() {
		if err := sweeper.Sweep(ctx, e.host, rowsOf(rows, s.kept[sweeper.Swept()])); err != nil {
			return err
		}
	}
	if err := e.sweepEntries(ctx, rowsOf(rows, s.entries)); err != nil {
		return err
	}
	// Records that are lost say no more that the last claimants of a target have gone.
	return table.Each(ctx, len(listed), func(ctx context.Context, i int) error { return e.relist(ctx, listed[i]) })
}

func rowsOf(rows map[table.Key]table.Row, keys []table.Key) (found []table.Row) {
	for _, k := range keys {
		if rows[k] != nil {
			found = append(found, rows[k])
		}
	}
	return found
}

// sort tells from a row's key what a sweep does with it.
func (e *Engine) sort(s *swept, key table.Key) {
	kind, rest, _ := strings.Cut(key.Partition, "/")
	id, _, _ := strings.Cut(rest, "/")
	switch kind {
	case "item":
		s.entries = append(s.entries, key)
	case state.ParkedPartition, state.TasksPartition:
		s.named = append(s.named, key)
	case state.MissingPartition:
		if e.retiredID(key.Sort) {
			s.dead = append(s.dead, key)
		}
	case "locator":
		if e.retiredLocator(id) {
			s.dead = append(s.dead, key)
		}
	case state.HealsRows:
		if e.retiredID(id) {
			s.dead = append(s.dead, key)
		}
	default:
		e.sortKept(s, kind, id, key)
	}
}

// sortKept does so for a row that a kind of rule keeps.
func (e *Engine) sortKept(s *swept, word, id string, key table.Key) {
	for _, keeper := range having[host.Keeper]() {
		if !slices.Contains(keeper.Rows(), word) {
			continue
		}
		sweeper, sweeps := keeper.(host.Sweeper)
		switch {
		case e.retiredID(id):
			s.dead = append(s.dead, key)
		case sweeps && sweeper.Swept() == word && e.planner.ByID(id) != nil:
			s.kept[word] = append(s.kept[word], key)
		}
	}
}

// retiredID reports whether what belongs to a rule, or to a locator with its mark, belongs to a retired one.
// What is not known at all may be of newer rules.
func (e *Engine) retiredID(id string) bool {
	if locator, ok := plan.LocatorIn(id); ok {
		return e.retiredLocator(locator)
	}
	b := e.planner.Former(id)
	return b != nil && b.Retired.Load()
}

// retiredLocator reports whether only retired rules found items by a locator.
func (e *Engine) retiredLocator(locator string) bool {
	retired := false
	for _, b := range e.planner.Formers() {
		if b.Locator == locator {
			retired = true
			if !b.Retired.Load() {
				return false
			}
		}
	}
	return retired && !e.planner.Locates(locator)
}

// sweepEntries rederives the items of ledger entries that hold a due mark, or other
// effects than their items ask for: the items vanished, or came back after the scan of
// the table was past them, with nothing of which their records tell; or the effects are
// of former rules.
func (e *Engine) sweepEntries(ctx context.Context, rows []table.Row) error {
	var stale, look []change.Key
	entries := map[change.Key]*plan.Entry{}
	for _, r := range rows {
		key, ok := state.EntryItem(r)
		if !ok {
			continue // cut by an earlier version; the scan of the table comes by the item
		}
		ent, err := e.ledger.Entry(ctx, r)
		switch {
		case err != nil:
			return err
		case len(ent.Due) > 0:
			stale = append(stale, key)
		case len(ent.Effects) > 0:
			look, entries[key] = append(look, key), ent
		}
	}
	items, err := e.tables.ReadItems(ctx, "reading the items of ledger entries", look)
	if err != nil {
		return err
	}
	for _, k := range look {
		if e.planner.MoveFrom(k, entries[k], table.Image(items[k]), plan.Itself, plan.Late{}).Outlived() {
			stale = append(stale, k)
		}
	}
	return e.rederive(ctx, stale, plan.Itself, nil, nil)
}
