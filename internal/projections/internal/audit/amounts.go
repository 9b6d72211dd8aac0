package audit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// beyond stands for a value that no DynamoDB number holds.
const beyond = "beyond"

// Amount is what several sources add up to.
type Amount struct {
	Value      decimal.Decimal
	Members    int64 // sources that contribute
	Operations int64 // changes of the rows that hold it
	Beyond     bool  // no DynamoDB number holds the value
	Parts      Parts // of a rule with `per`, whose value is 0
}

// String is the amount as facts hold it.
func (a Amount) String() string {
	value := a.Value.String()
	if a.Beyond {
		value = beyond
	}
	return fmt.Sprintf("%s/%d/%d%s", value, a.Members, a.Operations, a.Parts)
}

// AmountOf is what a contribution adds.
func AmountOf(f plan.Effect) Amount {
	if f.Per != "" {
		return Amount{Members: 1, Parts: Parts{f.Per: {Value: f.Amount, Members: 1}}}
	}
	return Amount{Value: f.Amount, Members: 1}
}

// Negative is what takes an amount back.
func (a Amount) Negative() Amount { return Amount{}.Lacks(a) }

// ParseAmount reads what String wrote. What is missing is 0.
func ParseAmount(text string) Amount {
	value, counts, _ := strings.Cut(text, "/")
	members, counts, _ := strings.Cut(counts, "/")
	operations, parts, _ := strings.Cut(counts, "/")
	a := Amount{Members: ParseCount(members), Operations: ParseCount(operations), Parts: parseParts(parts)}
	var err error
	a.Value, err = decimal.Parse(value)
	a.Beyond = err != nil
	return a
}

// ParseCount reads a count of a fact; 0 if there is none.
func ParseCount(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Add is the sum of two amounts.
func (a Amount) Add(b Amount) Amount {
	value, err := a.Value.Add(b.Value)
	parts, fits := a.Parts.add(b.Parts, 1)
	return Amount{value, a.Members + b.Members, a.Operations + b.Operations, a.Beyond || b.Beyond || err != nil || !fits, parts}
}

// AddUp is an amount with others added to it, each as String wrote it. It takes time for the length of all of them.
func AddUp(sum string, more []string) string {
	total := ParseAmount(sum)
	if total.Parts == nil {
		total.Parts = Parts{}
	}
	for _, text := range more {
		a := ParseAmount(text)
		fits := total.Parts.take(a.Parts, 1)
		value, err := total.Value.Add(a.Value)
		total.Value, total.Members, total.Operations = value, total.Members+a.Members, total.Operations+a.Operations
		total.Beyond = total.Beyond || a.Beyond || err != nil || !fits
	}
	return total.String()
}

// Lacks returns a minus have: what must be added to have to reach a. It counts no operations.
func (a Amount) Lacks(have Amount) Amount {
	value, err := a.Value.Sub(have.Value)
	parts, fits := a.Parts.add(have.Parts, -1)
	return Amount{value, a.Members - have.Members, 0, err != nil || !fits, parts}
}

// Equals reports whether two amounts are the same, however many operations made them.
func (a Amount) Equals(b Amount) bool {
	return a.Value.Cmp(b.Value) == 0 && a.Members == b.Members && a.Parts.String() == b.Parts.String()
}

// Contributions are what a row of the ledger adds to aggregates.
func Contributions(row change.Item, emit func(drift.Amount)) {
	if !strings.HasPrefix(row["pk"].Text(), "i/") {
		return
	}
	texts, _ := plan.EffectTexts(row)
	for k, text := range texts {
		if f, err := plan.ParseEffect(text); err == nil && f.Kind == plan.Contribution {
			emit(drift.Amount{Rule: k.ID, Group: f.Group, Value: AmountOf(f).String()})
		}
	}
}

// Adjustments are what aggregates lack because a ledger entry is not what the item asks for.
// If another program has written a contribution to a rule that adds up nothing, no aggregate lacks it.
func (a *Auditor) Adjustments(want, have plan.Effects) []drift.Amount {
	var all []drift.Amount
	add := func(id string, f plan.Effect, amount Amount) {
		if b := a.ByID(id); f.Kind == plan.Contribution && b != nil && b.Rule.Displays() {
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
	s, ok := stamp.Read(v, context)
	if !ok {
		highest = 0 // whatever it is, DynamoDB compares the texts
	}
	if v.Kind() == change.KindString && strings.HasPrefix(v.Text(), context) &&
		v.Text() > stamp.Behind(context, stamp.VersionOf(a.Epoch, highest)) {
		return math.MaxInt64
	}
	return s.Version.Count()
}

// RaisedMax is the highest count that a stamp shows and a repair raises a row's count
// above. It leaves room for the changes to come: see plan.CountMax.
const RaisedMax = plan.CountMax / 10
