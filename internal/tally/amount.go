package tally

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/internal/decimal"
)

// beyond stands for a value that no DynamoDB number holds.
const beyond = "beyond"

// Amount is what several sources add up to.
type Amount struct {
	Value      decimal.Decimal
	Members    int64 // sources that contribute
	Operations int64 // changes of the rows that hold it
	Overflow   bool  // no DynamoDB number holds the value
	Parts      Parts // of a rule with `per`, whose value is 0
}

// IsEmpty reports whether nothing was added. An amount of sources that add up to 0 is not empty.
func (a Amount) IsEmpty() bool {
	return !a.Overflow && a.Value.IsZero() && a.Members == 0 && len(a.Parts.Values()) == 0
}

// String is the amount as facts hold it.
func (a Amount) String() string {
	value := a.Value.String()
	if a.Overflow {
		value = beyond
	}
	return fmt.Sprintf("%s/%d/%d%s", value, a.Members, a.Operations, a.Parts)
}

// Negative is what takes an amount back. It counts no operations.
func (a Amount) Negative() Amount {
	parts := maps.Clone(a.Parts)
	for per, p := range a.Parts {
		parts[per] = Share{p.Value.Neg(), -p.Members}
	}
	return Amount{Value: a.Value.Neg(), Members: -a.Members, Overflow: a.Overflow, Parts: parts}
}

// Parse reads what String wrote. What is missing is 0.
func Parse(text string) Amount {
	value, counts, _ := strings.Cut(text, "/")
	members, counts, _ := strings.Cut(counts, "/")
	operations, parts, _ := strings.Cut(counts, "/")
	a := Amount{Members: ParseCount(members), Operations: ParseCount(operations), Parts: parseParts(parts)}
	var err error
	a.Value, err = decimal.Parse(value)
	a.Overflow = err != nil
	return a
}

// ParseCount reads a count of a fact; 0 if there is none.
func ParseCount(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Add is the sum of two amounts.
func (a Amount) Add(b Amount) Amount { return Sum(a, b) }

// Sum is the exact sum of amounts: no number needs to hold what only some of them add up to.
func Sum(all ...Amount) (sum Amount) {
	values := make([]decimal.Decimal, len(all))
	var shares map[string][]decimal.Decimal
	for i, a := range all {
		values[i] = a.Value
		sum.Members, sum.Operations = sum.Members+a.Members, sum.Operations+a.Operations
		sum.Overflow = sum.Overflow || a.Overflow
		for per, p := range a.Parts {
			if sum.Parts == nil {
				sum.Parts, shares = Parts{}, map[string][]decimal.Decimal{}
			}
			shares[per] = append(shares[per], p.Value)
			sum.Parts[per] = Share{Members: sum.Parts[per].Members + p.Members}
		}
	}
	exactly := func(values []decimal.Decimal) decimal.Decimal {
		value, err := decimal.Sum(values...)
		sum.Overflow = sum.Overflow || err != nil
		return value
	}
	sum.Value = exactly(values)
	for per, values := range shares {
		sum.Parts[per] = Share{exactly(values), sum.Parts[per].Members}
	}
	return sum
}

// AddUp is an amount with others added to it, each as String wrote it. It takes time for the length of all of them.
func AddUp(sum string, more []string) string {
	all := []Amount{Parse(sum)}
	for _, text := range more {
		all = append(all, Parse(text))
	}
	return Sum(all...).String()
}

// Lacks returns a minus have: what must be added to have to reach a. It counts no operations.
func (a Amount) Lacks(have Amount) Amount {
	a.Operations = 0
	return Sum(a, have.Negative())
}

// Differences returns what a change from some amounts to others adds, by group. A group to which nothing changes has none; one to which
// different amounts change by 0 has an empty one.
func Differences(before, after map[string]Amount) map[string]Amount {
	var all map[string]Amount
	note := func(group string) {
		a, b := after[group], before[group]
		if a.Equals(b) {
			return
		}
		if all == nil {
			all = map[string]Amount{}
		}
		all[group] = a.Lacks(b)
	}
	for group := range before {
		note(group)
	}
	for group := range after {
		note(group)
	}
	return all
}

// Equals reports whether two amounts are the same, however many operations made them.
func (a Amount) Equals(b Amount) bool {
	return a.Overflow == b.Overflow && a.Value.Cmp(b.Value) == 0 && a.Members == b.Members && a.Parts.String() == b.Parts.String()
}
