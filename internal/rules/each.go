package rules

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
)

// Each is the list of a source item of which a rule takes every element by itself, and the name of an element in the
// rule. Both are "" for a rule that takes its source items as a whole.
type Each struct{ List, As string }

// Given reports whether a rule takes elements.
func (e Each) Given() bool { return e.List != "" }

// String is what the rule file says under `each`.
func (e Each) String() string {
	if !e.Given() {
		return ""
	}
	return e.List + " as " + e.As
}

// JoinsByElement reports whether the element tells which target a source item belongs to. Otherwise all elements of one item
// belong to one target.
func (r *Rule) JoinsByElement() bool {
	return slices.ContainsFunc(r.Join.Refs(), func(of joins.Ref) bool { return of.Holds(r.Each.As) })
}

// ElementsMax is the most elements of one list for which a rule has effects.
const ElementsMax = 200

// element is one for which a rule takes a source item.
type element struct {
	name, text string
	value      change.Value
}

// ForEach calls take once for every element of the list of a rule with `each`, in the order of the elements' texts, and
// otherwise once, with no text. The match that it hands on has the element. ForEach ends with the first error. The errors
// of its own are *ItemErrors.
func (r *Rule) ForEach(m *Match, img change.Image, take func(text string, m *Match) error) error {
	if !r.Each.Given() {
		return take("", m)
	}
	elements, err := r.elements(img)
	if err != nil {
		return err
	}
	for _, el := range elements {
		of := m.With(el.name, el.text, el.value)
		if err := take(el.text, &of); err != nil {
			return err
		}
	}
	return nil
}

// ElementsBytesMax bounds what one item's elements do under all rules with `each`: the bytes of the targets' keys, each with the value of
// `per` and the amount that counts there, those that are alike once. The item's ledger entry names them, and those of its former
// elements while they are due: it has up to 400 KB (DynamoDB developer guide, "Service quotas").
const ElementsBytesMax = 128 << 10

// CheckElements refuses an item whose elements do too much under a rule with `each`. All such rules of an entity have the same share.
func (r *Rule) CheckElements(texts iter.Seq[string]) error {
	known, size, sharing := map[string]bool{}, 0, 0
	for text := range texts {
		if !known[text] {
			known[text], size = true, size+len(text)
		}
	}
	for _, other := range r.Source.Sources {
		if other.Each.Given() {
			sharing++
		}
	}
	if bytesMax := ElementsBytesMax / sharing; size > bytesMax {
		return &ItemError{Code: "each.too_large", Reason: fmt.Sprintf(
			"the keys of the targets of all elements of %s.%s, each with its amount, have %d bytes: at most %d are allowed",
			r.Source.Name, r.Each.List, size, bytesMax)}
	}
	return nil
}

// With is the item as a rule takes it for one element of a list, which has this name in the rule.
func (m *Match) With(name, text string, value change.Value) Match {
	of := *m
	of.element = &element{name, text, value}
	return of
}

// elements are those of the rule's list on an item that are neither empty nor NULL, one for each text, sorted by it. Of
// several elements of one text, the first one stands for all.
func (r *Rule) elements(img change.Image) ([]element, error) {
	list := img.Lookup(r.Each.List)
	name := r.Source.Name + "." + r.Each.List
	switch list.Kind() {
	case change.KindAbsent, change.KindNull:
		return nil, nil
	case change.KindList, change.KindStringSet, change.KindNumberSet:
	default:
		return nil, &ItemError{Code: "value.type", Reason: fmt.Sprintf(
			"%s is of type %s: `each` takes a list, a set of strings or a set of numbers", name, list.Kind())}
	}
	var found []element
	known := map[string]bool{}
	for _, v := range list.List() {
		text, err := elementText(name, v)
		if err != nil {
			return nil, err
		}
		if text == "" || known[text] {
			continue
		}
		known[text] = true
		found = append(found, element{r.Each.As, text, v})
	}
	if len(found) > ElementsMax {
		return nil, &ItemError{Code: "each.too_many", Reason: fmt.Sprintf(
			"%s has %d different elements: `each` takes at most %d", name, len(found), ElementsMax)}
	}
	slices.SortFunc(found, func(a, b element) int { return cmp.Compare(a.text, b.text) })
	return found, nil
}

// elementText is the text of an element of a list; "" for one that has no effect.
func elementText(list string, v change.Value) (string, error) {
	switch v.Kind() {
	case change.KindNull:
		return "", nil
	case change.KindString:
		return v.Text(), nil
	case change.KindNumber:
		number, err := decimal.Parse(v.Text())
		if err != nil {
			return "", &ItemError{Code: "value.type", Reason: fmt.Sprintf("an element of %s: %v", list, err)}
		}
		return number.String(), nil
	}
	return "", &ItemError{Code: "value.type", Reason: fmt.Sprintf(
		"%s has an element of type %s: `each` takes strings and numbers", list, v.Kind())}
}

// ElementAt is the text of the element for which the rule makes the item with this key, as the key has it: different
// keys, which are made of one source item, have different texts. It is "" for a rule without `each`.
func (r *Rule) ElementAt(target change.Key) string {
	var vars [VariablesMax]string
	if !r.Each.Given() || !r.Target.shape.Match(target, &vars) {
		return ""
	}
	var texts []string
	for slot, from := range r.Join.Fill {
		if from.Holds(r.Each.As) {
			texts = append(texts, vars[slot])
		}
	}
	return strings.Join(texts, "#")
}
