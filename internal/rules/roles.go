package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/tally"
)

// Adder is the Form of a rule that adds up amounts of its sources, and keeps what each of them adds.
type Adder interface {
	Contributor
	Spreader
}

// Contributor is the Form of a rule of which each source adds an amount.
type Contributor interface {
	// Contribution says what a source item adds. A nil error and false mean that it
	// adds nothing. The error is an *ItemError.
	Contribution(m *Match, img change.Image) (Contribution, bool, error)
}

// Spreader is the Form of a rule of which several sources make together what a target shows.
type Spreader interface {
	// Suffixes is the number of suffixes over which the writes to one group are spread.
	Suffixes() int
}

// Folder is the Form of a rule that keeps nothing of each source: it adds up what records change, by their positions in the stream.
type Folder interface {
	// Amounts are what a source item adds, by group. A source that adds nothing has none. The error is an *ItemError.
	Amounts(m *Match, img change.Image) (map[string]tally.Amount, error)
}

// Folds reports whether the rule adds up what records change.
func (r *Rule) Folds() bool {
	_, folds := r.Form.(Folder)
	return folds
}

// KindName is the rule's kind as lists of rules name it.
func (r *Rule) KindName() string { return declared.NameOf(r.Kind) }

// Folded are the names of the rules that add up what records change, in the file's order.
func (s *Set) Folded() (names []string) {
	for _, r := range s.Rules {
		if r.Folds() {
			names = append(names, r.Name)
		}
	}
	return names
}

// FoldedText names these rules for people, with the key that makes each what it is; "" if there are none.
func (s *Set) FoldedText() string {
	var all []string
	for _, r := range s.Rules {
		if r.Folds() {
			all = append(all, fmt.Sprintf("%s (`%s: true`)", r.Name, r.Kind.Traits().Variant))
		}
	}
	return strings.Join(all, ", ")
}

// SuffixesMax is the most suffixes of one rule. A roll-up reads every accumulator; a partition takes 1000 write units a second.
const SuffixesMax = 256

// Suffixes is the number of suffixes over which the writes to one group of the rule
// are spread; 0 of a rule that adds nothing up.
func (r *Rule) Suffixes() int {
	if spreader, ok := r.Form.(Spreader); ok {
		return spreader.Suffixes()
	}
	return 0
}

// GroupOf names the group that a target item displays; false if the rule is ByUnique and the item has no Unique value.
func (r *Rule) GroupOf(m *Match, img change.Image) (string, bool, error) {
	if r.ByUnique {
		return r.Target.UniqueValue(m, img)
	}
	return m.Key().String(), true, nil
}

// Contribution is what one source item adds to one group of a rule.
type Contribution struct {
	Group  string // as JoinedText writes it
	Per    string // the value that it counts under, of a rule with `per`
	Amount decimal.Decimal
}

// Maker is the Form of a rule that makes its target's items.
type Maker interface {
	// Item says which item a source item asks for, and what it holds. A nil error
	// and false mean none. The error is an *ItemError.
	Item(m *Match, img change.Image) (MadeItem, bool, error)
}

// MadeItem is the content of one item that a rule makes.
type MadeItem struct {
	Key        change.Key
	Attributes map[string]change.Value // to be set; an attribute of Rule.Writes that is not here is to be removed
}

// Giver is the Form of a rule that gives the children of a parent attributes of it.
type Giver interface {
	// Given returns a value for each of Rule.Attributes, absent where the children's
	// attribute must be absent. A nil parent is one that does not exist.
	Given(parent change.Image) []change.Value
}

// Nester is the Form of a rule AlongItself, which writes on each item what the items on its way to the root give together.
type Nester interface {
	// Nested are the attribute that the rule reads of each item, and the two that it writes: what it makes of those texts, and of the
	// items' ids. What the rule does not write is "".
	Nested() (name, path, lineage string)
}

// Setter is the Form of a rule that writes on an item what it works out from this item alone.
type Setter interface {
	// Values returns a value for each of Rule.Attributes, absent where the item must not have the
	// attribute. The error is an *ItemError: then it must have none of them.
	Values(m *Match, img change.Image) ([]change.Value, error)
}

// Wanted reports whether the rule's where holds for a source item. The error is an *ItemError.
func (r *Rule) Wanted(m *Match, img change.Image) (bool, error) {
	if r.where == nil {
		return true, nil
	}
	ok, err := r.where.Condition(r.Source.lookup(m, img))
	return ok, itemError(r.Source, "where", err)
}

