package aggregates

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
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

// derivedItem is one derived item that is to be brought up to date.
type derivedItem struct {
	key       change.Key
	entity    *rules.Entity
	live      []*plan.Binding // those of its rules whose totals are shown
	waits     bool            // for a rule that is not live yet: nothing is deleted
	asks      []int           // the groups that ask for it
	expired   bool            // a record says that DynamoDB's time to live deleted it
	deleted   bool            // a record says that it was deleted in another way
	contested *plan.Binding   // whose value another program overwrote; nil: none
	forced    bool            // something may have changed: it is written without a look
	known     bool            // seen is the item as it was at a moment before the rows were read
	seen      change.Image
}

// parts are the groups that the item displays.
func (it *derivedItem) parts() []plan.GroupRef {
	groups := make([]plan.GroupRef, len(it.live))
	for i, b := range it.live {
		groups[i] = plan.GroupRef{Binding: b, Group: it.key.String()}
	}
	return groups
}

// rows are the accumulators that decide on the item.
func (it *derivedItem) rows() (keys []table.Key) {
	for _, g := range it.parts() {
		keys = accumulators(keys, g)
	}
	return keys
}

// makeItems brings the derived items of groups up to date. For each group it sets the error, or host.ErrNotLive.
func (r run) makeItems(ctx context.Context, groups []plan.GroupRef, pl *plan.Changes, errs []error) {
	items := r.derivedItems(groups, pl, errs)
	var rows []table.Key
	var keys []change.Key
	for _, it := range items {
		rows = append(rows, it.rows()...)
		if !it.forced && !it.known {
			keys = append(keys, it.key)
		}
	}
	found, values, err := r.Tables.ReadBoth(ctx, "reading accumulators of derived items", keys, rows)
	for n, err := range r.Targets.Every(ctx, len(items), func(ctx context.Context, to target.Sender, n int) error {
		it := items[n]
		if !it.forced && !it.known {
			it.known, it.seen = true, table.Image(found[it.key])
		}
		if err != nil {
			return err
		}
		return r.settle(ctx, to, it, values)
	}) {
		for _, i := range items[n].asks {
			errs[i] = cmp.Or(errs[i], err)
		}
	}
}

// derivedItems are the items that groups ask for, each once.
func (r run) derivedItems(groups []plan.GroupRef, pl *plan.Changes, errs []error) []*derivedItem {
	var items []*derivedItem
	byKey := map[change.Key]*derivedItem{}
	for i, g := range groups {
		if !g.Rule.Derives() {
			continue
		}
		if !g.Live.Load() {
			errs[i] = host.ErrNotLive
			continue
		}
		key, ru := change.ParseKey(g.Group), pl.Rollups.Of(g)
		if !r.Tables.CanExist(key) {
			continue
		}
		it := byKey[key]
		if it == nil {
			it = &derivedItem{key: key, entity: g.Rule.Target}
			for _, rule := range it.entity.Makers {
				if b := r.Planner.Of(rule); b.Live.Load() {
					it.live = append(it.live, b)
				} else {
					it.waits = true
				}
			}
			byKey[key] = it
			items = append(items, it)
		}
		it.asks = append(it.asks, i)
		it.expired, it.deleted = it.expired || ru.Expired, it.deleted || ru.Deleted
		it.forced = it.forced || ru.Asked
		if img, seen := ru.Seen[key]; seen {
			it.known, it.seen = true, img
		}
		if ru.Contested[key] {
			it.contested = g.Binding
		}
	}
	return items
}

// settlement is what the rows say of a derived item.
type settlement struct {
	totals     []Total // of the live rules
	members    int64
	operations int64
	expired    bool // its time to live has passed, and nothing has contributed since
}

func addUpItem(it *derivedItem, rows map[table.Key]table.Row) settlement {
	var s settlement
	expired := int64(0)
	for _, g := range it.parts() {
		t := AddUp(g, rows)
		s.totals = append(s.totals, t)
		s.members += t.Members
		s.operations += t.Operations
		expired = max(expired, t.Expired)
	}
	s.expired = expired > 0 && expired == s.operations
	return s
}

