package oracle

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/rules"
)

// tally says what one kind of rule makes of what its sources contribute to a group.
type tally struct {
	zeroCounts bool // a source that adds 0 contributes, and a target that shows 0 does not show nothing
	display    func(sum decimal.Decimal, members int64) change.Value
}

// tallies has the kinds by their words. It is the oracle's own: the engine has a list for itself.
var tallies = map[string]tally{
	"count": {display: theSum},
	"sum":   {display: theSum},
}

func tallyOf(rule *rules.Rule) tally {
	t, known := tallies[rule.Kind.Word()]
	if !known {
		panic("the oracle does not know what a rule of the kind " + rule.Kind.Word() + " displays")
	}
	return t
}

func theSum(sum decimal.Decimal, _ int64) change.Value { return change.Number(sum.String()) }
