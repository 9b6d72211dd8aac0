package computed

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// run applies the changes that set rules ask for.
type run struct{ *host.Run }

var _ host.Kind = kind{}

// Apply implements host.Kind: it brings each item to what it must hold, and parks what the rules cannot read.
func (kind) Apply(ctx context.Context, r *host.Run, pl *plan.Changes) {
	w, items := run{r}, &plan.PartOf[Changes](pl).Items
	keys := items.Keys()
	errs := w.Targets.Every(ctx, len(keys), func(ctx context.Context, to target.Sender, i int) error {
		return w.writeValues(ctx, to, keys[i], items.Of(keys[i]))
	})
	for i, id := range keys {
		w.Ended(ctx, items.Of(id).First, id.Binding, id.Key, errs[i])
	}
	w.parkAll(ctx, keys, items)
}

// writeValues writes on an item what it must hold. If the item is not as it was seen, the refused write brings
// the item as it is, and that decides.
func (w run) writeValues(ctx context.Context, to target.Sender, id plan.ItemRule, it *Item) error {
	img, counted := it.Image, false
	return table.Contend(ctx, "setting attributes of "+id.Key.String(), func() (table.Round, error) {
		wanted, ok := wantedIn(w.Planner, id, img)
		if !ok || wanted.isOn(id.Binding, img) {
			return table.Finished, nil
		}
		if allowed, err := w.MayHeal(ctx, id.Binding, id.Key, it.Correction && !counted); err != nil || !allowed {
			return table.Finished, err
		}
		counted = true
		ended, current, err := to.Write(ctx, w.write(id, wanted, img))
		if ended != target.RaceLost || err != nil {
			return table.Finished, err
		}
		if img = current; img == nil { // it is gone, or the endpoint does not return it
			items, err := w.Tables.ReadItems(ctx, "reading "+id.Key.String(), []change.Key{id.Key})
			img = table.Image(items[id.Key])
			return table.Lost, err
		}
		return table.Lost, err
	})
}

// write is the write of what an item must hold, if the item is still of the entity and holds what the rule read.
// What the attributes themselves hold is no condition: whatever it is, these values replace it.
func (w run) write(id plan.ItemRule, wanted Wanted, seen change.Image) *target.Write {
	t := target.On(id.Binding, "setting attributes of "+id.Key.String(), id.Key)
	for i, name := range id.Rule.Writes {
		t.Put(name, wanted.Values[i])
	}
	t.Put(id.Stamp, wanted.Stamp)
	t.Condition = target.StillEntity(w.Tables.Reader, t.Expression, id.Rule.Target)
	t.Holds(seen, id.Rule.Reads...)
	return t
}

// parkAll parks the items that the rules cannot read, and clears what is parked of those that became readable.
func (w run) parkAll(ctx context.Context, keys []plan.ItemRule, items *plan.OrderedMap[plan.ItemRule, Item]) {
	var parked []table.Key
	for _, id := range keys {
		if it := items.Of(id); it.knownBad() {
			parked = append(parked, parkedKey(id))
		}
	}
	rows, err := w.Tables.ReadState(ctx, "reading what is parked", parked)
	errs := w.Tables.Every(ctx, len(keys), func(ctx context.Context, i int) error {
		it := items.Of(keys[i])
		switch {
		case err != nil:
			return err
		case it.knownBad() && table.TextOf(rows[parkedKey(keys[i])]["code"]) == it.Wanted.Bad.Code:
			return nil
		case it.WasBad || it.Wanted.Bad != nil:
			return w.updateParking(ctx, keys[i], it)
		}
		return nil
	})
	for i, id := range keys {
		w.Failed(items.Of(id).First, errs[i])
	}
}

// knownBad reports whether an item that cannot be read is looked at without a record: it may be parked already.
func (it *Item) knownBad() bool {
	return it.Wanted.Bad != nil && it.Position.IsZero() && !it.Repark && !it.WasBad
}

func parkedKey(id plan.ItemRule) table.Key { return state.ParkedItemKey(id.ID, id.Key) }

// updateParking parks an item that the rule cannot read, or clears what is parked of one that it can.
func (w run) updateParking(ctx context.Context, id plan.ItemRule, it *Item) error {
	return w.ParkUnread(ctx, id, it.Position, id.Rule.Reads, func(img change.Image) *rules.ItemError {
		wanted, _ := wantedIn(w.Planner, id, img)
		return wanted.Bad
	})
}
