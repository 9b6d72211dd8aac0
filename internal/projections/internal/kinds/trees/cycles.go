package trees

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// The items of a cycle are parked together, by a transaction that checks that each of them still refers to the next; each row names
// all of them. So a group of rows tells of a cycle that was there. A cycle ends when one of its items refers elsewhere: the record of
// that item finds its row, or that of the parent that it had. It clears the whole group, by a transaction that checks how the item
// refers by now. What the items show plays no part in it (docs/adr/0032-trees-are-copies-along-themselves.md).
//
// A long cycle takes several transactions. The first parks the item that is looked at, and the last clears the row that was looked at. So
// after a crash the same record finds that row, and goes on.

// The codes under which items are parked.
const (
	codeCycle   = "tree.cycle"
	codeTooDeep = "tree.too_deep"
)

// Parks implements host.Parker.
func (kind) Parks(code string) bool { return code == codeCycle || code == codeTooDeep }

const (
	// cycleMax is how many items of one cycle are parked, and cycleBytesMax how long their keys may be together: each row lists all of
	// them, and each item of the cycle walks all the way.
	cycleMax, cycleBytesMax = 200, 64 << 10
	// cycleShare is how many of them one transaction parks, by two actions for each. It leaves two actions free.
	cycleShare = plan.TransactActionsMax/2 - 1
	// shareBeside is the largest item that such a transaction checks beside its share: 400 KB (Amazon DynamoDB developer guide, "Quotas").
	shareBeside = 400 << 10
	// cycleNamed is how many of them a parked item's reason names.
	cycleNamed = 49
)

// deepWalk is so many items that the first of them shows nothing, wherever the last one is: it has more than levelsMax others above it, and
// one more, or is in a cycle or below one.
const deepWalk = levelsMax + 2

// member is an item on the way from another one to its root, as it was read.
type member struct {
	key  change.Key
	item change.Item
}

// end is where a way up ends.
type end uint8

const (
	atShown end = iota // at a root, or at an item that shows something, or that waits
	atStart            // at the item itself: it is in a cycle
	inCycle            // at an item that was on the way before: the cycle is above
	nowhere            // it is too long
)

// walk is one way up from an item.
type walk struct {
	plan.ItemRule
	item    change.Item
	most    int                        // items of the way
	near    map[change.Key]change.Item // items that were read already
	through bool                       // it goes on where an item shows something
	wait    func(change.Key) bool      // reports whether an item waits for one above it; nil: none does
}

// walkUp walks from an item to its parent, and on, until it comes to the item again: then it returns the cycle. Unless it goes through, it
// stops at an item that shows something: if that item is in the cycle, the worker that takes its values off walks up again.
func (w run) walkUp(ctx context.Context, from walk) (way []member, ends end, err error) {
	seen := map[change.Key]bool{}
	for at := (member{from.Key, from.item}); len(way) < from.most; {
		l := children.LinkOf(w.Planner, from.Binding, at.key, table.Image(at.item))
		v := viewOf(w.Planner, from.Binding, at.key, table.Image(at.item))
		if !l.Refers || len(way) > 0 && v.known && v.depth != none && !from.through || from.wait != nil && from.wait(at.key) {
			return way, atShown, nil
		}
		way, seen[at.key] = append(way, at), true
		if l.Parent == from.Key {
			return way, atStart, nil
		}
		if seen[l.Parent] {
			return nil, inCycle, nil
		}
		if parent, read := from.near[l.Parent]; read {
			at = member{l.Parent, parent}
			continue
		}
		items, err := w.Tables.ReadItems(ctx, "reading "+l.Parent.String(), []change.Key{l.Parent})
		if err != nil {
			return nil, nowhere, err
		}
		at = member{l.Parent, items[l.Parent]}
	}
	return nil, nowhere, nil
}

// waiting is an item below one that a worker is about to write.
type waiting plan.ItemRule

