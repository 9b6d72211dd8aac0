package audit

import (
	"math"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// Beyond stands for a sum that no DynamoDB number holds.
const Beyond = "beyond"

// AddAmounts adds up two amounts; Beyond if no DynamoDB number holds the sum.
func AddAmounts(x, y string) string {
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
			emit(drift.Amount{Rule: plan.ParseEffectKey(name).ID, Group: f.Group, Value: f.Amount.String()})
		}
	}
}

// Adjustments are what aggregates lack because a ledger entry is not what the item asks for.
// If another program has written a contribution to a rule that adds up nothing, no aggregate lacks it.
func (a *Auditor) Adjustments(want, have plan.Effects) []drift.Amount {
	var all []drift.Amount
	add := func(id string, f plan.Effect, sign bool) {
		if b := a.ByID(id); f.Kind == plan.Contribution && b != nil && b.Rule.Displays() {
			value := f.Amount
			if !sign {
				value = value.Neg()
			}
			all = append(all, drift.Amount{Rule: id, Group: f.Group, Value: value.String()})
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
