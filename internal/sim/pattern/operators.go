package pattern

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// parseLeaf reads the array of what one field may be.
func parseLeaf(elements []any, at string) ([]matcher, error) {
	if len(elements) == 0 {
		return nil, fmt.Errorf("%s: an empty array matches nothing", place(at))
	}
	var found []matcher
	for _, element := range elements {
		var m matcher
		var err error
		switch element := element.(type) {
		case map[string]any:
			m, err = parseOperator(element, at)
		case []any:
			err = fmt.Errorf("%s: an array within an array", place(at))
		default:
			m = equals(element)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

// equals matches the very value: texts character by character, and numbers as
// they are written, so that 300 is not 300.0 (Lambda developer guide, "Filter
// rule syntax").
func equals(want any) matcher {
	return func(value any, there bool) bool { return there && value == want }
}

func parseOperator(operator map[string]any, at string) (matcher, error) {
	if len(operator) != 1 {
		return nil, fmt.Errorf("%s: an operator is an object with one field", place(at))
	}
	for name, operand := range operator {
		switch name {
		case "prefix", "suffix", "equals-ignore-case":
			test, err := textTest(name, operand, at)
			return textMatcher(test), err
		case "exists":
			want, ok := operand.(bool)
			if !ok {
				return nil, fmt.Errorf("%s: exists is true or false", place(at))
			}
			return func(_ any, there bool) bool { return there == want }, nil
		case "anything-but":
			return anythingBut(operand, at)
		case "numeric":
			return numeric(operand, at)
		default:
			return nil, fmt.Errorf("%s: there is no operator %q", place(at), name)
		}
	}
	panic("unreachable: the object has one field")
}

func textMatcher(test func(string) bool) matcher {
	return func(value any, there bool) bool {
		text, ok := value.(string)
		return there && ok && test(text)
	}
}

// textTest reads the operand of an operator on texts. A prefix or suffix may ignore case, too.
func textTest(name string, operand any, at string) (func(string) bool, error) {
	fold := func(s string) string { return s }
	if inner, ok := operand.(map[string]any); ok && name != "equals-ignore-case" && len(inner) == 1 {
		operand, fold = inner["equals-ignore-case"], strings.ToLower
	}
	want, ok := operand.(string)
	if !ok {
		return nil, fmt.Errorf("%s: %s wants a text", place(at), name)
	}
	want = fold(want)
	switch name {
	case "prefix":
		return func(s string) bool { return strings.HasPrefix(fold(s), want) }, nil
	case "suffix":
		return func(s string) bool { return strings.HasSuffix(fold(s), want) }, nil
	}
	return func(s string) bool { return strings.EqualFold(s, want) }, nil
}

// anythingBut matches every value but those of one kind: texts, numbers, or what an operator on texts takes.
func anythingBut(operand any, at string) (matcher, error) {
	if operator, ok := operand.(map[string]any); ok {
		for name := range operator {
			if len(operator) != 1 || name != "prefix" && name != "suffix" && name != "equals-ignore-case" {
				return nil, fmt.Errorf("%s: anything-but takes prefix, suffix or equals-ignore-case", place(at))
			}
		}
		inner, err := parseOperator(operator, at)
		if err != nil {
			return nil, err
		}
		return func(value any, there bool) bool { return there && !inner(value, there) }, nil
	}
	list, ok := operand.([]any)
	if !ok {
		list = []any{operand}
	}
	texts, numbers := 0, 0
	for _, one := range list {
		switch one.(type) {
		case string:
			texts++
		case json.Number:
			numbers++
		}
	}
	if len(list) == 0 || texts != len(list) && numbers != len(list) {
		return nil, fmt.Errorf("%s: anything-but wants texts only or numbers only", place(at))
	}
	return func(value any, there bool) bool {
		for _, one := range list {
			if value == one {
				return false
			}
		}
		return there
	}, nil
}

// numericMax bounds what numeric can compare (event-ruler's README, "Numeric matching").
var numericMax = big.NewRat(5_000_000_000, 1)

// numeric matches JSON numbers within bounds: ["=", 1], [">", 0, "<=", 5].
func numeric(operand any, at string) (matcher, error) {
	list, ok := operand.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return nil, fmt.Errorf("%s: numeric wants one comparison or two", place(at))
	}
	var tests []func(*big.Rat) bool
	for i := 0; i < len(list); i += 2 {
		comparison, _ := list[i].(string)
		bound, ok := numberOf(list[i+1])
		if !ok || new(big.Rat).Abs(bound).Cmp(numericMax) > 0 {
			return nil, fmt.Errorf("%s: numeric compares with numbers from -5e9 to 5e9", place(at))
		}
		holds := map[string]func(order int) bool{
			"=":  func(order int) bool { return order == 0 },
			"<":  func(order int) bool { return order < 0 },
			"<=": func(order int) bool { return order <= 0 },
			">":  func(order int) bool { return order > 0 },
			">=": func(order int) bool { return order >= 0 },
		}[comparison]
		if holds == nil || len(list) == 4 && comparison == "=" {
			return nil, fmt.Errorf("%s: numeric does not know the comparison %q here", place(at), comparison)
		}
		tests = append(tests, func(n *big.Rat) bool { return holds(n.Cmp(bound)) })
	}
	return func(value any, there bool) bool {
		n, ok := numberOf(value)
		if !there || !ok {
			return false
		}
		for _, test := range tests {
			if !test(n) {
				return false
			}
		}
		return true
	}, nil
}