// waits reports whether an item that is not written yet is to wait for what is above it: not in a cycle, where each item would wait for
// another. One walk says so of all the items on its way, until the plan is applied: an application may put a thousand items before the one
// that they are below. If an item above is written meanwhile, its record comes by the items that wait.
func (w run) waits(ctx context.Context, id plan.ItemRule, item change.Item) (bool, error) {
	of := func(key change.Key) waiting { return waiting{Binding: id.Binding, Key: key} }
	way, ends, err := w.walkUp(ctx, walk{ItemRule: id, item: item, most: deepWalk, wait: func(key change.Key) bool {
		_, found := w.Found.Load(of(key))
		return found
	}})
	if err != nil {
		return false, err
	}
	if ends == atShown {
		for _, m := range way {
			w.Found.Store(of(m.key), true)
		}
	}
	return ends == atShown || ends == inCycle, nil
}

// cycleOf is the cycle that an item is in, if it is one of those that are parked. A row that tells of a cycle lists the items that are
// probably on the way: they are read together.
func (w run) cycleOf(ctx context.Context, id plan.ItemRule, item change.Item, row table.Row) ([]member, error) {
	var near map[change.Key]change.Item
	if tellsCycle(row, id.Key) {
		var keys []change.Key
		for _, text := range state.ReadParked(row).With {
			keys = append(keys, change.ParseKey(text))
		}
		var err error
		if near, err = w.Tables.ReadItems(ctx, "reading a cycle of "+id.Key.String(), keys); err != nil {
			return nil, err
		}
	}
	cycle, ends, err := w.walkUp(ctx, walk{ItemRule: id, item: item, most: cycleMax, near: near})
	if err == nil && (ends == nowhere || ends == atStart && !isListed(cycle)) {
		w.Logger.WarnContext(ctx, "an item shows no path, and is not parked: its cycle is too large for that, or too many items are above it",
			"rule", id.Rule.Name, "item", id.Key.String(), "items_max", cycleMax, "key_bytes_max", cycleBytesMax)
	}
	if ends != atStart || !isListed(cycle) {
		cycle = nil
	}
	return cycle, err
}

// isListed reports whether the items of a cycle are few enough to be parked.
func isListed(cycle []member) bool {
	bytes := 0
	for _, m := range cycle {
		bytes += len(m.key.String())
	}
	return len(cycle) <= cycleMax && bytes <= cycleBytesMax
}

// examine parks the cycle that an item is in, and clears the one that it was in, of which the row under a key tells: its own, or that of
// the parent that it had. anew parks a cycle again that is parked.
func (w run) examine(ctx context.Context, id plan.ItemRule, cycleRow table.Key, anew bool) error {
	return table.Contend(ctx, "looking for a cycle of "+id.Key.String(), func() (table.Round, error) {
		items, rows, err := w.Tables.ReadBoth(ctx, "reading "+id.Key.String()+" and what is parked", []change.Key{id.Key}, []table.Key{cycleRow})
		if err != nil {
			return table.Lost, err
		}
		row := rows[cycleRow]
		cycle, err := w.cycleOf(ctx, id, items[id.Key], row)
		if err != nil {
			return table.Lost, err
		}
		if tellsCycle(row, id.Key) && (cycle == nil || !slices.Equal(state.ReadParked(row).With, textsOf(cycle))) {
			ended, err := w.clearCycle(ctx, member{id.Key, items[id.Key]}, id.Binding, row)
			if ended == table.Lost || err != nil {
				return ended, err
			}
		}
		if cycle == nil {
			return table.Finished, nil
		}
		return w.parkCycle(ctx, id.Binding, cycle, anew)
	})
}

// textsOf are the keys of the items of a cycle, sorted.
func textsOf(cycle []member) []string {
	texts := make([]string, len(cycle))
	for i, m := range cycle {
		texts[i] = m.key.String()
	}
	slices.Sort(texts)
	return texts
}

func isCycle(row table.Row) bool { return table.TextOf(row["code"]) == codeCycle }

// tellsCycle reports whether a row tells of a cycle that an item was in. Another program may have written on the item's own.
func tellsCycle(row table.Row, key change.Key) bool {
	p := state.ReadParked(row)
	return isCycle(row) && (p.Item == key || slices.Contains(p.With, key.String()))
}

