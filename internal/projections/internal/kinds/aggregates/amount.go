package aggregates

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
)

// Amount is what several sources add up to.
type Amount struct {
	Value   decimal.Decimal
	Members int64 // sources that contribute
}

// String is the amount as an audit adds it up.
func (a Amount) String() string { return audit.AmountText(a.Value, a.Members) }

// parseAmount reads an amount that an audit added up, and what was counted beside it. It reports
// false if no DynamoDB number tells.
func parseAmount(text string) (a Amount, beside int64, ok bool) {
	value, counts, _ := strings.Cut(text, "/")
	members, other, _ := strings.Cut(counts, "/")
	v, err := decimal.Parse(value)
	return Amount{v, countIn(members)}, countIn(other), err == nil
}

// countIn is a count in what an audit added up; 0 if there is none.
func countIn(text string) int64 {
	d, err := decimal.Parse(text)
	if err != nil {
		return 0
	}
	n, _ := d.Int64()
	return n
}

// lacks is the amount that is missing from have to be a. It reports false where no DynamoDB number tells.
func (a Amount) lacks(have Amount) (Amount, bool) {
	v, err := a.Value.Sub(have.Value)
	return Amount{v, a.Members - have.Members}, err == nil
}

// isNothing reports whether nothing is added.
func (a Amount) isNothing() bool { return a.Value.IsZero() && a.Members == 0 }

// equals reports whether two amounts are the same.
func (a Amount) equals(b Amount) bool { return a.Value.Cmp(b.Value) == 0 && a.Members == b.Members }

// display is what a target shows of an amount.
func (f *Form) display(a Amount) change.Value { return f.kind.display(a) }

// shown is what an attribute displays, as displays are compared; "" for nothing. If a kind's
// sources that add 0 do not contribute, 0 is nothing, too.
func (f *Form) shown(v change.Value) string {
	if v.Kind() == change.KindAbsent {
		return ""
	}
	if v.Kind() != change.KindNumber {
		return v.Kind().String() + " " + v.Text()
	}
	d, err := decimal.Parse(v.Text())
	if err != nil {
		return v.Text()
	}
	if d.IsZero() && !f.kind.zeroCounts {
		return ""
	}
	return d.String()
}

// displayed is what an attribute displays of an amount, as displays are compared.
func (f *Form) displayed(a Amount) string { return f.shown(f.display(a)) }
