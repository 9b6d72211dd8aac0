package aggregates

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// tagShown is the tag of a fact about an item that displays an aggregate.
const tagShown = 'd'

// Facts implements audit.Family: they say what an item displays.
func (*kind) Facts(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if s.Match.Entity != b.Rule.Target || !a.Shows(b) {
		return
	}
	value := shown(s.Image.Lookup(b.Rule.Writes[0]))
	group, ok, err := Of(b.Rule).GroupOf(&s.Match, s.Image)
	switch {
	case err != nil:
	case ok:
		count := a.CountShown(b, s.Key, group, s.Image)
		data := counted(value, strconv.FormatInt(count, 10))
		emit(drift.Fact{About: audit.About(audit.AboutSum, b.ID, group), Sub: s.Key.String(), Tag: tagShown, Data: data})
	case value != "":
		audit.Spot(drift.Display, b.ID, s.Key, emit)
	}
}

// EffectFacts implements audit.Family.
func (*kind) EffectFacts(a *audit.Auditor, b *plan.Binding, _ change.Key, f plan.Effect, emit func(drift.Fact)) {
	if a.Shows(b) {
		emit(drift.Fact{About: audit.About(audit.AboutSum, b.ID, f.Group), Tag: audit.TagWant, Data: counted(f.Amount.String(), "1")})
	}
}

// RowFacts implements audit.Family.
func (k *kind) RowFacts(a *audit.Auditor, r audit.Row, emit func(drift.Fact)) {
	switch r.Kind {
	case "sum":
		if b := a.ByID(r.ID); b != nil && b.Rule.Kind == k {
			factOfAccumulator(a, b, r, emit)
		}
	case "locator": // its changes are counted in what displays a sum by it
		value, changes := change.ParseKey(r.Name).Partition, r.Item["changes"].Text()
		for _, rule := range a.Set.Rules {
			if b := a.Of(rule); rule.Kind == k && rule.ByUnique && b.Locator == r.ID && a.Shows(b) && changes != "" {
				emit(drift.Fact{About: audit.About(audit.AboutSum, b.ID, value), Tag: audit.TagHave, Data: counted("0", changes)})
			}
		}
	}
}

func factOfAccumulator(a *audit.Auditor, b *plan.Binding, r audit.Row, emit func(drift.Fact)) {
	at := strings.LastIndex(r.Name, "/")
	if at < 0 || !a.Shows(b) {
		return
	}
	about, value := audit.About(audit.AboutSum, r.ID, change.ParseKey(r.Name[:at]).Partition), r.Item["value"].Text()
	if audit.TornSum(r.Item) {
		value = "0"
		emit(drift.Fact{About: about, Tag: audit.TagTorn})
	}
	emit(drift.Fact{About: about, Tag: audit.TagHave, Data: counted(value, r.Item["operations"].Text())})
}

// counted puts the count of operations behind what was counted.
func counted(value, count string) string { return value + "\x00" + count }

// Combine implements audit.Family.
func (*kind) Combine(about string, tag byte, x, y string) (string, bool) {
	if !strings.HasPrefix(about, audit.AboutSum) || tag != audit.TagWant && tag != audit.TagHave {
		return "", false
	}
	x, n, _ := strings.Cut(x, "\x00")
	y, m, has := strings.Cut(y, "\x00")
	if !has {
		return audit.AddAmounts(x, y), true
	}
	return counted(audit.AddAmounts(x, y), audit.AddAmounts(cmp.Or(n, "0"), cmp.Or(m, "0"))), true
}

// Case implements audit.Family.
func (*kind) Case(j *audit.Judge) audit.Case {
	if j.Kind != audit.AboutSum {
		return nil
	}
	return &sumCase{Judge: j}
}

