package groups

import (
	"cmp"
	"context"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
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

	asks      []int         // the groups that ask for it
	expired   bool          // a record says that DynamoDB's time to live deleted it
	showed    []int64       // the operations whose outcome it showed then, of each of its rules
	deleted   bool          // a record says that it was deleted in another way
	contested *plan.Binding // whose value another program overwrote; nil: none
	forced    bool          // something may have changed: it is written without a look
	known     bool          // seen is the item as it was at a moment before the rows were read
	seen      change.Image
}

// parts are the groups that the item displays.
func (it *Item) parts() []plan.GroupRef {
	groups := make([]plan.GroupRef, len(it.Live))
	for i, b := range it.Live {
		groups[i] = plan.GroupRef{Binding: b, Group: it.Key.String()}
	}
	return groups
}

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
	found, values, err := r.Tables.ReadBoth(ctx, "reading accumulators of derived items", keys, rows)
	for n, err := range r.Targets.Every(ctx, len(items), func(ctx context.Context, to target.Sender, n int) error {
		it := items[n]
		if !it.forced && !it.known {
			it.known, it.seen = true, table.Image(found[it.Key])
		}
		if err != nil {
			return err
		}
		return r.settle(ctx, to, it, values)
	}) {
		for _, i := range items[n].asks {
			errs[i] = cmp.Or(errs[i], err)
		}
		if err == nil {
			r.Settle(items[n].Key)
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
		if !r.Tables.CanExist(key) || r.Settled[key] {
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
		if ru.Contested[key] {
			it.contested = b
		}
	}
	return it
}

// Settlement is what the rows say of a derived item.
type Settlement struct {
	Totals     []Total // of the live rules
	Members    int64
	Operations int64
	Expired    bool // its time to live has passed, and nothing has contributed since
}

// AddUpItem adds up the rows of a derived item.
func AddUpItem(it *Item, rows map[table.Key]table.Row) Settlement {
	var s Settlement
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

// settle brings one item to what the rows say. A write that leaves the item there is conditional on its stamps, as any roll-up. One that
// makes or deletes it goes in a transaction which checks that the rows are as they were read: no stamp on a deleted item
// would hold off a late worker.
func (r run) settle(ctx context.Context, to target.Sender, it *Item, rows map[table.Key]table.Row) error {
	if err := r.tidyItem(ctx, it, &rows); err != nil {
		return err
	}
	fresh, allowed := false, it.contested == nil // fresh: the item was read with the rows that are known
	refused := false                             // DynamoDB did not take it
	return table.Contend(ctx, "deriving "+it.Key.String(), func() (table.Round, error) {
		s := AddUpItem(it, rows)
		for i, g := range it.parts() {
			if err := r.read(ctx, g, &s.Totals[i]); err != nil {
				return table.Finished, err
			}
		}
		leftOut := fresh && r.fit(it, s)
		if err := r.noteTotals(ctx, it, s); err != nil {
			return table.Finished, err
		}
		if it.known && (fresh || !it.forced || it.seen == nil && s.Members <= 0) && r.isRight(it, s, it.seen) {
			return table.Finished, nil
		}
		if !allowed {
			var err error
			if allowed, err = r.MayHeal(ctx, it.contested, it.Key, true); err != nil || !allowed {
				return table.Finished, err
			}
		}
		bring := func() (target.Outcome, error) {
			if (!fresh || leftOut || refused) && s.Members > 0 && (!it.known || isWholeItem(it, it.seen)) && r.hasRoom(it, s) {
				ended, _, err := to.Write(ctx, r.itemWrite(it, s))
				if ended != target.RaceLost || err != nil || !fresh {
					r.Counters.Rollups.Add(1)
					return ended, err
				}
			}
			if !fresh {
				return target.RaceLost, nil
			}
			return r.settleAt(ctx, it, s, rows)
		}
		ended, err := bring()
		if refused = ended == target.Refused; refused && fresh {
			ended, err = r.leaveOut(ctx, it, s, err, bring)
		}
		if ended == target.Written || ended == target.RaceLost && err != nil {
			return table.Finished, err
		}
		items, values, err := r.Tables.ReadBoth(ctx, "reading a derived item", []change.Key{it.Key}, it.Rows())
		rows, fresh, it.known, it.seen = values, true, true, table.Image(items[it.Key])
		return table.Lost, err
	})
}

// tidyItem tidies the rows of a derived item, and reads these again. The rows of an item that expired stay as they are: it comes back with
// one more operation.
func (r run) tidyItem(ctx context.Context, it *Item, rows *map[table.Key]table.Row) error {
	s, again := AddUpItem(it, *rows), false
	for i, g := range it.parts() {
		tidier, ok := g.Rule.Form.(Tidier)
		if !ok || s.Expired {
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
func (r run) noteTotals(ctx context.Context, it *Item, s Settlement) error {
	for i, g := range it.parts() {
		var err error
		if t := s.Totals[i]; t.Err != nil {
			err = r.ParkID(ctx, g.ID, it.Key, change.Position{}, t.Err)
		} else if tidier, ok := g.Rule.Form.(Tidier); ok {
			err = tidier.List(ctx, r.Host, g, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isWholeItem(it *Item, img change.Image) bool {
	return plan.IsMade(it.Key, img) && it.Entity.Is(img)
}

// isRight reports whether an item is as the rows say.
func (r run) isRight(it *Item, s Settlement, img change.Image) bool {
	switch {
	case img == nil:
		return s.Members <= 0 || s.Expired && !it.deleted
	case s.Members <= 0 && !it.Waits, !isWholeItem(it, img):
		return false
	}
	for i, g := range it.parts() {
		if s.Totals[i].Err != nil {
			continue
		}
		v, shown := r.shownVersion(g, it.Key, img, FormOf(g.Rule).Values(s.Totals[i]))
		if !shown || v.UnderEpoch(r.Planner.Epoch) != r.versionOf(s.Totals[i]) {
			return false
		}
	}
	return true
}

// leaveOut parks the rule because of which DynamoDB refuses an item: the write without it is taken. If no rule is to blame alone, it parks all.
func (r run) leaveOut(ctx context.Context, it *Item, s Settlement, refusal error, bring func() (target.Outcome, error),
) (target.Outcome, error) {
	why := host.WriteRejected(table.Refusal(refusal))
	for i, b := range it.Live {
		if s.Totals[i].Err != nil {
			continue
		}
		s.Totals[i].Err = why
		ended, err := bring()
		if ended == target.Written && err == nil {
			err = r.ParkID(ctx, b.ID, it.Key, change.Position{}, why)
		}
		if ended != target.Refused {
			return ended, err
		}
		s.Totals[i].Err = nil
	}
	for i, b := range it.Live {
		if s.Totals[i].Err == nil {
			if err := r.ParkID(ctx, b.ID, it.Key, change.Position{}, why); err != nil {
				return target.RaceLost, err
			}
		}
	}
	return target.Written, nil
}

// settleAt makes, replaces, writes or deletes the item that was read, if rows and stamps are still as they were read. If DynamoDB refuses
// that, the error says why.
func (r run) settleAt(ctx context.Context, it *Item, s Settlement, rows map[table.Key]table.Row) (target.Outcome, error) {
	var part ddb.TransactWriteItem
	switch {
	case it.seen != nil && r.isLater(it):
		return target.Written, nil // rules that this process does not know have it: it is about to find out
	case s.Members <= 0 && it.seen != nil && it.Waits && plan.IsMade(it.Key, it.seen), s.Members > 0 && plan.IsMade(it.Key, it.seen):
		w := target.On(it.Live[0], "", it.Key)
		putAll(w, r.content(it, s))
		w.Condition = r.asRead(it, w.Expression)
		part = w.InTransaction(r.Tables.Reader)
	case s.Members <= 0 && it.Waits:
		return target.Written, nil
	case s.Members <= 0:
		part = r.itemGone(it)
	case it.seen == nil && it.expired && !it.forced && showedAll(it, s):
		return r.noteExpiry(ctx, it, s, rows)
	default:
		part = r.itemWhole(it, s)
	}
	parts := []ddb.TransactWriteItem{part}
	for _, key := range it.Rows() {
		c := table.NewExpression() // absent: no operation was ever counted there
		parts = append(parts, r.Tables.CheckPart(key, table.Whole(c.Same("ops", attributes.FromTable(rows[key]["ops"]))), c))
	}
	err := r.Tables.Transact(ctx, "deriving "+it.Key.String(), []string{it.Live[0].ID}, parts)
	switch {
	case table.LostRace(err):
		return target.RaceLost, nil
	case table.Refusal(err) != "":
		return target.Refused, err
	case err != nil:
		return target.RaceLost, err
	}
	r.Counters.Made.Add(1)
	return target.Written, nil
}

// isLater reports whether the item carries the stamp of a rule that this process does not know, or of a later rules epoch.
func (r run) isLater(it *Item) bool {
	for name, v := range it.seen.All() {
		id, stamped := strings.CutPrefix(name, stamp.Prefix)
		s, ok := stamp.Parse(v)
		if stamped && ok && s.Context == stamp.Context(r.Planner.Incarnation, it.Key, "") &&
			(r.Planner.AnyByID(id) == nil || s.Version.RulesEpoch() > r.Planner.Epoch) {
			return true
		}
	}
	return false
}

// showedAll reports whether an item that expired showed all that has contributed: what came later, or had still to be shown, brings it back.
// A rule that is parked shows what it did before.
func showedAll(it *Item, s Settlement) bool {
	for i, t := range s.Totals {
		if t.Err == nil && it.showed[i] != t.Operations {
			return false
		}
	}
	return true
}

// noteExpiry notes that the item's time to live has passed, after so many operations.
func (r run) noteExpiry(ctx context.Context, it *Item, s Settlement, rows map[table.Key]table.Row) (target.Outcome, error) {
	for _, key := range it.Rows() {
		if state.CountOf(rows[key]["ops"]) == 0 {
			continue
		}
		c := table.NewExpression()
		condition := table.Whole(c.Same("ops", attributes.FromTable(rows[key]["ops"])))
		update := c.Format("SET %n = %v", state.ExpiredAt, table.Number(s.Operations))
		written, err := r.Tables.UpdateState(ctx, it.Live[0].ID, "noting that "+it.Key.String()+" expired", key, update, condition, c)
		if err != nil || !written {
			return target.RaceLost, err
		}
		break
	}
	return target.Written, nil
}
