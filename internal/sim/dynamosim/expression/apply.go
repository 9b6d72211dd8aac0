package expression

import (
	"bytes"
	"slices"
	"sort"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

var (
	errNoAttribute = "The provided expression refers to an attribute that does not exist in the item"
	errBadPath     = "The document path provided in the update expression is invalid for update"
	errBadType     = "An operand in the update expression has an incorrect data type"
)

// Apply returns the item as the update leaves it. The item itself stays as it
// is: every right side sees the old attributes, whatever else the update sets.
func (u Update) Apply(item values.Item) (values.Item, error) {
	type assignment struct {
		path Path
		av   types.AttributeValue // nil to remove
	}
	var set, remove []assignment
	for _, a := range u.actions {
		av, err := a.result(item)
		if err != nil {
			return nil, err
		}
		if av != nil {
			set = append(set, assignment{a.path, av})
		} else if a.clause == "REMOVE" || a.path.Get(item) != nil {
			remove = append(remove, assignment{path: a.path})
		}
	}
	// Indexes name elements of the old list: set in rising order, so that those beyond its end
	// append in order, and remove in falling order, so that no removal moves a later one's element.
	sort.SliceStable(set, func(i, j int) bool { return before(set[i].path, set[j].path) })
	sort.SliceStable(remove, func(i, j int) bool { return before(remove[j].path, remove[i].path) })
	updated := values.Clone(item)
	if updated == nil {
		updated = values.Item{}
	}
	for _, s := range append(set, remove...) {
		if err := assign(updated, s.path, s.av); err != nil {
			return nil, err
		}
	}
	return updated, nil
}

// assign puts a copy of av where the path leads, or removes what is there if av is nil.
func assign(item values.Item, p Path, av types.AttributeValue) error {
	if len(p) == 1 {
		if av == nil {
			delete(item, p[0].Name)
		} else {
			item[p[0].Name] = values.CloneValue(av)
		}
		return nil
	}
	last := p[len(p)-1]
	switch parent := p[:len(p)-1].Get(item).(type) {
	case *types.AttributeValueMemberM:
		if last.Name == "" {
			return values.Invalid("%s", errBadPath)
		}
		return assign(parent.Value, Path{last}, av)
	case *types.AttributeValueMemberL:
		switch {
		case last.Name != "":
			return values.Invalid("%s", errBadPath)
		case av == nil && last.Index < len(parent.Value):
			parent.Value = slices.Delete(parent.Value, last.Index, last.Index+1)
		case av == nil:
		case last.Index < len(parent.Value):
			parent.Value[last.Index] = values.CloneValue(av)
		default:
			parent.Value = append(parent.Value, values.CloneValue(av))
		}
		return nil
	}
	return values.Invalid("%s", errBadPath)
}

// result returns what the action leaves at its path; nil for nothing.
func (a action) result(item values.Item) (types.AttributeValue, error) {
	if a.clause == "REMOVE" {
		return nil, nil
	}
	operand, err := a.term.value(item)
	if err != nil || a.clause == "SET" {
		return operand, err
	}
	old := a.path.Get(item)
	if a.clause == "ADD" {
		if old == nil {
			return operand, nil
		}
		if values.TypeOf(old) == "N" && values.TypeOf(operand) == "N" {
			return addNumbers(old, operand, false)
		}
		return changeSet(old, operand, true)
	}
	if old == nil {
		return nil, nil
	}
	return changeSet(old, operand, false)
}

func (t plain) value(item values.Item) (types.AttributeValue, error) {
	av := t.of.eval(item)
	if av == nil {
		return nil, values.Invalid("%s", errNoAttribute)
	}
	return av, nil
}

func (t ifNotExists) value(item values.Item) (types.AttributeValue, error) {
	if av := t.path.Get(item); av != nil {
		return av, nil
	}
	return t.or.value(item)
}

func (t listAppend) value(item values.Item) (types.AttributeValue, error) {
	head, err := t.head.value(item)
	if err != nil {
		return nil, err
	}
	tail, err := t.tail.value(item)
	if err != nil {
		return nil, err
	}
	first, ok := head.(*types.AttributeValueMemberL)
	second, ok2 := tail.(*types.AttributeValueMemberL)
	if !ok || !ok2 {
		return nil, values.Invalid("%s", errBadType)
	}
	return &types.AttributeValueMemberL{Value: slices.Concat(first.Value, second.Value)}, nil
}

func (t arithmetic) value(item values.Item) (types.AttributeValue, error) {
	left, err := t.left.value(item)
	if err != nil {
		return nil, err
	}
	right, err := t.right.value(item)
	if err != nil {
		return nil, err
	}
	return addNumbers(left, right, t.minus)
}

func addNumbers(left, right types.AttributeValue, minus bool) (types.AttributeValue, error) {
	l, ok := left.(*types.AttributeValueMemberN)
	r, ok2 := right.(*types.AttributeValueMemberN)
	if !ok || !ok2 {
		return nil, values.Invalid("%s", errBadType)
	}
	// Normalized numbers always parse.
	a, _ := decimal.Parse(l.Value)
	b, _ := decimal.Parse(r.Value)
	if minus {
		b = b.Neg()
	}
	sum, err := a.Add(b)
	if err != nil {
		return nil,
			values.Invalid("Number overflow. Attempting to store a number with more than 38 significant digits or a magnitude larger than " +
				"supported range")
	}
	return &types.AttributeValueMemberN{Value: sum.String()}, nil
}

// changeSet adds members to a set or takes them out; nil for a set that is left empty.
func changeSet(old, operand types.AttributeValue, add bool) (types.AttributeValue, error) {
	if values.TypeOf(old) != values.TypeOf(operand) {
		return nil, values.Invalid("%s", errBadType)
	}
	var changed types.AttributeValue
	switch o := old.(type) {
	case *types.AttributeValueMemberSS:
		members := changeMembers(o.Value, operand.(*types.AttributeValueMemberSS).Value, add, func(a, b string) bool { return a == b })
		changed = &types.AttributeValueMemberSS{Value: members}
	case *types.AttributeValueMemberNS:
		members := changeMembers(o.Value, operand.(*types.AttributeValueMemberNS).Value, add, func(a, b string) bool { return a == b })
		changed = &types.AttributeValueMemberNS{Value: members}
	case *types.AttributeValueMemberBS:
		members := changeMembers(o.Value, operand.(*types.AttributeValueMemberBS).Value, add, bytes.Equal)
		changed = &types.AttributeValueMemberBS{Value: members}
	default:
		return nil, values.Invalid("%s", errBadType)
	}
	if n, _ := values.Length(changed); n == 0 {
		return nil, nil
	}
	return values.NormalizeValue(changed)
}

func changeMembers[T any](old, operand []T, add bool, equal func(a, b T) bool) []T {
	kept := slices.DeleteFunc(slices.Clone(old), func(m T) bool {
		return slices.ContainsFunc(operand, func(o T) bool { return equal(m, o) })
	})
	if add {
		return append(kept, operand...)
	}
	return kept
}