// parkCycle parks the items of a cycle, unless they are parked as such. If one of them was in another cycle, its record clears that.
func (w run) parkCycle(ctx context.Context, b *plan.Binding, cycle []member, anew bool) (table.Round, error) {
	keys, way := make([]table.Key, len(cycle)), make([]string, len(cycle))
	for i, m := range cycle {
		keys[i], way[i] = parkedKey(plan.ItemRule{Binding: b, Key: m.key}), m.key.String()
	}
	rows, err := w.Tables.ReadState(ctx, "reading what is parked of a cycle", keys)
	if err != nil {
		return table.Lost, err
	}
	with, first := textsOf(cycle), rows[keys[0]]
	same := func(key table.Key) bool {
		row := rows[key]
		return isCycle(row) && table.TextOf(row["parking"]) == table.TextOf(first["parking"]) && slices.Equal(state.ReadParked(row).With, with)
	}
	anew = anew && !w.again[cycle[0].key]
	if !anew && !slices.ContainsFunc(keys, func(key table.Key) bool { return !same(key) }) {
		return table.Finished, nil
	}
	parking, why := state.NewID(), &rules.ItemError{Code: codeCycle, Reason: "its parents lead back to it: " + wayText(way) +
		"; take one of them out of the cycle"}
	rowOf := func(m member) table.Row {
		return state.Parked{ID: state.ParkedID(b.ID, m.key), Rule: b.ID, Item: m.key, Code: why.Code, Reason: why.Reason, At: w.Now(),
			Parking: parking, With: with}.Row()
	}
	for share := range shares(cycle, func(m member) int { return m.item.Size() + attributes.ItemFromTable(rowOf(m)).Size() }) {
		var parts []ddb.TransactWriteItem
		for _, m := range share {
			c, id := table.NewExpression(), plan.ItemRule{Binding: b, Key: m.key}
			parts = append(parts, w.Tables.PutPart(rowOf(m), table.Whole(c.SameAs(rows[parkedKey(id)], "parking")), c))
			parts = append(parts, w.stillRefers(b, m)...)
		}
		if err := w.Tables.Transact(ctx, "parking a cycle of "+way[0], []string{b.ID}, parts); err != nil {
			return lostOr(err)
		}
	}
	for _, m := range cycle {
		w.NoteParked(ctx, b.ID, m.key, why)
		if anew {
			w.again[m.key] = true
		}
	}
	return table.Finished, nil
}

// shares divides rows or items of a cycle into parts, each small enough for one transaction.
func shares[T any](all []T, bytes func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		begin, sum := 0, 0
		for i, one := range all {
			size := bytes(one)
			if i-begin == cycleShare || i > begin && sum+size > plan.TransactBytesMax-shareBeside {
				if !yield(all[begin:i]) {
					return
				}
				begin, sum = i, 0
			}
			sum += size
		}
		if begin < len(all) {
			yield(all[begin:])
		}
	}
}

// wayText names the items of a cycle in their order.
func wayText(way []string) string {
	named, more := slices.Clone(way), ""
	if len(way) > cycleNamed {
		named, more = named[:cycleNamed], fmt.Sprintf(" -> (%d more)", len(way)-cycleNamed)
	}
	return strings.Join(named, " -> ") + more + " -> " + way[0]
}

// clearCycle clears all rows of the cycle that a row names, if an item that was in it refers as it did when it was read.
func (w run) clearCycle(ctx context.Context, was member, b *plan.Binding, row table.Row) (table.Round, error) {
	var keys []table.Key
	for _, text := range state.ReadParked(row).With {
		keys = append(keys, parkedKey(plan.ItemRule{Binding: b, Key: change.ParseKey(text)}))
	}
	own := parkedKey(plan.ItemRule{Binding: b, Key: was.key})
	if !slices.Contains(keys, own) { // another program has written there
		keys = []table.Key{own}
	}
	last := slices.Index(keys, parkedKey(plan.ItemRule{Binding: b, Key: state.ReadParked(row).Item}))
	if last >= 0 { // a crash before the last transaction leaves the row that tells of the others
		end := len(keys) - 1
		keys[last], keys[end] = keys[end], keys[last]
	}
	parts := w.stillRefers(b, was)
	return lostOr(w.clearRows(ctx, b, was.key.String(), table.TextOf(row["parking"]), keys, parts))
}

