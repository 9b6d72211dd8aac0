package projections

import (
	"maps"
	"slices"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/rules"
)

// action is one write of a move's transaction that no other move may share.
type action struct {
	item   string // what it writes; unique within a transaction
	id     string // the rule (or locator) that asks for it
	delete bool   // deletes the mirror item target, provided that it carries our stamp
	spare  bool   // leaves it, provided that it does not
	target change.Key
	bytes  int
	write  ddb.TransactWriteItem
}

// differ works out what a move changes beside its ledger entry.
type differ interface {
	difference(mv *move) ([]sum, []action)
}

// difference compares the effects in force with those asked for. Mirrors with
// claims are left out: see claimedWrites.
func (e *Engine) difference(mv *move) ([]sum, []action) {
	var sums []sum
	var rest []action
	for _, id := range mv.ids() {
		old, had := mv.old[id]
		new, has := mv.new[id]
		same := had && has && old.String() == new.String()
		b := e.byID[id]
		switch {
		case same && new.kind == parked && mv.repark:
			rest = append(rest, e.parkAction(mv, id, new.parked))
		case same:
		case had && has && old.kind == contribution && new.kind == contribution && old.group == new.group:
			delta, err := new.amount.Sub(old.amount)
			if err != nil { // representable sums were made sure of by settle
				delta = new.amount
			}
			sums = append(sums, sum{groupRef{b, new.group}, delta})
		default:
			if had {
				s, a := e.undo(mv, id, old, new)
				sums, rest = append(sums, s...), append(rest, a...)
			}
			if has {
				s, a := e.redo(mv, id, new)
				sums, rest = append(sums, s...), append(rest, a...)
			}
		}
		if target, ok := mv.restore[id]; ok && b.rule.Injective && !slices.ContainsFunc(rest, func(a action) bool { return a.item == targetItem(target) }) {
			if has && new.kind == mirrored && new.target == target {
				rest = append(rest, e.upsertAction(mv, b, new))
			} else {
				rest = append(rest, e.dropAction(mv, b, target))
			}
		}
	}
	return sums, withoutReplaced(rest)
}

// withoutReplaced leaves out the deletions of mirror items that another rule takes over in the same move.
func withoutReplaced(rest []action) []action {
	return slices.DeleteFunc(rest, func(a action) bool {
		return (a.delete || a.spare) && slices.ContainsFunc(rest, func(b action) bool {
			return b.item == a.item && b.write.Update != nil
		})
	})
}

