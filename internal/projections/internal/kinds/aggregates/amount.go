package aggregates

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
)

// display is what a target shows of an amount.
func (f *Form) display(a audit.Amount) change.Value { return f.kind.display(a) }

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
func (f *Form) displayed(a audit.Amount) string { return f.shown(f.display(a)) }