// settle brings one item to what the rows say. A write that leaves the item there is conditional on its stamps, as any roll-up. One that
// makes or deletes it goes in a transaction which checks that the rows are as they were read: no stamp on a deleted item
// would hold off a late worker.
func (r run) settle(ctx context.Context, to target.Sender, it *derivedItem, rows map[table.Key]table.Row) error {
	if err := r.tidyItem(ctx, it, &rows); err != nil {
		return err
	}
	fresh, allowed := false, it.contested == nil // fresh: the item was read with the rows that are known
	return table.Contend(ctx, "deriving "+it.key.String(), func() (table.Round, error) {
		s := addUpItem(it, rows)
		if err := r.noteTotals(ctx, it, s); err != nil {
			return table.Finished, err
		}
		if it.known && (fresh || !it.forced || it.seen == nil && s.members <= 0) && r.isRight(it, s, it.seen) {
			return table.Finished, nil
		}
		if !allowed {
			var err error
			if allowed, err = r.MayHeal(ctx, it.contested, it.key, true); err != nil || !allowed {
				return table.Finished, err
			}
		}
		if !fresh && s.members > 0 && (!it.known || isWholeItem(it, it.seen)) {
			ended, _, err := to.Write(ctx, r.itemWrite(it, s))
			if err != nil || ended != target.RaceLost {
				r.Counters.Rollups.Add(1)
				return table.Finished, err
			}
		} else if fresh {
			done, err := r.settleAt(ctx, it, s, rows)
			if err != nil || done {
				return table.Finished, err
			}
		}
		items, values, err := r.Tables.ReadBoth(ctx, "reading a derived item", []change.Key{it.key}, it.rows())
		rows, fresh, it.known, it.seen = values, true, true, table.Image(items[it.key])
		return table.Lost, err
	})
}

