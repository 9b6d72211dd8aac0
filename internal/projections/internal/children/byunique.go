package children

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// A parent that is known by a unique value alone may be another item tomorrow, of which the child's records tell nothing. The locator
// says which item has the value: its ledger transactions change it. So such a parent is no item here, but the value: in the place of
// its key stands one whose partition is the value. Whenever the locator of a value changes, or the parent's attributes do, the value's
// children are filled anew, after its count of changes was raised (docs/adr/0031-copies-by-unique-are-filled.md).

// NameOf is what people and sightings call a parent.
func NameOf(b *plan.Binding, parent change.Key) string {
	if b.Rule.ByUnique {
		return parent.Partition
	}
	return parent.String()
}

// AskValue asks for filling the children of what an image is known by; deleted is the item, if it is gone.
func AskValue(pl *plan.Changes, b *plan.Binding, m *rules.Match, img change.Image, index int, deleted ...change.Key) {
	if img == nil {
		return
	}
	if value, ok, err := b.Rule.Source.UniqueValue(m, img); ok && err == nil {
		g := plan.GroupRef{Binding: b, Group: value}
		pl.Rollups.OrPut(g, plan.Rollup{First: index})
		asked := Asked(pl).Values.OrPut(g, Value{})
		asked.Deleted = append(asked.Deleted, deleted...)
	}
}

// changedValues are those whose children a plan fills anew, because their parent changed or is another item now; sorted.
func changedValues(pl *plan.Changes, b *plan.Binding) (values []string) {
	for g := range pl.Rollups.All() {
		if g.Binding == b {
			values = append(values, g.Group)
		}
	}
	if b.Rule.ByUnique {
		located := effects.Key{ID: effects.LocatorID(b.Locator)}
		for _, mv := range pl.Moves.All() {
			if former, now := mv.Old[located].Group, mv.New[located].Group; former != now {
				values = append(values, former, now)
			}
		}
	}
	slices.Sort(values)
	return slices.DeleteFunc(slices.Compact(values), func(value string) bool { return value == "" })
}

// RollUp implements host.Grouper: it fills the children of values whose locator changed, or that changed themselves.
func (Following[K]) RollUp(ctx context.Context, r *host.Run, groups []plan.GroupRef, pl *plan.Changes) []error {
	w, asked := Run{r}, &Asked(pl).Values
	return w.Tables.Every(ctx, len(groups), func(ctx context.Context, i int) error {
		if g := groups[i]; asked.Of(g) != nil || len(pl.Rollups.Of(g).Relocated) > 0 {
			return w.fillValue(ctx, g)
		}
		return nil
	})
}

// fillValue fills the children of a value anew. The count is raised before their references are looked up, so that a child that read an
// earlier parent is written once more, even if it holds the right values by then: a stalled worker may be about to write others.
func (w Run) fillValue(ctx context.Context, g plan.GroupRef) error {
	id := plan.ItemRule{Binding: g.Binding, Key: change.Key{Partition: g.Group}}
	located, counted := state.LocatorKey(g.Locator, g.Group), state.ParentKey(id.Binding, id.Key)
	rows, err := w.Tables.ReadState(ctx, "reading a locator", []table.Key{located, counted})
	if err != nil {
		return err
	}
	contested := audit.ContestedTarget{ID: effects.LocatorID(g.Locator), Value: g.Group}
	if err := w.UpdateContentionList(ctx, contested, state.ReadSet(rows[located], true)); err != nil {
		return err
	}
	if err := w.raiseCount(ctx, id, rows[counted]); err != nil {
		return err
	}
	return w.refillChildren(ctx, id, true)
}

// raiseCount raises a value's count of changes. If there is none, because the row expired or another program wrote over it, the count goes
// on from the time in seconds: children may carry the former one, and no count is raised once a second for long.
func (w Run) raiseCount(ctx context.Context, id plan.ItemRule, row table.Row) error {
	const name = "changes"
	c, condition := table.NewExpression(), ""
	now := table.Number(w.Now().Unix())
	update := c.Format("SET %n = if_not_exists(%n, %v) + %v REMOVE %n", name, name, now, table.Number(1), "ttl")
	if audit.TornPosition(attributes.ItemFromTable(row)) {
		c = table.NewExpression()
		update, condition = c.Format("SET %n = %v REMOVE %n", name, now, "ttl"), table.Whole(c.SameAs(row, name))
	}
	_, err := w.Tables.UpdateState(ctx, id.ID, "raising the count of "+NameOf(id.Binding, id.Key), state.ParentKey(id.Binding, id.Key), update,
		condition, c)
	return err
}

// ReadParents reads parents as they are now. One that is not there, or not of the parents' entity, is missing.
func (w Run) ReadParents(ctx context.Context, parents []plan.ItemRule) (map[plan.ItemRule]change.Item, error) {
	var locators []table.Key
	for _, p := range parents {
		if p.Rule.ByUnique {
			locators = append(locators, state.LocatorKey(p.Locator, p.Key.Partition))
		}
	}
	rows, err := w.Tables.ReadState(ctx, "reading locators", locators)
	if err != nil {
		return nil, err
	}
	where, keys := map[plan.ItemRule]change.Key{}, []change.Key(nil)
	for _, p := range parents {
		key, known := p.Key, true
		if p.Rule.ByUnique {
			key, known = ownerOf(rows[state.LocatorKey(p.Locator, p.Key.Partition)])
		}
		if known && w.Tables.CanExist(key) {
			where[p], keys = key, append(keys, key)
		}
	}
	items, err := w.Tables.ReadItems(ctx, "reading parents", keys)
	found := map[plan.ItemRule]change.Item{}
	for p, key := range where {
		if IsParent(w.Planner, p, key, items[key]) {
			found[p] = items[key]
		}
	}
	return found, err
}

// ownerOf is the item that has a unique value, by the value's locator: the one with the smallest key.
func ownerOf(locator table.Row) (change.Key, bool) {
	if items := state.ReadSet(locator, true).Sources; len(items) > 0 {
		return change.ParseKey(items[0]), true
	}
	return change.Key{}, false
}

// IsParent reports whether an item is a parent: of the parents' entity, and still known by the value if the parent is one.
func IsParent(p *plan.Planner, id plan.ItemRule, key change.Key, item change.Item) bool {
	m, ok := as(id.Rule.Source, p, key, table.Image(item))
	if !ok || !id.Rule.ByUnique {
		return ok
	}
	value, ok, err := id.Rule.Source.UniqueValue(&m, item)
	return ok && err == nil && value == id.Key.Partition
}