// ids are all rules and locators that the move mentions, sorted.
func (mv *move) ids() []string {
	ids := mv.new.ids()
	for id := range mv.old {
		if _, ok := mv.new[id]; !ok {
			ids = append(ids, id)
		}
	}
	for id := range mv.restore {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// settle parks the contributions whose difference no DynamoDB number can hold.
func (mv *move) settle() {
	for id, new := range mv.new {
		old, ok := mv.old[id]
		if ok && old.kind == contribution && new.kind == contribution && old.group == new.group {
			if _, err := new.amount.Sub(old.amount); err != nil {
				mv.new = maps.Clone(mv.new)
				mv.new[id] = overflow("the difference between its old and its new contribution")
			}
		}
	}
}

func overflow(what string) effect {
	return effect{kind: parked, parked: &rules.ItemError{
		Code: "number.overflow", Reason: what + " does not fit into a DynamoDB number (38 digits)"}}
}

func (e *Engine) undo(mv *move, id string, old, new effect) ([]sum, []action) {
	b := e.byID[id]
	switch old.kind {
	case contribution:
		if b != nil {
			return []sum{{groupRef{b, old.group}, old.amount.Neg()}}, nil
		}
	case mirrored:
		replaced := new.kind == mirrored && new.target == old.target
		if b != nil && b.rule.Injective && !replaced {
			return nil, []action{e.dropAction(mv, b, old.target)}
		}
	case located:
		return nil, []action{e.locatorAction(mv, id, old.value, false)}
	case parked:
		if new.kind != parked {
			return nil, []action{e.unparkAction(mv, id)}
		}
	}
	return nil, nil
}

func (e *Engine) redo(mv *move, id string, new effect) ([]sum, []action) {
	b := e.byID[id]
	switch new.kind {
	case contribution:
		return []sum{{groupRef{b, new.group}, new.amount}}, nil
	case mirrored:
		if b.rule.Injective {
			return nil, []action{e.upsertAction(mv, b, new)}
		}
	case located:
		return nil, []action{e.locatorAction(mv, id, new.value, true)}
	case parked:
		return nil, []action{e.parkAction(mv, id, new.parked)}
	}
	return nil, nil
}

func targetItem(target change.Key) string { return "target/" + target.String() }

// mirrorStamp is the stamp of a mirror item: its version is the ledger entry's.
func (e *Engine) mirrorStamp(mv *move, target change.Key, digest string) stamp {
	v := mv.to
	if mv.rederived > 0 {
		v = v.rederived(mv.rederived)
	}
	return stamp{stampContext(e.incarnation, target, ""), v, digest}
}

// upsertAction writes a mirror item: only the mirrored attributes, for other rules may own others of the same item.
func (e *Engine) upsertAction(mv *move, b *binding, f effect) action {
	c := newExpression()
	set := "SET " + c.sprintf("%n = %v", b.stamp, textValue(e.mirrorStamp(mv, f.target, f.digest).String()))
	var remove []string
	bytes := 0
	for _, name := range b.rule.Writes {
		v, ok := f.mirror.Attributes[name]
		if !ok {
			remove = append(remove, c.name(name))
			continue
		}
		set += c.sprintf(", %n = %v", name, attributes.ToTable(v))
		bytes += v.Size()
	}
	for _, name := range e.takenOver(mv, b, f.target) {
		remove = append(remove, c.name(name))
	}
	if len(remove) > 0 {
		set += " REMOVE " + strings.Join(remove, ", ")
	}
	return action{item: targetItem(f.target), id: b.id, target: f.target, bytes: bytes, write: ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.table, Key: e.itemKey(f.target), UpdateExpression: &set,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}
}

// takenOver are the attributes that another rule leaves on a mirror item which b's rule takes over from it.
func (e *Engine) takenOver(mv *move, b *binding, target change.Key) []string {
	var names []string
	for _, id := range mv.old.ids() {
		old, former := mv.old[id], e.byID[id]
		if former == nil || former == b || old.kind != mirrored || old.target != target || mv.new[id].target == target {
			continue
		}
		for _, name := range append(slices.Clone(former.rule.Writes), former.stamp) {
			if !slices.Contains(b.rule.Writes, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// deleteAction deletes a mirror item that carries our stamp (promise 8).
func (e *Engine) deleteAction(b *binding, target change.Key) action {
	c := newExpression()
	condition := c.sprintf("attribute_not_exists(%n) OR begins_with(%n, %v)",
		e.partitionKey, b.stamp, textValue(stampContext(e.incarnation, target, "")+" "))
	return action{item: targetItem(target), id: b.id, delete: true, target: target, write: ddb.TransactWriteItem{Delete: &ddb.Delete{
		TableName: &e.table, Key: e.itemKey(target), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}
}

// dropAction deletes a mirror item, or, once it was seen without our stamp, makes sure that it still has none.
func (e *Engine) dropAction(mv *move, b *binding, target change.Key) action {
	if !mv.spare[target] {
		return e.deleteAction(b, target)
	}
	c := newExpression()
	condition := c.sprintf("attribute_not_exists(%n) OR NOT begins_with(%n, %v)",
		b.stamp, b.stamp, textValue(stampContext(e.incarnation, target, "")+" "))
	return action{item: targetItem(target), id: b.id, spare: true, write: ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
		TableName: &e.table, Key: e.itemKey(target), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}, target: target}
}

// locatorAction adds or removes the item in the set of items that claim a
// unique value, and counts the change, so that what is shown before it is
// earlier than what is shown after.
func (e *Engine) locatorAction(mv *move, id, value string, claim bool) action {
	key := locatorKey(strings.TrimPrefix(id, locatorPrefix), value)
	c := newExpression()
	members := &ddb.AttributeValueMemberSS{Value: []string{mv.key.String()}}
	update := c.sprintf("ADD %n %v", "changes", numberValue(1))
	if claim {
		update += c.sprintf(", %n %v", "items", members)
	} else {
		update += c.sprintf(" DELETE %n %v", "items", members)
	}
	return action{item: key.partition, id: id, write: ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: key.attributes(), UpdateExpression: &update,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}
}

func (e *Engine) parkAction(mv *move, id string, why *rules.ItemError) action {
	pid := parkedID(id, mv.key)
	return action{item: "parked/" + pid, id: id, write: ddb.TransactWriteItem{Put: &ddb.Put{
		TableName: &e.stateTable, Item: e.parkedItem(pid, id, mv.key, mv.position, why),
	}}}
}

func (e *Engine) unparkAction(mv *move, id string) action {
	pid := parkedID(id, mv.key)
	return action{item: "parked/" + pid, id: id, write: ddb.TransactWriteItem{Delete: &ddb.Delete{
		TableName: &e.stateTable, Key: parkedKey(pid).attributes(),
	}}}
}

// sumWrite adds to one accumulator. The count of operations tells a later sum from an earlier one.
func (e *Engine) sumWrite(s sum, suffix int) ddb.TransactWriteItem {
	c := newExpression()
	update := c.sprintf("ADD %n %v, %n %v", "value", attributes.ToTable(change.Number(s.delta.String())), "operations", numberValue(1))
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: accumulatorKey(s.group, suffix%s.group.b.rule.WriteShards).attributes(),
		UpdateExpression: &update, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}
