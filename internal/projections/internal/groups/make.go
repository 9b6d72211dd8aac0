package groups

import (
	"cmp"
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// Item is one derived item that is to be brought up to date.
type Item struct {
	Key    change.Key
	Entity *rules.Entity
	Live   []*plan.Binding // those of its rules whose totals are shown
	Waits  bool            // for a rule that is not live yet: nothing is deleted

	asks        []int   // the groups that ask for it
	expired     bool    // a record says that DynamoDB's time to live deleted it
	showed      []int64 // by index of Live: the count of operations that the item showed when it expired or was deleted; 0: it did neither
	deleted     bool    // a record says that it was deleted in another way
	corrections []int   // indices in Live of rules whose values another program overwrote
	forced      bool    // something may have changed: it is written without a look
	known       bool    // seen is the item as it was at a moment before the rows were read
	seen        change.Image
}

// parts are the groups that the item displays.
func (it *Item) parts() []plan.GroupRef {
	groups := make([]plan.GroupRef, len(it.Live))
	for i, b := range it.Live {
		groups[i] = plan.GroupRef{Binding: b, Group: it.Key.String()}
	}
	return groups
}

// seenWhole reports whether the item, as it was seen, is one that rules made, and of the entity.
func (it *Item) seenWhole() bool { return IsWhole(it.Entity, it.Key, it.seen) }

// Rows are the accumulators that decide on the item.
func (it *Item) Rows() (keys []table.Key) {
	for _, g := range it.parts() {
		keys = Accumulators(keys, g)
	}
	return keys
}

// makeItems brings the derived items of groups up to date. For each group it sets the error, or host.ErrNotLive.
func (r run) makeItems(ctx context.Context, groups []plan.GroupRef, pl *plan.Changes, errs []error) {
	items := r.derivedItems(groups, pl, errs)
	var rows []table.Key
	var keys []change.Key
	for _, it := range items {
		rows = append(rows, it.Rows()...)
		if !it.forced && !it.known {
			keys = append(keys, it.Key)
		}
	}
	found, values, readErr := r.Tables.ReadBoth(ctx, "reading accumulators of derived items", keys, rows)
	outcomes := r.Targets.Every(ctx, len(items), func(ctx context.Context, to target.Sender, n int) error {
		it := items[n]
		if !it.forced && !it.known {
			it.known, it.seen = true, table.Image(found[it.Key])
		}
		if readErr != nil {
			return readErr
		}
		return r.deriveItem(ctx, to, it, values)
	})
	for n, err := range outcomes {
		for _, i := range items[n].asks {
			errs[i] = cmp.Or(errs[i], err)
		}
		if err == nil {
			r.MarkUpToDate(items[n].Key)
		}
	}
}

// derivedItems are the items that groups ask for, each once.
func (r run) derivedItems(groups []plan.GroupRef, pl *plan.Changes, errs []error) []*Item {
	var items []*Item
	byKey := map[change.Key]*Item{}
	for i, g := range groups {
		if !g.Rule.Derives() {
			continue
		}
		if !g.Live.Load() {
			errs[i] = host.ErrNotLive
			continue
		}
		key := change.ParseKey(g.Group)
		if !r.Tables.CanExist(key) || r.UpToDate[key] {
			continue
		}
		it := byKey[key]
		if it == nil {
			it = r.derivedItem(g, key, pl)
			byKey[key] = it
			items = append(items, it)
		}
		it.asks = append(it.asks, i)
	}
	return items
}

// derivedItem is the item of a group, with all that the plan asks of it under any of its rules, of whatever family.
func (r run) derivedItem(g plan.GroupRef, key change.Key, pl *plan.Changes) *Item {
	it := &Item{Key: key, Entity: g.Rule.Target}
	for _, rule := range it.Entity.Makers {
		b := r.Planner.Of(rule)
		if !b.Live.Load() {
			it.Waits = true
			continue
		}
		it.Live, it.showed = append(it.Live, b), append(it.showed, 0)
		ru := pl.Rollups.Of(plan.GroupRef{Binding: b, Group: g.Group})
		if ru == nil {
			continue
		}
		it.showed[len(it.showed)-1] = ru.Showed
		it.expired, it.deleted = it.expired || ru.Expired, it.deleted || ru.Deleted
		it.forced = it.forced || ru.Asked
		if img, seen := ru.Seen[key]; seen {
			it.known, it.seen = true, img
		}
		if ru.Corrections[key] {
			it.corrections = append(it.corrections, len(it.Live)-1)
		}
	}
	return it
}

// ItemTotals is what the rows say of a derived item.
type ItemTotals struct {
	Totals     []Total // of the live rules
	Members    int64
	Operations int64
	Expired    bool // its time to live has passed, and nothing has contributed since
}

// AddUpItem adds up the rows of a derived item.
func AddUpItem(it *Item, rows map[table.Key]table.Row) ItemTotals {
	var s ItemTotals
	expired := int64(0)
	for _, g := range it.parts() {
		t := AddUp(g, rows)
		s.Totals = append(s.Totals, t)
		s.Members += t.Members
		s.Operations += t.Operations
		expired = max(expired, t.Expired)
	}
	s.Expired = expired > 0 && expired == s.Operations
	return s
}

// tidyItem tidies the rows of a derived item, and reads these again. The rows of an item that expired, or has just expired, stay as they
// are: it would come back with one more operation.
func (r run) tidyItem(ctx context.Context, it *Item, rows *map[table.Key]table.Row) error {
	s, again := AddUpItem(it, *rows), false
	for i, g := range it.parts() {
		tidier, ok := g.Rule.Form.(Tidier)
		if !ok || s.Expired || it.expired && !it.forced {
			continue
		}
		changed, err := tidier.Tidy(ctx, r.Host, g, s.Totals[i])
		if err != nil {
			return err
		}
		again = again || changed
	}
	if !again {
		return nil
	}
	fresh, err := r.Tables.ReadState(ctx, "reading accumulators", it.Rows())
	if err == nil {
		*rows = fresh
	}
	return err
}

// noteTotals parks the rules whose total no number holds, or whose values the item has no room for, and lists those with too many values.
// The attributes of the former stay as they are, and the others are shown.
func (r run) noteTotals(ctx context.Context, it *Item, s ItemTotals) error {
	for i, g := range it.parts() {
		var err error
		if t := s.Totals[i]; t.Err == errCorrectionsSpent {
			continue
		} else if t.Err != nil {
			err = r.ParkTarget(ctx, g.Binding, it.Key, t.Err)
		} else if tidier, ok := g.Rule.Form.(Tidier); ok {
			err = tidier.List(ctx, r.Host, g, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isRight reports whether an item is as the rows say.
func (r run) isRight(it *Item, s ItemTotals, img change.Image) bool {
	switch {
	case img == nil:
		return s.Members <= 0 || s.Expired && !it.deleted
	case s.Members <= 0 && !it.Waits, !IsWhole(it.Entity, it.Key, img):
		return false
	}
	for i, g := range it.parts() {
		if s.Totals[i].Err == nil && !r.showsTotal(g, s.Totals[i], it.Key, img) {
			return false
		}
	}
	return true
}
