package audit

import (
	"math"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// Beyond stands for a sum that no DynamoDB number holds.
const Beyond = "beyond"

// AmountText is an amount as AddAmounts adds it up: the value, and how many sources contribute.
func AmountText(value decimal.Decimal, members int64) string {
	return value.String() + "/" + strconv.FormatInt(members, 10)
}

// AddAmounts adds up two amounts. Each is a list of decimals with / between them; one that is
// missing is 0. In the place of a sum that no DynamoDB number holds is Beyond.
func AddAmounts(x, y string) string {
	x, xs, xMore := strings.Cut(x, "/")
	y, ys, yMore := strings.Cut(y, "/")
	sum := addDecimals(x, y)
	switch {
	case xMore && yMore:
		return sum + "/" + AddAmounts(xs, ys)
	case xMore || yMore:
		return sum + "/" + xs + ys
	}
	return sum
}

func addDecimals(x, y string) string {
	a, err := decimal.Parse(x)
	b, err2 := decimal.Parse(y)
	if err != nil || err2 != nil {
		return Beyond
	}
	sum, err := a.Add(b)
	if err != nil {
		return Beyond
	}
	return sum.String()
}

// Contributions are what a row of the ledger adds to aggregates.
func Contributions(row change.Item, emit func(drift.Amount)) {
	if !strings.HasPrefix(row["pk"].Text(), "item/") {
		return
	}
	for name, v := range row["effects"].Map() {
		if f, err := plan.ParseEffect(v.Text()); err == nil && f.Kind == plan.Contribution {
			emit(drift.Amount{Rule: plan.ParseEffectKey(name).ID, Group: f.Group, Value: AmountText(f.Amount, 1)})
		}
	}
}

// Adjustments are what aggregates lack because a ledger entry is not what the item asks for.
// If another program has written a contribution to a rule that adds up nothing, no aggregate lacks it.
func (a *Auditor) Adjustments(want, have plan.Effects) []drift.Amount {
	var all []drift.Amount
	add := func(id string, f plan.Effect, sign bool) {
		if b := a.ByID(id); f.Kind == plan.Contribution && b != nil && b.Rule.Displays() {
			value := AmountText(f.Amount, 1)
			if !sign {
				value = AmountText(f.Amount.Neg(), -1)
			}
			all = append(all, drift.Amount{Rule: id, Group: f.Group, Value: value})
		}
	}
	for _, k := range want.Keys() {
		if f := want[k]; f.String() != have[k].String() {
			add(k.ID, f, true)
		}
	}
	for _, k := range have.Keys() {
		if f := have[k]; f.String() != want[k].String() {
			add(k.ID, f, false)
		}
	}
	return all
}

// CountShown is the count in the version of a stamp; 0 if there is none, and more
// than RaisedMax for a stamp that no count may be raised above.
func (a *Auditor) CountShown(b *plan.Binding, key change.Key, within string, img change.Image) int64 {
	context, v := plan.StampContext(a.Incarnation, key, within), img.Lookup(b.Stamp)
	highest := plan.Stamp{Context: context, Version: plan.VersionOf(a.Epoch, RaisedMax), Digest: "~"}.String()
	if v.Kind() == change.KindString && strings.HasPrefix(v.Text(), context+" ") && v.Text() > highest {
		return math.MaxInt64 // DynamoDB compares the texts, also of a stamp that cannot be read
	}
	s, ok := plan.ReadStamp(v, context)
	if !ok {
		return 0
	}
	return s.Version.Count()
}

// RaisedMax is the highest count that a stamp shows and a repair raises a row's count
// above. It leaves room for the changes to come: see plan.CountMax.
const RaisedMax = plan.CountMax / 10
