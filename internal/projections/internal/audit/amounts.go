package audit

import (
	"math"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/tally"
)

// AmountOf is what a contribution adds.
func AmountOf(f effects.Effect) tally.Amount {
	if f.Per != "" {
		return tally.Amount{Members: 1, Parts: tally.Parts{f.Per: {Value: f.Amount, Members: 1}}}
	}
	return tally.Amount{Value: f.Amount, Members: 1}
}

// Contributions are what a row of the ledger adds to aggregates.
func Contributions(row change.Item, emit func(drift.Amount)) {
	if !strings.HasPrefix(row["pk"].Text(), "i/") {
		return
	}
	texts, _ := effects.ReadTexts(row)
	for k, text := range texts {
		if f, err := effects.Parse(text); err == nil && f.Kind == effects.Contribution {
			emit(drift.Amount{Rule: k.ID, Group: f.Group, Value: AmountOf(f).String()})
		}
	}
}

// Adjustments are what aggregates lack because a ledger entry is not what the item asks for.
// If another program has written a contribution to a rule that adds up nothing, no aggregate lacks it.
func (a *Auditor) Adjustments(want, have effects.ByKey) []drift.Amount {
	var all []drift.Amount
	add := func(id string, f effects.Effect, amount tally.Amount) {
		if b := a.ByID(id); f.Kind == effects.Contribution && b != nil && b.Rule.Displays() {
			all = append(all, drift.Amount{Rule: id, Group: f.Group, Value: amount.String()})
		}
	}
	for _, k := range want.Keys() {
		if f := want[k]; f.String() != have[k].String() {
			add(k.ID, f, AmountOf(f))
		}
	}
	for _, k := range have.Keys() {
		if f := have[k]; f.String() != want[k].String() {
			add(k.ID, f, AmountOf(f).Negative())
		}
	}
	return all
}

// CountShown is the count in the version of a stamp; 0 if there is none, and more
// than RaisedMax for a stamp that no count may be raised above.
func (a *Auditor) CountShown(b *plan.Binding, key change.Key, within string, img change.Image) int64 {
	context, v := stamp.Context(a.Incarnation, key, within), img.Lookup(b.Stamp)
	highest := int64(RaisedMax)
	if b.Rule.Folds() { // the generation stands above the operations
		highest = (b.Counted.Load()+1)<<stamp.GenerationShift - 1
	}
	s, ok := stamp.Read(v, context)
	if !ok {
		highest = 0 // whatever it is, DynamoDB compares the texts
	}
	if v.Kind() == change.KindString && strings.HasPrefix(v.Text(), context) &&
		v.Text() > stamp.Behind(context, stamp.VersionOf(a.Epoch, highest)) {
		return math.MaxInt64
	}
	if b.Rule.Folds() {
		return s.Version.Count() & (1<<stamp.GenerationShift - 1)
	}
	return s.Version.Count()
}

// RaisedMax is the highest stamp count above which a repair raises a row's count; it leaves room below plan.CountMax.
const RaisedMax = plan.CountMax / 10

// A row holds a part in two attributes, whose names begin so.
const (
	PartValue   = "v/"
	PartMembers = "m/"
)

// ReadParts reads the parts that an accumulator holds, the empty ones too; false if one of them is torn.
func ReadParts(row change.Item) (tally.Parts, bool) {
	ps, readable := tally.Parts{}, true
	for name, v := range row {
		if per, ok := strings.CutPrefix(name, PartValue); ok {
			value, err := decimal.Parse(v.Text())
			readable = readable && v.Kind() == change.KindNumber && err == nil
			ps[per] = tally.Share{Value: value, Members: ps[per].Members}
		} else if per, ok := strings.CutPrefix(name, PartMembers); ok {
			members, ok := plan.ReadMembers(v)
			readable = readable && ok
			ps[per] = tally.Share{Value: ps[per].Value, Members: members}
		}
	}
	return ps, readable
}