// Worked evaluates the template of an attribute on a source item. false without an error
// means that something is missing. The error is an *ItemError.
func (r *Rule) Worked(a Attribute, m *Match, img change.Image) (change.Value, bool, error) {
	v, ok, err := a.Template.Value(r.Source.lookup(m, img))
	return v, ok, itemError(r.Source, a.As, err)
}

// expression is what stands under one of the keys in Traits.Expressions; nil if nothing does, or the kind has no such key.
func (r *Rule) expression(key string) *expr.Program {
	i := slices.IndexFunc(r.Kind.Traits().Expressions, func(e Expression) bool { return e.Key == key })
	if i < 0 {
		return nil
	}
	return r.expressions[i]
}

// WhereText is the text of the rule's where; "" if it has none.
func (r *Rule) WhereText() string { return programText(r.where) }

// ExpressionText is the text of the expression under a key of the rule's kind; "" if nothing stands there.
func (r *Rule) ExpressionText(key string) string { return programText(r.expression(key)) }

func programText(p *expr.Program) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(p.String())
}

// Amount evaluates the expression under a key of the rule on a source item. false
// without an error means that an attribute is missing. The error is an *ItemError.
func (r *Rule) Amount(key string, m *Match, img change.Image) (decimal.Decimal, bool, error) {
	amount, ok, err := r.expression(key).Amount(r.Source.lookup(m, img))
	return amount, ok, itemError(r.Source, key, err)
}

// Ordered evaluates the expression under a key of the rule on a source item, which must give a number or a text. false without an error
// means that there is no value, or an empty one. The error is an *ItemError.
func (r *Rule) Ordered(key string, m *Match, img change.Image) (change.Value, bool, error) {
	v, ok, err := r.expression(key).Value(r.Source.lookup(m, img))
	if err != nil || !ok {
		return change.Value{}, false, itemError(r.Source, key, err)
	}
	return ordered(key+" of "+r.Source.Name, v)
}

// OrderOf is the value of a source item by which the items of one target are ordered. false without an error means that the item has
// none. The error is an *ItemError.
func (r *Rule) OrderOf(m *Match, img change.Image) (change.Value, bool, error) {
	return ordered(r.Source.Name+"."+r.Order, r.Source.Value(r.Order, m, img))
}

// OrderBytesMax bounds a text by which items are ordered: it is a part of a key.
const OrderBytesMax = 256

// ordered refuses a value that has no order.
func ordered(what string, v change.Value) (change.Value, bool, error) {
	switch v.Kind() {
	case change.KindAbsent, change.KindNull:
		return change.Value{}, false, nil
	case change.KindNumber:
		number, err := decimal.Parse(v.Text())
		if err != nil {
			return change.Value{}, false, &ItemError{Code: "value.type", Reason: fmt.Sprintf("%s: %v", what, err)}
		}
		return change.Number(number.String()), true, nil
	case change.KindString:
		if len(v.Text()) > OrderBytesMax {
			return change.Value{}, false, &ItemError{Code: "order.too_long", Reason: fmt.Sprintf(
				"%s has %d bytes: a text by which items are ordered has at most %d", what, len(v.Text()), OrderBytesMax)}
		}
		return v, v.Text() != "", nil
	}
	return change.Value{}, false, &ItemError{Code: "value.type", Reason: fmt.Sprintf(
		"%s is of type %s: only numbers and texts have an order", what, v.Kind())}
}

// Bounds of `per`: of a target of one rule, and of the text of a value.
const (
	PerValuesMax = 100 // a target with more shows none
	PerBytesMax  = 256
)

// HasPer reports whether the rule adds up apart what items with different values of something add.
func (r *Rule) HasPer() bool { return r.Per.Ours != "" }

// PerText is the text of the value of a source item by which a rule with `per` tells its sources apart; false if it is absent,
// null or empty. The error is an *ItemError.
func (r *Rule) PerText(m *Match, img change.Image) (string, bool, error) {
	text, ok, err := r.Source.text("per", r.per, m, img)
	if err != nil || !ok {
		return "", false, err
	}
	if len(text) > PerBytesMax {
		return "", false, &ItemError{Code: "per.too_long", Reason: fmt.Sprintf(
			"%s has %d bytes: the text of a value of `per` has at most %d", r.Source.refName(r.per), len(text), PerBytesMax)}
	}
	return text, true, nil
}
