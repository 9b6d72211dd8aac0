package rules

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// mirrored is one attribute of a mirror item: from the source, or a constant.
type mirrored struct {
	as, from string
	constant change.Value // absent: from the source
}

// wanted evaluates the rule's where.
func (r *Rule) wanted(m *Match, img change.Image) (bool, error) {
	if r.where == nil {
		return true, nil
	}
	ok, err := r.where.Condition(r.Source.lookup(m, img))
	if err != nil {
		return false, itemError(r.Source, "where", err)
	}
	return ok, nil
}

// Contribution says what a source item adds under a Count or Sum rule. A nil
// error and false mean that it adds nothing: where is false, a join value is
// absent, null or empty, or the sum reads an attribute that is missing. The
// error is an *ItemError.
func (r *Rule) Contribution(m *Match, img change.Image) (Contribution, bool, error) {
	ok, err := r.wanted(m, img)
	if err != nil || !ok {
		return Contribution{}, false, err
	}
	group, ok, err := r.group(m, img)
	if err != nil || !ok {
		return Contribution{}, false, err
	}
	amount := decimal.New(1)
	if r.amount != nil {
		if amount, ok, err = r.amount.Amount(r.Source.lookup(m, img)); err != nil {
			return Contribution{}, false, itemError(r.Source, "sum", err)
		}
	}
	return Contribution{Group: group, Amount: amount}, ok, nil
}

// group names the aggregate that a source item adds to.
func (r *Rule) group(m *Match, img change.Image) (string, bool, error) {
	if r.ByUnique {
		return r.Source.uniqueText(r.join.unique, m, img)
	}
	key, ok, err := r.Source.otherKey(&r.join, r.Target, m, img)
	if !ok {
		return "", false, err
	}
	return key.String(), true, nil
}

// GroupOf names the aggregate that a target item displays under a Count or Sum
// rule; false if the rule is ByUnique and the item has no Unique value.
func (r *Rule) GroupOf(m *Match, img change.Image) (string, bool, error) {
	if r.ByUnique {
		return r.Target.UniqueValue(m, img)
	}
	return m.Key().String(), true, nil
}

// MirrorItem says which item mirrors a source item, and what it holds. A nil
// error and false mean none. Attributes that the source does not have are left
// out, NULL is copied as it is. The error is an *ItemError.
func (r *Rule) MirrorItem(m *Match, img change.Image) (MirrorItem, bool, error) {
	ok, err := r.wanted(m, img)
	if err != nil || !ok {
		return MirrorItem{}, false, err
	}
	key, ok, err := r.Source.otherKey(&r.join, r.Target, m, img)
	if err != nil || !ok {
		return MirrorItem{}, false, err
	}
	item := MirrorItem{Key: key, Attributes: make(map[string]change.Value, len(r.sets))}
	for _, set := range r.sets {
		value := set.constant
		if value.Kind() == change.KindAbsent {
			value = r.Source.attribute(set.from, m, img)
		}
		if value.Kind() != change.KindAbsent {
			item.Attributes[set.as] = value
		}
	}
	return item, true, nil
}

// SourceKey returns the key of the only source whose mirror item could have
// this key; false if there can be none, or if the rule is not Injective.
func (r *Rule) SourceKey(target change.Key) (change.Key, bool) {
	var vars, source [VariablesMax]string
	if !r.Injective || !r.Target.shape.match(target, &vars) {
		return change.Key{}, false
	}
	for slot, from := range r.join.fill {
		if !from.isVariable() {
			continue
		}
		if was := source[from.slot]; was != "" && was != vars[slot] {
			return change.Key{}, false
		}
		source[from.slot] = vars[slot]
	}
	key, err := r.Source.render(&source, func(int) string { return "" })
	return key, err == nil
}

// ParentKey returns the key of the parent that a child item refers to under a
// Copy rule; false if it refers to none. The error is an *ItemError.
func (r *Rule) ParentKey(m *Match, img change.Image) (change.Key, bool, error) {
	return r.Target.otherKey(&r.join, r.Source, m, img)
}

// Copied returns what a Copy rule gives the children of this parent: a value
// for each of r.Copies, absent where the children's attribute must be absent.
// A nil parent is one that does not exist. NULL is a value like any other.
func (r *Rule) Copied(parent change.Image) []change.Value {
	values := make([]change.Value, len(r.Copies))
	for i, c := range r.Copies {
		if parent != nil {
			values[i] = r.fromParent(c.From, parent)
		}
		if values[i].Kind() == change.KindAbsent {
			values[i] = c.IfMissing
		}
	}
	return values
}

// fromParent looks an attribute up, or, where there is none of that name, a variable of the parent's key.
func (r *Rule) fromParent(name string, parent change.Image) change.Value {
	value := parent.Lookup(name)
	e := r.Source
	slot := indexOf(e.shape.variables, name)
	if value.Kind() != change.KindAbsent || slot < 0 {
		return value
	}
	key := change.Key{Partition: parent.Lookup(e.partitionKey).Text()}
	if e.shape.hasSort {
		key.Sort = parent.Lookup(e.sortKey).Text()
	}
	var vars [VariablesMax]string
	if !e.shape.match(key, &vars) {
		return change.Value{}
	}
	return change.String(vars[slot])
}

// CollectionOf says where all children of a parent are under a Copy rule with a
// Collection: in this partition of the base table, at sort keys that begin with
// sortPrefix. ok is false if no child can refer to such a parent.
func (r *Rule) CollectionOf(parent change.Key) (partition, sortPrefix string, ok bool) {
	var vars, child [VariablesMax]string
	if !r.Collection || !r.Source.shape.match(parent, &vars) {
		return "", "", false
	}
	for slot, from := range r.join.fill {
		if was := child[from.slot]; was != "" && was != vars[slot] {
			return "", "", false
		}
		child[from.slot] = vars[slot]
	}
	sh := &r.Target.shape
	if partition, ok = sh.partition.render(&child); !ok {
		return "", "", false
	}
	back := child
	if !sh.partition.match(partition, &back) || back != child {
		return "", "", false
	}
	if sh.hasSort && (sh.kinds == nil || sh.kinds.sort != change.KindNumber) {
		sortPrefix, _ = sh.sort.render(&child)
	}
	if len(partition) > partitionBytesMax || len(sortPrefix) > sortBytesMax {
		return "", "", false // no child's key is so long
	}
	return partition, sortPrefix, true
}
