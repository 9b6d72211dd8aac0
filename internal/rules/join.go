package rules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// refName names what gives the text of a ref.
func (e *Entity) refName(r joins.Ref) string {
	switch {
	case r.Expression != nil:
		return programText(r.Expression) + " of " + e.Name
	case r.IsElement():
		return "the element " + r.Attribute + " of " + e.Name
	}
	return e.Name + "." + r.Name(e.shape)
}

// text returns the text of what a rule says under field: `by` or `per`. false without an error means that the
// value is absent, null or empty.
func (e *Entity) text(field string, r joins.Ref, m *Match, img change.Image) (string, bool, error) {
	switch {
	case r.Expression != nil:
		value, ok, err := r.Expression.Value(e.lookup(m, img))
		if err != nil || !ok {
			return "", false, itemError(e, field, err)
		}
		return e.joinText(r, value)
	case r.IsVariable():
		return e.variable(r.Slot, m, img), true, nil
	case r.IsElement() && m.element != nil:
		return m.element.text, true, nil
	case r.IsElement() || img == nil:
		return "", false, nil
	}
	return e.joinText(r, img.Lookup(r.Attribute))
}

// joinText returns the text of a value that comes from a ref.
func (e *Entity) joinText(r joins.Ref, value change.Value) (string, bool, error) {
	switch value.Kind() {
	case change.KindAbsent, change.KindNull:
		return "", false, nil
	case change.KindString:
		return value.Text(), value.Text() != "", nil
	case change.KindBool:
		return strconv.FormatBool(value.Bool()), true, nil
	case change.KindNumber:
		number, err := decimal.Parse(value.Text())
		if err != nil {
			return "", false, &ItemError{Code: "value.type", Reason: fmt.Sprintf("%s: %v", e.refName(r), err)}
		}
		return number.String(), true, nil
	}
	return "", false, &ItemError{Code: "value.type", Reason: fmt.Sprintf(
		"%s is of type %s: only strings, numbers and booleans can be part of a key", e.refName(r), value.Kind())}
}

// variable is the value of a variable of the key. Where keys hold it in one letter case, it is the item's attribute of that
// name, if this is what the key holds in its case.
func (e *Entity) variable(slot int, m *Match, img change.Image) string {
	text := m.vars[slot]
	if format := e.shape.Formats[slot]; format.Case != templates.AsIs && img != nil {
		value := img.Lookup(e.shape.Variables[slot])
		if value.Kind() == change.KindString && format.Case.Of(value.Text()) == text {
			return value.Text()
		}
	}
	return text
}

// uniqueText is text for a value that an item of another entity is known by.
func (e *Entity) uniqueText(r joins.Ref, other *Entity, m *Match, img change.Image) (string, bool, error) {
	text, ok, err := e.text("by", r, m, img)
	if ok && other.UniqueInKey() { // as their keys hold it
		if text, err = formatted(text, other.shape.Formats[other.unique.Slot], func() string { return e.refName(r) }); err != nil {
			return "", false, err
		}
	}
	if ok && len(text) > templates.PartitionBytesMax {
		return "", false, &ItemError{Code: "key.too_long", Reason: fmt.Sprintf(
			"%s has %d bytes: an item can be known by at most %d", e.refName(r), len(text), templates.PartitionBytesMax)}
	}
	return text, ok, err
}

// JoinedKey returns the key of the item on the other side to which an item refers: a child to its parent, or a source to its
// target. ByUnique, the key's partition is that item's Unique value. It returns false if the item refers to none. The error is
// an *ItemError.
func (r *Rule) JoinedKey(m *Match, img change.Image) (change.Key, bool, error) {
	theirs, ours := r.sides()
	if r.ByUnique {
		value, ok, err := ours.uniqueText(r.Join.Unique, theirs, m, img)
		return change.Key{Partition: value}, ok, err
	}
	var vars [VariablesMax]string
	for slot, from := range r.Join.Fill {
		text, ok, err := ours.text("by", from, m, img)
		if err != nil || !ok {
			return change.Key{}, false, err
		}
		vars[slot] = text
	}
	key, err := theirs.render(&vars, func(slot int) string { return ours.refName(r.Join.Fill[slot]) })
	return key, err == nil, err
}

