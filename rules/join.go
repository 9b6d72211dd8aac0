package rules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/rules/expr"
)

// ref is where a text comes from on an item: a variable of its key, or an
// attribute. Attribute "" with the slot noSlot means nowhere.
type ref struct {
	slot      int
	attribute string
}

const noSlot = -1

var nowhere = ref{slot: noSlot}

func (r ref) isVariable() bool { return r.slot != noSlot }
func (r ref) isAttribute() bool {
	return r.slot == noSlot && r.attribute != ""
}

// join says where the other side's key comes from on this side: a ref for each
// of its variables, by slot; or, if byUnique, one ref for its Unique value.
type join struct {
	fill     []ref
	unique   ref
	byUnique bool
}

// used lists the refs that the join reads.
func (j *join) used() []ref {
	if j.byUnique {
		return []ref{j.unique}
	}
	return j.fill
}

// refName names what r reads, for a sentence.
func (e *Entity) refName(r ref) string {
	if r.isVariable() {
		return e.Name + "." + e.shape.variables[r.slot]
	}
	return e.Name + "." + r.attribute
}

// text returns the text of a join value. false without an error means that the
// value is absent, null or empty.
func (e *Entity) text(r ref, m *Match, img change.Image) (string, bool, error) {
	if r.isVariable() {
		return m.vars[r.slot], true, nil
	}
	if img == nil {
		return "", false, nil
	}
	value := img.Lookup(r.attribute)
	switch value.Kind() {
	case change.KindAbsent, change.KindNull:
		return "", false, nil
	case change.KindString:
		return value.Text(), value.Text() != "", nil
	case change.KindBool:
		if value.Bool() {
			return "true", true, nil
		}
		return "false", true, nil
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

// otherKey renders the key of other that the item (m, img) of e refers to.
func (e *Entity) otherKey(j *join, other *Entity, m *Match, img change.Image) (change.Key, bool, error) {
	var vars [VariablesMax]string
	for slot, r := range j.fill {
		text, ok, err := e.text(r, m, img)
		if err != nil || !ok {
			return change.Key{}, false, err
		}
		vars[slot] = text
	}
	key, err := other.render(&vars, func(slot int) string { return e.refName(j.fill[slot]) })
	return key, err == nil, err
}

// uniqueText is text for a value that an item is known by.
func (e *Entity) uniqueText(r ref, m *Match, img change.Image) (string, bool, error) {
	text, ok, err := e.text(r, m, img)
	if ok && len(text) > partitionBytesMax {
		return "", false, &ItemError{Code: "key.too_long", Reason: fmt.Sprintf(
			"%s has %d bytes: an item can be known by at most %d", e.refName(r), len(text), partitionBytesMax)}
	}
	return text, ok, err
}

// UniqueValue returns the value of the entity's Unique on this item, as text;
// false if it is absent, null or empty. The error is an *ItemError.
func (e *Entity) UniqueValue(m *Match, img change.Image) (string, bool, error) {
	if e.Unique == "" {
		return "", false, nil
	}
	return e.uniqueText(e.unique, m, img)
}

// lookup gives an expression the item's attributes and, where there is no
// attribute of the name, the variables of its key.
func (e *Entity) lookup(m *Match, img change.Image) expr.Lookup {
	return func(name string) change.Value { return e.attribute(name, m, img) }
}

func (e *Entity) attribute(name string, m *Match, img change.Image) change.Value {
	if img != nil {
		if value := img.Lookup(name); value.Kind() != change.KindAbsent {
			return value
		}
	}
	if slot := indexOf(e.shape.variables, name); slot >= 0 {
		return change.String(m.vars[slot])
	}
	return change.Value{}
}

// itemError turns an expression's error into an ItemError that names the entity and the key of the rule file.
func itemError(e *Entity, field string, err error) error {
	var bad *expr.EvalError
	if errors.As(err, &bad) {
		return &ItemError{Code: bad.Code, Reason: fmt.Sprintf("%s of %s: %s", field, e.Name, bad.Reason)}
	}
	return &ItemError{Code: "value.type", Reason: strings.TrimSpace(fmt.Sprintf("%s of %s: %v", field, e.Name, err))}
}