// clearRows clears those of some rows that tell of one parking of a cycle, each time if what the checks say is true.
func (w run) clearRows(ctx context.Context, b *plan.Binding, item, parking string, keys []table.Key, checks []ddb.TransactWriteItem) error {
	rows, err := w.Tables.ReadState(ctx, "reading what is parked of a cycle", keys)
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(key table.Key) bool { return rows[key] == nil || table.TextOf(rows[key]["parking"]) != parking })
	for share := range shares(keys, func(key table.Key) int { return attributes.ItemFromTable(rows[key]).Size() }) {
		parts := slices.Clone(checks)
		for _, key := range share {
			c := table.NewExpression()
			parts = append(parts, w.Tables.DeletePart(key, table.Whole(c.SameAs(rows[key], "parking", "code")), c))
		}
		if err := w.Tables.Transact(ctx, "clearing a cycle of "+item, []string{b.ID}, parts); err != nil {
			return err
		}
	}
	return nil
}

func lostOr(err error) (table.Round, error) {
	if table.LostRace(err) {
		return table.Lost, nil
	}
	return table.Finished, err
}

// stillRefers checks that an item refers as it did when it was read.
func (w run) stillRefers(b *plan.Binding, m member, more ...string) []ddb.TransactWriteItem {
	names := append(slices.Clone(Of(b.Rule).reads()), more...)
	for _, eq := range b.Rule.Target.Equals {
		names = append(names, eq.Attribute)
	}
	return target.StillReads(w.Tables.Reader, plan.ItemRule{Binding: b, Key: m.key}, names, m.item)
}

// parkDeep parks an item that is marked as too deep, or clears what is parked of one that is not. anew parks it again if it is parked.
func (w run) parkDeep(ctx context.Context, id plan.ItemRule, anew bool) error {
	return table.Contend(ctx, "parking or clearing "+id.Key.String(), func() (table.Round, error) {
		key := parkedKey(id)
		items, rows, err := w.Tables.ReadBoth(ctx, "reading "+id.Key.String()+" and what is parked", []change.Key{id.Key}, []table.Key{key})
		if err != nil {
			return table.Lost, err
		}
		item, row := items[id.Key], rows[key]
		v := viewOf(w.Planner, id.Binding, id.Key, table.Image(item))
		deep, parked := v.known && v.depth == tooDeep, table.TextOf(row["code"]) == codeTooDeep
		if deep == parked && !(deep && anew) {
			return table.Finished, nil
		}
		if isCycle(row) { // the other rows of the cycle would be found no more
			if cycle, err := w.cycleOf(ctx, id, item, row); err != nil || cycle != nil {
				return table.Finished, err
			}
			ended, err := w.clearCycle(ctx, member{id.Key, item}, id.Binding, row)
			if err == nil {
				ended = table.Lost // the row is read again
			}
			return ended, err
		}
		c := table.NewExpression()
		condition := table.Whole(c.SameAs(row, "parking"))
		write := w.Tables.DeletePart(key, condition, c)
		why := &rules.ItemError{Code: codeTooDeep, Reason: fmt.Sprintf("more than %d levels: it and what is below it show nothing", levelsMax)}
		if deep {
			write = w.Tables.PutPart(w.ParkedRow(id.ID, id.Key, change.Position{}, why), condition, c)
		}
		err = w.Tables.Transact(ctx, "updating what is parked of "+id.Key.String(), []string{id.ID},
			append(w.stillRefers(id.Binding, member{id.Key, item}, id.Stamp), write))
		if err == nil && deep {
			w.NoteParked(ctx, id.ID, id.Key, why)
		}
		return lostOr(err)
	})
}