// noteTotals parks the rules whose total no number holds, and lists those with too many values. The attributes of the former stay as they
// are, and the others are shown.
func (r run) noteTotals(ctx context.Context, it *derivedItem, s settlement) error {
	for i, g := range it.parts() {
		var err error
		if t := s.totals[i]; t.Err != nil {
			err = r.ParkID(ctx, g.ID, it.key, change.Position{}, t.Err)
		} else {
			err = r.updateCrowdedList(ctx, g, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isWholeItem(it *derivedItem, img change.Image) bool {
	return plan.IsMade(it.key, img) && it.entity.Is(img)
}

// isRight reports whether an item is as the rows say.
func (r run) isRight(it *derivedItem, s settlement, img change.Image) bool {
	switch {
	case img == nil:
		return s.members <= 0 || s.expired && !it.deleted
	case s.members <= 0 && !it.waits, !isWholeItem(it, img):
		return false
	}
	for i, g := range it.parts() {
		if s.totals[i].Err != nil {
			continue
		}
		v, shown := r.shownVersion(g, it.key, img, Of(g.Rule).display(s.totals[i].Amount))
		if !shown || v.UnderEpoch(r.Planner.Epoch) != r.versionOf(s.totals[i]) {
			return false
		}
	}
	return true
}

// stamps are those of the item's rules, with what each displays.
func (r run) stamps(it *derivedItem, s settlement) (values []change.Value, stamps []stamp.Stamp) {
	for i, b := range it.live {
		value := Of(b.Rule).display(s.totals[i].Amount)
		values = append(values, value)
		stamps = append(stamps, stamp.Stamp{Context: contextOf(b, r.Planner.Incarnation, it.key, ""), Version: r.versionOf(s.totals[i]),
			Digest: stamp.Digest([]change.Value{value})})
	}
	return values, stamps
}

// content is all that the rules want on the item; absent: no attribute.
func (r run) content(it *derivedItem, s settlement) map[string]change.Value {
	content := map[string]change.Value{plan.MadeAttribute: change.String(plan.MadeMark(it.key))}
	for _, eq := range it.entity.Equals {
		content[eq.Attribute] = eq.Value
	}
	values, stamps := r.stamps(it, s)
	for i, b := range it.live {
		if s.totals[i].Err != nil {
			continue
		}
		content[b.Rule.Writes[0]], content[b.Stamp] = values[i], change.String(stamps[i].String())
	}
	if it.entity.Expire > 0 {
		content[it.entity.ExpireAttribute] = change.Number(fmt.Sprint(r.Now().Add(it.entity.Expire).Unix()))
	}
	return content
}

// itemWrite writes the item as the rows say, if it is there and shows nothing later.
func (r run) itemWrite(it *derivedItem, s settlement) *target.Write {
	w := target.On(it.live[0], "deriving "+it.key.String(), it.key)
	putAll(w, r.content(it, s))
	_, stamps := r.stamps(it, s)
	w.Condition = w.Format("%n = %v", plan.MadeAttribute, table.Text(plan.MadeMark(it.key)))
	for _, eq := range it.entity.Equals {
		w.Condition += w.Format(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
	}
	for i, b := range it.live {
		if s.totals[i].Err != nil {
			continue
		}
		w.Condition += " AND " + target.UnstampedOr(w.Expression, b.Stamp, stamps[i])
	}
	return w
}

func putAll(w *target.Write, content map[string]change.Value) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		w.Put(name, content[name])
	}
}

// settleAt makes, replaces, writes or deletes the item that was read, if rows and stamps are still as they were read. It reports false if
// they are not.
func (r run) settleAt(ctx context.Context, it *derivedItem, s settlement, rows map[table.Key]table.Row) (bool, error) {
	var part ddb.TransactWriteItem
	switch {
	case it.seen != nil && r.isLater(it):
		return true, nil // rules that this process does not know have it: it is about to find out
	case s.members <= 0 && it.seen != nil && it.waits && plan.IsMade(it.key, it.seen), s.members > 0 && plan.IsMade(it.key, it.seen):
		w := target.On(it.live[0], "", it.key)
		putAll(w, r.content(it, s))
		w.Condition = r.asRead(it, w.Expression)
		part = w.InTransaction(r.Tables.Reader)
	case s.members <= 0 && it.waits:
		return true, nil
	case s.members <= 0:
		part = r.itemGone(it)
	case it.seen == nil && it.expired && !it.forced:
		return r.noteExpiry(ctx, it, s, rows)
	default:
		part = r.itemWhole(it, s)
	}
	parts := []ddb.TransactWriteItem{part}
	for _, key := range it.rows() {
		c := table.NewExpression() // absent: no operation was ever counted there
		parts = append(parts, r.Tables.CheckPart(key, table.Whole(c.Same("ops", attributes.FromTable(rows[key]["ops"]))), c))
	}
	err := r.Tables.Transact(ctx, "deriving "+it.key.String(), []string{it.live[0].ID}, parts)
	if table.LostRace(err) {
		return false, nil
	}
	if err == nil {
		r.Counters.Made.Add(1)
	}
	return true, r.ParkRefused(ctx, it.live[0], it.key, err)
}

// isLater reports whether the item carries the stamp of a rule that this process does not know, or of a later rules epoch.
func (r run) isLater(it *derivedItem) bool {
	for name, v := range it.seen.All() {
		id, stamped := strings.CutPrefix(name, stamp.Prefix)
		s, ok := stamp.Parse(v)
		if stamped && ok && s.Context == stamp.Context(r.Planner.Incarnation, it.key, "") &&
			(r.Planner.AnyByID(id) == nil || s.Version.RulesEpoch() > r.Planner.Epoch) {
			return true
		}
	}
	return false
}

// asRead is the condition that an item is still what it was when it was read: nothing, another program's, or one that rules made, with the
// same stamps. Later rules show the same rows under other stamps.
func (r run) asRead(it *derivedItem, c *table.Expression) string {
	if it.seen == nil {
		return c.Format("attribute_not_exists(%n)", r.Tables.PartitionKey)
	}
	condition := c.Same(plan.MadeAttribute, it.seen.Lookup(plan.MadeAttribute))
	for _, b := range it.live {
		condition += c.Same(b.Stamp, it.seen.Lookup(b.Stamp))
	}
	return table.Whole(condition)
}

// itemWhole puts the item in the place of whatever stands there.
func (r run) itemWhole(it *derivedItem, s settlement) ddb.TransactWriteItem {
	content := r.content(it, s)
	maps.DeleteFunc(content, func(_ string, v change.Value) bool { return v.Kind() == change.KindAbsent })
	item := attributes.ItemToTable(change.Item(content))
	for name, v := range r.Tables.ItemKey(it.key) {
		item[name] = v
	}
	c := table.NewExpression()
	condition := r.asRead(it, c)
	return ddb.TransactWriteItem{Put: &ddb.Put{TableName: &r.Tables.Table, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values, ReturnValuesOnConditionCheckFailure: table.AllOld}}
}

// itemGone deletes whatever stands at the item's key.
func (r run) itemGone(it *derivedItem) ddb.TransactWriteItem {
	c := table.NewExpression()
	condition := r.asRead(it, c)
	return ddb.TransactWriteItem{Delete: &ddb.Delete{TableName: &r.Tables.Table, Key: r.Tables.ItemKey(it.key),
		ConditionExpression: &condition, ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
		ReturnValuesOnConditionCheckFailure: table.AllOld}}
}

// noteExpiry notes that the item's time to live has passed, after so many operations.
func (r run) noteExpiry(ctx context.Context, it *derivedItem, s settlement, rows map[table.Key]table.Row) (bool, error) {
	for _, key := range it.rows() {
		if state.CountOf(rows[key]["ops"]) == 0 {
			continue
		}
		c := table.NewExpression()
		condition := table.Whole(c.Same("ops", attributes.FromTable(rows[key]["ops"])))
		update := c.Format("SET %n = %v", state.ExpiredAt, table.Number(s.operations))
		return r.Tables.UpdateState(ctx, it.live[0].ID, "noting that "+it.key.String()+" expired", key, update, condition, c)
	}
	return true, nil
}
