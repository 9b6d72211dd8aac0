package expr

import (
	"math"

	"github.com/dynamill/dynamill/change"
)

// field evaluates a.b: missing where the map or its field is.
func (m *machine) field(n *field) (value, error) {
	of, err := m.eval(n.of)
	if err != nil || of.missing() {
		return value{}, err
	}
	if of.Kind() != change.KindMap {
		return value{}, m.unfit(n.of.place(), of, "its field "+clip(n.name), "a map")
	}
	return wrap(of.Map()[n.name]), nil
}

// index evaluates a[i]: missing where the list ends before i.
func (m *machine) index(n *index) (value, error) {
	of, err := m.eval(n.of)
	if err != nil {
		return value{}, err
	}
	at, err := m.eval(n.at)
	if err != nil || of.missing() || at.missing() {
		return value{}, err
	}
	switch of.Kind() {
	case change.KindMap:
		if at.Kind() != change.KindString {
			return value{}, m.unfit(n.at.place(), at, "[ ] of a map", "a field's name")
		}
		return wrap(of.Map()[at.Text()]), nil
	case change.KindList:
		i, err := m.position(n.at, at)
		if err != nil || i >= len(of.List()) {
			return value{}, err
		}
		return wrap(of.List()[i]), nil
	}
	return value{}, m.unfit(n.of.place(), of, "[ ]", "a list or a map")
}

// slice evaluates a[from:to], with bounds beyond the end held at the end.
func (m *machine) slice(n *slice) (value, error) {
	of, err := m.eval(n.of)
	if err != nil {
		return value{}, err
	}
	from, okFrom, err := m.bound(n.from, 0)
	if err != nil {
		return value{}, err
	}
	to, okTo, err := m.bound(n.to, math.MaxInt32)
	if err != nil || of.missing() || !okFrom || !okTo {
		return value{}, err
	}
	part, ok := of.cut(from, to)
	if !ok {
		return value{}, m.unfit(n.of.place(), of, "[ : ]", "a string or a list")
	}
	return part, nil
}

// bound evaluates one bound of a slice; false if it is missing.
func (m *machine) bound(n node, otherwise int) (int, bool, error) {
	if n == nil {
		return otherwise, true, nil
	}
	v, err := m.eval(n)
	if err != nil || v.missing() {
		return 0, false, err
	}
	i, err := m.position(n, v)
	return i, err == nil, err
}

func (m *machine) position(n node, v value) (int, error) {
	if x, ok := v.decimal(); ok {
		if i, ok := asPosition(x); ok {
			return i, nil
		}
	}
	return 0, m.unfit(n.place(), v, "a position", "a whole number from 0 up")
}

// reach evaluates has's argument: a step that the value does not allow leads
// to nothing, so that has tells items of different shapes apart. Only what is
// computed inside brackets can fail.
func (m *machine) reach(n node) (value, error) {
	switch n := n.(type) {
	case *field:
		of, err := m.reach(n.of)
		if err != nil {
			return value{}, err
		}
		return wrap(of.Map()[n.name]), nil
	case *index:
		of, err := m.reach(n.of)
		if err != nil {
			return value{}, err
		}
		at, err := m.eval(n.at)
		if err != nil {
			return value{}, err
		}
		if of.Kind() == change.KindMap && at.Kind() == change.KindString {
			return wrap(of.Map()[at.Text()]), nil
		}
		if x, ok := at.decimal(); ok && of.Kind() == change.KindList {
			if i, ok := asPosition(x); ok && i < len(of.List()) {
				return wrap(of.List()[i]), nil
			}
		}
		return value{}, nil
	}
	return m.eval(n)
}
