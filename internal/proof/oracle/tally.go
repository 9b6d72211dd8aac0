package oracle

import (
	"math/big"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules"
)

// tally says what one kind of rule makes of what its sources contribute to a group.
type tally struct {
	zeroCounts bool // a source that adds 0 contributes
	display    func(sum decimal.Decimal, members int64) change.Value
}

// tallies has the kinds by their words. It is the oracle's own: the engine has a list for itself.
var tallies = map[string]tally{
	"count":   {display: theSum},
	"sum":     {display: theSum},
	"average": {display: theMean, zeroCounts: true},
}

func tallyOf(rule *rules.Rule) tally {
	t, known := tallies[rule.Kind.Word()]
	if !known {
		panic("the oracle does not know what a rule of the kind " + rule.Kind.Word() + " displays")
	}
	return t
}

// theMean works in whole numbers: it shares no rounding with the engine.
func theMean(sum decimal.Decimal, members int64) change.Value {
	if members == 0 {
		return change.Value{}
	}
	exact, _ := new(big.Rat).SetString(sum.String())
	return change.Number(nearest(exact.Quo(exact, new(big.Rat).SetInt64(members))))
}

// nearest is the number of 38 digits that is nearest to q, the even one of two.
func nearest(q *big.Rat) string {
	if q.Sign() == 0 {
		return "0"
	}
	size := new(big.Rat).Abs(q)
	last := smallest // digits behind the point, counted down to the highest digit of q
	for size.Cmp(powerOfTen(1-last)) >= 0 {
		last--
	}
	if size.Cmp(powerOfTen(-smallest)) >= 0 {
		last += decimal.DigitsMax - 1
	}
	units := new(big.Rat).Quo(size, powerOfTen(-last))
	whole, rest := new(big.Int).QuoRem(units.Num(), units.Denom(), new(big.Int))
	if half := rest.Lsh(rest, 1).Cmp(units.Denom()); half > 0 || half == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	rounded := new(big.Rat).Mul(new(big.Rat).SetInt(whole), powerOfTen(-last))
	if q.Sign() < 0 {
		rounded.Neg(rounded)
	}
	return plain(rounded.FloatString(max(last, 0)))
}

func powerOfTen(n int) *big.Rat {
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
	if n < 0 {
		power.Inv(power)
	}
	return power
}

func theSum(sum decimal.Decimal, _ int64) change.Value { return change.Number(sum.String()) }
