// Package operand has the values that expressions compute with: their numbers, sizes, parts and equality. It knows
// no syntax. It imports change, internal/decimal and internal/printable only.
package operand

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/printable"
)

// Value is a value while it is computed with: a change.Value, or a number that
// was computed and has no text yet.
type Value struct {
	change.Value
	number   decimal.Decimal
	computed bool
}

// Of makes an operand of a value as items hold it.
func Of(v change.Value) Value { return Value{Value: v} }

// Number makes an operand of a number.
func Number(n decimal.Decimal) Value {
	return Value{Value: change.Number(""), number: n, computed: true}
}

// Bool makes an operand of what a condition gives.
func Bool(b bool) Value { return Of(change.Bool(b)) }

// Plain returns the value as others see it.
func (v Value) Plain() change.Value {
	if v.computed {
		return change.Number(v.number.String())
	}
	return v.Value
}

// Written returns the value as an item is to hold it: a number in plain digits.
func (v Value) Written() change.Value {
	if n, ok := v.Decimal(); ok {
		return change.Number(n.String())
	}
	return v.Plain()
}

// Decimal returns the number; false if the value is none.
func (v Value) Decimal() (decimal.Decimal, bool) {
	if v.computed {
		return v.number, true
	}
	if v.Kind() != change.KindNumber {
		return decimal.Decimal{}, false
	}
	n, err := decimal.Parse(v.Text())
	return n, err == nil
}

// Position returns a number as a position in a string or list; false if it is none, is
// negative or has a fraction. A position beyond every list is math.MaxInt32.
func (v Value) Position() (int, bool) {
	n, ok := v.Decimal()
	if !ok || !n.IsInteger() || n.Cmp(decimal.New(0)) < 0 {
		return 0, false
	}
	i, ok := n.Int64()
	if !ok || i > math.MaxInt32 {
		return math.MaxInt32, true
	}
	return int(i), true
}

// Shown describes the value in a reason.
func (v Value) Shown() string {
	switch v.Kind() {
	case change.KindString:
		return fmt.Sprintf("the string %q", printable.Shortened(v.Text()))
	case change.KindNumber:
		return "the number " + printable.Shortened(v.Plain().Text())
	case change.KindBool:
		return fmt.Sprint(v.Bool())
	case change.KindBinary:
		return "a binary value"
	case change.KindList:
		return "a list"
	case change.KindMap:
		return "a map"
	case change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		return "a set"
	}
	return "missing"
}

// Size is the number of code points of a string, of bytes of a binary value,
// of members of a list, map or set; false if the value has no size.
func (v Value) Size() (int, bool) {
	switch v.Kind() {
	case change.KindString:
		return utf8.RuneCountInString(v.Text()), true
	case change.KindBinary:
		return len(v.Text()), true
	case change.KindList, change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		return len(v.List()), true
	case change.KindMap:
		return len(v.Map()), true
	}
	return 0, false
}

// Equal compares two values that are not missing, or are inside a list or map, where two NULLs are equal: values of
// different types are unequal, numbers compare as numbers however they are written.
func (v Value) Equal(w Value) bool {
	if v.Kind() != w.Kind() {
		return false
	}
	if v.Kind() == change.KindNumber {
		a, okA := v.Decimal()
		b, okB := w.Decimal()
		if okA && okB {
			return a.Cmp(b) == 0
		}
		return v.Plain().Text() == w.Plain().Text()
	}
	inside := func(v, w change.Value) bool { return Of(v).Equal(Of(w)) }
	switch v.Kind() {
	case change.KindList:
		return slices.EqualFunc(v.List(), w.List(), inside)
	case change.KindMap:
		return maps.EqualFunc(v.Map(), w.Map(), inside)
	case change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		return slices.Equal(members(v.Value), members(w.Value))
	}
	return v.Text() == w.Text() && v.Bool() == w.Bool()
}

// members returns a set's members in one form and order.
func members(set change.Value) []string {
	texts := make([]string, len(set.List()))
	for i, member := range set.List() {
		texts[i] = member.Text()
		if n, ok := Of(member).Decimal(); ok {
			texts[i] = n.String()
		}
	}
	slices.Sort(texts)
	return texts
}

// In reports whether a list or set has the member, or a map the field;
// the second result is false if the container is none of them.
func (v Value) In(container Value) (found, ok bool) {
	switch container.Kind() {
	case change.KindList, change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		if n, ok := v.Decimal(); ok {
			v = Number(n) // read once, not once per member
		}
		return slices.ContainsFunc(container.List(), func(m change.Value) bool {
			return m.Kind() == v.Kind() && v.Equal(Of(m))
		}), true
	case change.KindMap:
		if v.Kind() != change.KindString {
			return false, true
		}
		f, found := container.Map()[v.Text()]
		return found && !f.Missing(), true
	}
	return false, false
}

// Part returns a map's field or a list's element; false if there can be none.
func (v Value) Part(at Value) (Value, bool) {
	if v.Kind() == change.KindMap && at.Kind() == change.KindString {
		return Of(v.Map()[at.Text()]), true
	}
	i, ok := at.Position()
	if !ok || v.Kind() != change.KindList {
		return Value{}, false
	}
	if i >= len(v.List()) {
		return Value{}, true
	}
	return Of(v.List()[i]), true
}

// Cut returns the part of a string (by code point), or of a list, from one
// position to before another, both held within its bounds; false if the value
// is neither.
func (v Value) Cut(from, to int) (Value, bool) {
	switch v.Kind() {
	case change.KindString:
		text := v.Text()
		start := byteOffset(text, from)
		return Of(change.String(text[start : start+byteOffset(text[start:], max(to-from, 0))])), true
	case change.KindList:
		to = min(to, len(v.List()))
		from = min(from, to)
		return Of(change.List(v.List()[from:to])), true
	}
	return Value{}, false
}

// byteOffset returns where the n-th code point of a text begins, or its end.
func byteOffset(text string, n int) int {
	for offset := range text {
		if n--; n < 0 {
			return offset
		}
	}
	return len(text)
}
