// Package pattern evaluates the filter patterns of Lambda's event source
// mappings: it says whether a record passes, as AWS documents it, so that
// filters can be tested without AWS. It imports the standard library only.
//
// The language (Lambda developer guide, "Control which events Lambda sends to
// your function"; EventBridge user guide, "Comparison operators"; event-ruler's
// README): a pattern is a JSON object of the shape of the events. Every field
// that it names must match (and); a field's value is an array, of which one
// element must match (or). An event's array matches if one of its elements does.
package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
)

// Pattern is one filter pattern.
type Pattern struct{ root object }

// object is a set of fields, all of which must match, and of alternatives, one of each list of which must.
type object struct {
	fields map[string]any // object or []matcher
	either [][]object     // $or
}

// matcher judges one leaf of an event. A field that is not there is no leaf:
// value is nil and there is false.
type matcher func(value any, there bool) bool

// Parse reads a pattern. The error says what AWS would refuse when the mapping
// is created.
func Parse(src []byte) (*Pattern, error) {
	value, err := decode(src)
	if err != nil {
		return nil, fmt.Errorf("a pattern must be JSON: %w", err)
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("a pattern must be a JSON object")
	}
	root, err := parseObject(fields, "")
	if err != nil {
		return nil, err
	}
	return &Pattern{root}, nil
}

// Match reports whether an event, a JSON object, passes.
func (p *Pattern) Match(event []byte) (bool, error) {
	value, err := decode(event)
	if err != nil {
		return false, fmt.Errorf("an event must be JSON: %w", err)
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return false, errors.New("an event must be a JSON object")
	}
	return p.root.match(fields), nil
}

// decode reads one JSON value and keeps numbers as they are written.
func decode(src []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return value, nil
}

func parseObject(fields map[string]any, at string) (object, error) {
	o := object{fields: map[string]any{}}
	if len(fields) == 0 {
		return o, fmt.Errorf("%s: an empty object matches nothing", place(at))
	}
	for name, value := range fields {
		here := at + "." + name
		if alternatives, ok := orOf(name, value); ok {
			var either []object
			for _, a := range alternatives {
				one, err := parseObject(a, here)
				if err != nil {
					return o, err
				}
				either = append(either, one)
			}
			o.either = append(o.either, either)
			continue
		}
		var err error
		switch value := value.(type) {
		case map[string]any:
			o.fields[name], err = parseObject(value, here)
		case []any:
			o.fields[name], err = parseLeaf(value, here)
		default:
			err = fmt.Errorf("%s: a field's value must be an object or an array", place(here))
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func place(at string) string { return "pattern" + at }

// reserved are the words that make an element of $or no alternative (event-ruler's README, "The $or Primitive").
var reserved = []string{"exactly", "prefix", "suffix", "equals-ignore-case", "anything-but", "wildcard", "numeric", "cidr", "exists"}

// orOf returns the alternatives of a $or: two objects or more, without operators for field names.
func orOf(name string, value any) ([]map[string]any, bool) {
	list, ok := value.([]any)
	if name != "$or" || !ok || len(list) < 2 {
		return nil, false
	}
	var found []map[string]any
	for _, element := range list {
		fields, ok := element.(map[string]any)
		if !ok || len(fields) == 0 {
			return nil, false
		}
		for field := range fields {
			if slices.Contains(reserved, field) {
				return nil, false
			}
		}
		found = append(found, fields)
	}
	return found, true
}

func (o object) match(event map[string]any) bool {
	for name, want := range o.fields {
		value, there := event[name]
		switch want := want.(type) {
		case object:
			inner, ok := value.(map[string]any)
			if !ok {
				inner = nil // fields below what is not there are not there either: `exists: false` holds
			}
			if !want.match(inner) {
				return false
			}
		case []matcher:
			if !matchLeaf(want, value, there) {
				return false
			}
		}
	}
	for _, either := range o.either {
		if !slices.ContainsFunc(either, func(one object) bool { return one.match(event) }) {
			return false
		}
	}
	return true
}

func matchLeaf(wanted []matcher, value any, there bool) bool {
	switch value := value.(type) {
	case map[string]any: // not a leaf, so that `exists: false` holds
		return one(wanted, nil, false)
	case []any:
		return slices.ContainsFunc(value, func(element any) bool { return matchLeaf(wanted, element, true) })
	}
	return one(wanted, value, there)
}

func one(wanted []matcher, value any, there bool) bool {
	return slices.ContainsFunc(wanted, func(m matcher) bool { return m(value, there) })
}

// numberOf returns a JSON number.
func numberOf(value any) (*big.Rat, bool) {
	text, ok := value.(json.Number)
	if !ok || len(text) > 40 || strings.ContainsAny(string(text), "eE") && len(text) > 12 {
		return nil, false
	}
	return new(big.Rat).SetString(string(text))
}