// JoinedText names the item that JoinedKey finds, by its Unique value or its Key.String().
func (r *Rule) JoinedText(m *Match, img change.Image) (string, bool, error) {
	key, ok, err := r.JoinedKey(m, img)
	if !ok || r.ByUnique {
		return key.Partition, ok, err
	}
	return key.String(), true, nil
}

// SourceKey returns the key of the only source that could ask for an item with
// this key; false if there can be none, or if the rule is not Injective.
func (r *Rule) SourceKey(target change.Key) (change.Key, bool) {
	var vars, source [VariablesMax]string
	if !r.Injective || !r.Target.shape.Match(target, &vars) || !r.Join.Backwards(&vars, &source) {
		return change.Key{}, false
	}
	key, err := r.Source.render(&source, func(int) string { return "" })
	return key, err == nil
}

// TextOf returns the text of an attribute, or of a variable of the key, of an item; false if it is absent, null or empty. The error is
// an *ItemError.
func (e *Entity) TextOf(name string, m *Match, img change.Image) (string, bool, error) {
	value := e.Value(name, m, img)
	text, ok, err := e.joinText(joins.Attribute(name), value)
	if err != nil {
		err = &ItemError{Code: "value.type", Reason: fmt.Sprintf("%s.%s is of type %s: only strings, numbers and booleans have a text", e.Name,
			name, value.Kind())}
	}
	return text, ok, err
}

// IDOf returns the value that an item's key holds for the variable by which its children refer to it. Only a rule AlongItself
// has one.
func (r *Rule) IDOf(m *Match) string {
	return m.vars[slices.Index(r.Source.shape.Variables, r.By[0].Theirs)]
}

// UniqueValue returns the value of the entity's Unique on this item, as text;
// false if it is absent, null or empty. The error is an *ItemError.
func (e *Entity) UniqueValue(m *Match, img change.Image) (string, bool, error) {
	if e.Unique == "" {
		return "", false, nil
	}
	return e.uniqueText(e.unique, e, m, img)
}

// lookup gives an expression the item's attributes and, where there is no
// attribute of the name, the variables of its key.
func (e *Entity) lookup(m *Match, img change.Image) expr.Lookup {
	return func(name string) change.Value { return e.Value(name, m, img) }
}

// Value looks an attribute up on an item, or, where there is none of that name, a
// variable of the item's key. The name of an element is the element's alone.
func (e *Entity) Value(name string, m *Match, img change.Image) change.Value {
	if m.element != nil && m.element.name == name {
		return m.element.value
	}
	if img != nil {
		if value := img.Lookup(name); value.Kind() != change.KindAbsent {
			return value
		}
	}
	if slot := slices.Index(e.shape.Variables, name); slot >= 0 {
		if e.shape.Formats[slot].Width > 0 {
			return change.Number(m.vars[slot])
		}
		return change.String(m.vars[slot])
	}
	return change.Value{}
}

// ValueOf is Value for an item that may not have been matched.
func (e *Entity) ValueOf(name string, item change.Image) change.Value {
	m := Match{Entity: e}
	if !slices.Contains(e.shape.Variables, name) || !e.shape.Match(e.Table.KeyOf(item), &m.vars) {
		return item.Lookup(name)
	}
	return e.Value(name, &m, item)
}

// itemError turns an expression's error into an ItemError that names the entity and the key of the rule file; nil if there is none.
func itemError(e *Entity, field string, err error) error {
	if err == nil {
		return nil
	}
	bad, _ := errors.AsType[*expr.EvalError](err)
	return &ItemError{Code: bad.Code, Reason: fmt.Sprintf("%s of %s: %s", field, e.Name, bad.Reason)}
}
