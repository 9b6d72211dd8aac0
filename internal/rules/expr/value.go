package expr

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// value is a value while it is computed with: a change.Value, or a number that
// was computed and has no text yet.
type value struct {
	change.Value
	number   decimal.Decimal
	computed bool
}

func wrap(v change.Value) value { return value{Value: v} }

func numberValue(n decimal.Decimal) value {
	return value{Value: change.Number(""), number: n, computed: true}
}

func truthValue(b bool) value { return wrap(change.Bool(b)) }

// plain returns the value as others see it.
func (v value) plain() change.Value {
	if v.computed {
		return change.Number(v.number.String())
	}
	return v.Value
}

// written returns the value as an item is to hold it: a number in plain digits.
func (v value) written() change.Value {
	if n, ok := v.decimal(); ok {
		return change.Number(n.String())
	}
	return v.plain()
}

func (v value) missing() bool { return v.Missing() }

// decimal returns the number; false if the value is none.
func (v value) decimal() (decimal.Decimal, bool) {
	if v.computed {
		return v.number, true
	}
	if v.Kind() != change.KindNumber {
		return decimal.Decimal{}, false
	}
	n, err := decimal.Parse(v.Text())
	return n, err == nil
}

// position returns a number as a position in a string or list; false if it is none, is
// negative or has a fraction. A position beyond every list is math.MaxInt32.
func (v value) position() (int, bool) {
	n, ok := v.decimal()
	if !ok || !n.IsInteger() || n.Cmp(decimal.New(0)) < 0 {
		return 0, false
	}
	i, ok := n.Int64()
	if !ok || i > math.MaxInt32 {
		return math.MaxInt32, true
	}
	return int(i), true
}

// shown describes the value in a reason.
func (v value) shown() string {
	switch v.Kind() {
	case change.KindString:
		return fmt.Sprintf("the string %q", clip(v.Text()))
	case change.KindNumber:
		return "the number " + clip(v.plain().Text())
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

// size is the number of code points of a string, of bytes of a binary value,
// of members of a list, map or set; false if the value has no size.
func (v value) size() (int, bool) {
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

// equal compares two values that are not missing, or are inside a list or map, where two NULLs are equal: values of
// different types are unequal, numbers compare as numbers however they are written.
func equal(v, w value) bool {
	if v.Kind() != w.Kind() {
		return false
	}
	if v.Kind() == change.KindNumber {
		a, okA := v.decimal()
		b, okB := w.decimal()
		if okA && okB {
			return a.Cmp(b) == 0
		}
		return v.plain().Text() == w.plain().Text()
	}
	inside := func(v, w change.Value) bool { return equal(wrap(v), wrap(w)) }
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
		if n, ok := wrap(member).decimal(); ok {
			texts[i] = n.String()
		}
	}
	slices.Sort(texts)
	return texts
}

// within reports whether a list or set has the member, or a map the field;
// the second result is false if the container is none of them.
func within(member, container value) (found, ok bool) {
	switch container.Kind() {
	case change.KindList, change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		if n, ok := member.decimal(); ok {
			member = numberValue(n) // read once, not once per member
		}
		return slices.ContainsFunc(container.List(), func(m change.Value) bool {
			return m.Kind() == member.Kind() && equal(member, wrap(m))
		}), true
	case change.KindMap:
		if member.Kind() != change.KindString {
			return false, true
		}
		f, found := container.Map()[member.Text()]
		return found && !f.Missing(), true
	}
	return false, false
}

// cut returns the part of a string (by code point), or of a list, from one
// position to before another, both held within its bounds; false if the value
// is neither.
func (v value) cut(from, to int) (value, bool) {
	switch v.Kind() {
	case change.KindString:
		text := v.Text()
		start := byteOffset(text, from)
		return wrap(change.String(text[start : start+byteOffset(text[start:], max(to-from, 0))])), true
	case change.KindList:
		to = min(to, len(v.List()))
		from = min(from, to)
		return wrap(change.List(v.List()[from:to])), true
	}
	return value{}, false
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
