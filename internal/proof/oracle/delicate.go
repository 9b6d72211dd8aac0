package oracle

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

// span is the digits that a group's amounts need, all taken together: of whatever
// is added first, no part of the total needs more.
type span struct {
	first, last int // powers of ten of the highest and the lowest digit that is not 0
	amounts     int
}

func (s *span) add(d decimal.Decimal) {
	if d.IsZero() {
		return
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(d.String(), "-"), ".")
	digits := strings.TrimRight(whole+fraction, "0")
	first := len(whole) - 1 - (len(digits) - len(strings.TrimLeft(digits, "0")))
	last := len(whole) - len(digits)
	if s.amounts++; s.amounts == 1 {
		s.first, s.last = first, last
	}
	s.first, s.last = max(s.first, first), min(s.last, last)
}

// delicate reports whether it may depend on the order in which amounts come if
// they add up to a number that DynamoDB can hold.
func (s *span) delicate() bool {
	if s == nil || s.amounts < 2 {
		return false
	}
	carried := s.first + len(strconv.Itoa(s.amounts))
	return carried-s.last >= decimal.DigitsMax || carried > exponentMax
}

// exponentMax is the power of ten of the highest digit of the greatest numbers.
const exponentMax = 125

// Delicate reports whether the amounts of some group of a table are.
func Delicate(set *rules.Set, items []change.Item) bool {
	t := newTable(set, items)
	t.settle()
	return slices.ContainsFunc(set.Rules, func(rule *rules.Rule) bool {
		return rule.Displays() && slices.Contains(slices.Collect(maps.Values(t.delicate(rule))), true)
	})
}

// delicate finds the groups of a rule whose amounts are.
func (t *table) delicate(rule *rules.Rule) map[string]bool {
	spans := map[[2]string]*span{} // by group and value
	t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
		all, _ := shares(rule, m, item)
		for _, c := range all {
			of := [2]string{c.Group, c.Per}
			if spans[of] == nil {
				spans[of] = &span{}
			}
			spans[of].add(c.Amount)
		}
	})
	delicate := map[string]bool{}
	for of, s := range spans {
		delicate[of[0]] = delicate[of[0]] || s.delicate()
	}
	return delicate
}

// overflows reports whether a parked row tells that an amount, or a total, has no room among the others of its group.
func (a *audit) overflows(row change.Item) bool {
	rule, key := a.ids[row["rule"].Text()], change.ParseKey(row["item"].Text())
	if row["code"].Text() != "number.overflow" || rule == nil || !rule.Displays() {
		return false
	}
	item := a.items.actual[key]
	m, ok := a.set.Identify(key, item)
	if !ok {
		return false
	}
	delicate := a.items.delicate(rule)
	display := parksDisplay(row)
	if m.Entity == rule.Source && !display {
		all, _ := shares(rule, &m, item)
		if slices.ContainsFunc(all, func(c share) bool { return delicate[c.Group] }) {
			return true
		}
	}
	if m.Entity == rule.Target && display {
		group, ok, err := rule.GroupOf(&m, item)
		return ok && err == nil && delicate[group]
	}
	return false
}
