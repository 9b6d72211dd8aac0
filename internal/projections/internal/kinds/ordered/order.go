package ordered

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
)

// The order of a member is a text that sorts as the value does by which members are ordered: numbers before texts.
const (
	numberMark = "n"
	textMark   = "s"
)

// The order of a number: behind numberMark the sign, then where the decimal point stands, then the digits. Those of a negative number are
// written as what they lack to 9, so that they sort the other way round, and end in a character that sorts behind all digits.
const (
	negative    = '-'
	zero        = "0"
	positive    = '1'
	negativeEnd = ":"
	pointMiddle = 500 // above every place of the decimal point, and below 1000 less that
)

// orderOf is the order of a value, which is a number in plain digits or a text.
func orderOf(v change.Value) string {
	if v.Kind() != change.KindNumber {
		return textMark + state.EscapeOrder(v.Text())
	}
	text, isNegative := strings.CutPrefix(v.Text(), "-")
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	point := len(whole) - (len(whole+fraction) - len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return numberMark + zero
	}
	order := fmt.Sprintf("%03d%s", pointMiddle+point, digits)
	if !isNegative {
		return numberMark + string(positive) + order
	}
	var b strings.Builder
	for i := range len(order) {
		b.WriteByte('0' + '9' - order[i])
	}
	return numberMark + string(negative) + b.String() + negativeEnd
}

// isOrder reports whether a text begins as an order does.
func isOrder(text string) bool {
	return strings.HasPrefix(text, numberMark) || strings.HasPrefix(text, textMark)
}