// sumCase judges one aggregate: first the sum, then the items that display it.
type sumCase struct {
	*audit.Judge
	want, have string
	beyond     bool   // no DynamoDB number holds one side
	torn       bool   // an accumulator is
	differs    bool   // the sums do
	operations int64  // on the accumulators
	sources    int64  // that add to the aggregate
	first      string // the item that displays; "" as long as there was none
}

// Add implements audit.Case.
func (c *sumCase) Add(f drift.Fact) {
	value, text, _ := strings.Cut(f.Data, "\x00")
	count, _ := strconv.ParseInt(text, 10, 64) // none is 0
	if f.Tag == tagShown {
		c.judgeSum()
		c.judgeDisplay(f, value, count)
		return
	}
	c.beyond = c.beyond || value == audit.Beyond
	switch f.Tag {
	case audit.TagTorn:
		c.torn = true
	case audit.TagWant:
		c.want, c.sources = SumText(value), count
	default:
		c.have, c.operations = SumText(value), count
	}
}

// judgeSum compares the two sums, once both are known.
func (c *sumCase) judgeSum() {
	if !c.differs && (c.torn || !c.beyond && c.want != c.have) {
		c.differs = true
		c.Suspect(drift.Suspect{Kind: drift.Sum, Rule: c.ID, Group: c.Text, Want: c.want})
	}
}

// judgeDisplay judges one item. The first of those that are known by one unique value shows the
// sum, the others nothing.
func (c *sumCase) judgeDisplay(f drift.Fact, value string, count int64) {
	want := ""
	if c.first == "" {
		c.first, want = f.Sub, c.want
	}
	if !c.beyond && value != want || count > c.operations {
		s := drift.Suspect{Kind: drift.Display, Rule: c.ID, Group: c.Text, Item: change.ParseKey(f.Sub), Members: []string{c.first}, Want: want}
		c.Suspect(s)
	}
}

// End implements audit.Case.
func (c *sumCase) End() {
	c.judgeSum()
	c.Pointed(c.sources, c.first != "")
}

// CompareDisplay says whether an item displays a sum; "" is nothing, to which 0 is equal.
func CompareDisplay(b *plan.Binding, key change.Key, group string, item change.Image, want string) []drift.Finding {
	name := b.Rule.Writes[0]
	if shown(item.Lookup(name)) == want {
		return nil
	}
	f := drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Display, What: drift.Wrong, Item: key, Group: group, Attribute: name,
		Expected: want, Found: audit.Text(item.Lookup(name)), WriteUnits: audit.UnitsOf(item),
	}
	switch {
	case f.Found == "":
		f.What = drift.Missing
	case want == "" && group == "":
		f.What = drift.Surplus
	case want == "":
		f.Expected = "0 or nothing"
	}
	return []drift.Finding{f}
}

// StampAhead is what to say of a stamp with a higher count than was ever
// counted, as after the state table was restored: no sum would be shown before
// that count is reached.
func StampAhead(b *plan.Binding, key change.Key, group string, counted int64, item change.Image) drift.Finding {
	return drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Display, What: drift.Wrong, Item: key, Group: group, Attribute: b.Stamp,
		Expected: fmt.Sprintf("a count of at most %d", counted), Found: audit.Text(item.Lookup(b.Stamp)), WriteUnits: audit.TransactionUnitsMin,
	}
}

// SumText is an amount as displays are compared: "" for 0.
func SumText(amount string) string { return shown(change.Number(amount)) }

// shown is what an attribute displays; "" for nothing, which 0 is equal to.
func shown(v change.Value) string {
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
	return sumText(d)
}

func sumText(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// Lacks is what is missing from have to be want; "" if nothing is. It reports
// false where no DynamoDB number tells.
func Lacks(want, have string) (string, bool) {
	a, err := decimal.Parse(want)
	b, err2 := decimal.Parse(have)
	if err != nil || err2 != nil {
		return "", false
	}
	d, err := a.Sub(b)
	if err != nil {
		return "", false
	}
	return sumText(d), true
}
