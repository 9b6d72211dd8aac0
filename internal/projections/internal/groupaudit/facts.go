package groupaudit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// The tags of facts about one group beside those of its totals.
const (
	tagShown  = 'd' // an item that displays it
	tagMember = 'm' // an item that is a member
	tagRow    = 'r' // a member row
)

// The Sub of a fact begins so, and sorts the facts of one aggregate: first the totals, whose Sub is empty, then the members in the order
// of their rows, the parts of a rule with `per`, and last the items that display it. A part has a fact of its own, so that one more source
// costs the same however many values there are.
const (
	subMember = "member/"
	subPart   = "part/"
	subShown  = "shown/"
)

// Facts implements audit.Family: they say what an item displays.
func (Auditing) Facts(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if b.Rule.Derives() && a.Shows(b) {
		factOfDerived(a, b, s, emit)
		return
	}
	if s.Match.Entity != b.Rule.Target || !a.Shows(b) {
		return
	}
	value := Shown(b, s.Image)
	group, ok, err := b.Rule.GroupOf(&s.Match, s.Image)
	switch {
	case err != nil:
	case ok:
		count := a.CountShown(b, s.Key, group, s.Image)
		data := value + "\x00" + strconv.FormatInt(count, 10)
		emit(drift.Fact{About: audit.SumToken(b.ID, group), Sub: subShown + s.Key.String(), Tag: tagShown, Data: data})
	case value != "":
		audit.EmitSuspect(drift.Display, b.ID, s.Key, emit)
	}
}

// EffectFacts implements audit.Family.
func (Auditing) EffectFacts(a *audit.Auditor, b *plan.Binding, source change.Key, what string, f effects.Effect, emit func(drift.Fact)) {
	if !a.Shows(b) {
		return
	}
	one := tally.Amount{Value: f.Amount, Members: 1}
	fact := drift.Fact{About: audit.SumToken(b.ID, f.Group), Tag: audit.TagWant, Data: one.String()}
	if f.Per != "" {
		fact.Sub = subPart + f.Per
	}
	emit(fact)
	if f.Member != nil {
		sort := state.MemberSort(f.Member.Order, source, what)
		emit(drift.Fact{About: fact.About, Sub: subMember + sort, Tag: tagMember, Data: f.Member.Digest + source.String()})
	}
}

// RowFacts are what a row of the state table says of the rules of a kind.
func RowFacts(k rules.Kind, a *audit.Auditor, r audit.Row, emit func(drift.Fact)) {
	switch r.Kind {
	case state.AccumulatorRows:
		if b := a.ByID(r.ID); b != nil && b.Rule.Kind == k {
			factOfAccumulator(a, b, r, emit)
		}
	case state.MemberRows:
		if b := a.ByID(r.ID); b != nil && b.Rule.Kind == k && a.Shows(b) {
			factOfMember(b, r, emit)
		}
	case state.ParkedPartition:
		if id, group, ok := audit.ReadCrowded(r.Item); ok {
			if b := a.ByID(id); b != nil && b.Rule.Kind == k && a.Shows(b) {
				emit(drift.Fact{About: audit.SumToken(id, group), Tag: audit.TagListed})
			}
		}
	case "locator": // its changes are counted in what displays a sum by it
		value, changes := change.ParseKey(r.Name).Partition, state.CountOf(attributes.ToTable(r.Item["changes"]))
		for _, rule := range a.Set.Rules {
			if b := a.Of(rule); rule.Kind == k && rule.ByUnique && b.Locator == r.ID && a.Shows(b) && changes > 0 {
				emit(drift.Fact{About: audit.SumToken(b.ID, value), Tag: audit.TagHave, Data: tally.Amount{Operations: changes}.String()})
			}
		}
	}
}

func factOfAccumulator(a *audit.Auditor, b *plan.Binding, r audit.Row, emit func(drift.Fact)) {
	at := strings.LastIndex(r.Name, "/")
	if at < 0 || !a.Shows(b) {
		return
	}
	about, row := audit.SumToken(r.ID, change.ParseKey(r.Name[:at]).Partition), attributes.ItemToTable(r.Item)
	have, _ := state.ReadAccumulator(row)
	var parts tally.Parts
	if audit.TornSum(b, r.Item) {
		emit(drift.Fact{About: about, Tag: audit.TagTorn})
		have = tally.Amount{Operations: have.Operations}
	} else if b.Rule.HasPer() {
		parts, _ = audit.ReadParts(r.Item)
	}
	emit(drift.Fact{About: about, Tag: audit.TagHave, Data: have.String()})
	for _, per := range parts.Values() {
		part := tally.Amount{Value: parts[per].Value, Members: parts[per].Members}
		emit(drift.Fact{About: about, Sub: subPart + per, Tag: audit.TagHave, Data: part.String()})
	}
}

// factOfMember says what a member row shows, and of which source.
func factOfMember(b *plan.Binding, r audit.Row, emit func(drift.Fact)) {
	sort := r.Item["sk"].Text()
	source, _ := state.MemberSource(sort, r.Item["item"].Text())
	emit(drift.Fact{About: audit.SumToken(b.ID, change.ParseKey(r.Name).Partition), Sub: subMember + sort, Tag: tagRow,
		Data: digestOf(attributes.ItemToTable(r.Item)) + source.String()})
}

// digestOf digests what a member row shows; of one that cannot be read it is no digest.
func digestOf(r table.Row) string {
	shown, ok := state.ReadMember(r)
	if !ok {
		return strings.Repeat("?", stamp.DigestDigits)
	}
	return effects.MemberDigest(shown)
}

// Case implements audit.Family.
func (Auditing) Case(j *audit.Judge) audit.Case {
	if j.Kind != audit.AboutSum {
		return nil
	}
	return &groupCase{Judge: j}
}

// groupCase judges one aggregate: first the sum, then the items that display it.
type groupCase struct {
	*audit.Judge
	want, have tally.Amount
	torn       bool   // an accumulator is
	differs    bool   // the sums do
	listed     bool   // as one with too many values
	first      string // the item that displays; "" as long as there was none

	members Collection  // that a target shows; nil as long as no fact told of any
	sub     string      // of the facts about one member,
	member  *drift.Fact // what its source asks for,
	row     *drift.Fact // and its row
}

// Add implements audit.Case.
func (c *groupCase) Add(f drift.Fact) {
	if f.Sub != c.sub {
		c.judgeMember()
	}
	switch f.Tag {
	case tagMember:
		c.sub, c.member = f.Sub, &f
		if collector, ok := c.Auditor.ByID(c.ID).Rule.Form.(Collector); ok {
			if c.members == nil {
				c.members = collector.Collect()
			}
			c.members.Add(f.Data[:stamp.DigestDigits])
		}
	case tagRow:
		c.sub, c.row = f.Sub, &f
	case tagShown:
		value, count, _ := strings.Cut(f.Data, "\x00")
		c.judgeTotal()
		c.judgeDisplay(f, value, tally.ParseCount(count))
	case audit.TagTorn:
		c.torn = true
	case audit.TagListed:
		c.listed = true
	case audit.TagWant:
		addFact(&c.want, f)
		if strings.HasPrefix(f.Sub, subPart) {
			c.want.Members += tally.Parse(f.Data).Members // of which an accumulator has a total
		}
	default:
		addFact(&c.have, f)
	}
}

// addFact takes a total or a part. Facts of one Sub and tag have been made one.
func addFact(to *tally.Amount, f drift.Fact) {
	a := tally.Parse(f.Data)
	per, isPart := strings.CutPrefix(f.Sub, subPart)
	if !isPart {
		*to = a
		return
	}
	if to.Parts == nil {
		to.Parts = tally.Parts{}
	}
	to.Parts[per] = tally.Share{Value: a.Value, Members: a.Members}
	to.Overflow = to.Overflow || a.Overflow
}

// judgeListing compares whether the aggregate is listed as one with too many values. Without a target, it may be.
func (c *groupCase) judgeListing() {
	b := c.Auditor.ByID(c.ID)
	if b == nil || c.differs || c.overflows() {
		return // the sum comes first
	}
	if crowded := isCrowded(b.Rule, c.want); crowded != c.listed && (c.listed || c.first != "") {
		s := drift.Suspect{Kind: drift.Sum, Rule: c.ID, Group: c.Text, Want: c.want.String()}
		if c.first != "" {
			s.Item = change.ParseKey(c.first)
		}
		c.Suspect(s)
	}
}

// overflows reports whether no DynamoDB number holds one side.
func (c *groupCase) overflows() bool { return c.want.Overflow || c.have.Overflow }

// judgeTotal compares the two sums, once both are known.
func (c *groupCase) judgeTotal() {
	if !c.differs && (c.torn || !c.overflows() && !c.want.Equals(c.have)) {
		c.differs = true
		c.Suspect(drift.Suspect{Kind: drift.Sum, Rule: c.ID, Group: c.Text, Want: c.want.String()})
	}
}

// judgeDisplay judges one item. The first of those that are known by one unique value shows the
// sum, the others nothing.
func (c *groupCase) judgeDisplay(f drift.Fact, value string, count int64) {
	s := drift.Suspect{Kind: drift.Display, Rule: c.ID, Group: c.Text, Item: change.ParseKey(strings.TrimPrefix(f.Sub, subShown))}
	if b := c.Auditor.ByID(c.ID); b.Rule.Derives() {
		c.first, s.Want = s.Item.String(), c.want.String()
		c.judgeDerived(b, s, value, count)
		return
	}
	want := ""
	if c.first == "" {
		c.first, want, s.Want = s.Item.String(), c.shown(c.Auditor.ByID(c.ID)), c.want.String()
	}
	if s.Members = []string{c.first}; !c.overflows() && value != want || count > c.have.Operations {
		c.Suspect(s)
	}
}

// End implements audit.Case.
func (c *groupCase) End() {
	c.judgeMember()
	c.judgeTotal()
	c.judgeListing()
	if b := c.Auditor.ByID(c.ID); b != nil && b.Rule.Derives() {
		if c.first == "" && c.want.Members > 0 {
			c.Suspect(drift.Suspect{Kind: drift.Display, Rule: c.ID, Group: c.Text, Item: change.ParseKey(c.Text), Want: c.want.String()})
		}
		return
	}
	c.Pointed(c.Text, c.want.Members, c.first != "")
}

// judgeMember compares a member with its row, once both are known.
func (c *groupCase) judgeMember() {
	member, row := c.member, c.row
	c.sub, c.member, c.row = "", nil, nil
	if member == nil && row == nil || member != nil && row != nil && member.Data == row.Data {
		return
	}
	f := member
	if f == nil {
		f = row
	}
	c.Suspect(drift.Suspect{Kind: MemberRow, Rule: c.ID, Group: c.Text, Item: change.ParseKey(f.Data[stamp.DigestDigits:]),
		Sort: strings.TrimPrefix(f.Sub, subMember)})
}

// shown is what a target of the group must show, as displays are compared.
func (c *groupCase) shown(b *plan.Binding) string {
	if c.members != nil {
		return c.members.Shown()
	}
	return Wanted(b, c.want)
}

// compareDisplay says whether an item displays values, as Form.Shown tells.
func compareDisplay(b *plan.Binding, key change.Key, group string, item change.Image, want []change.Value) (all []drift.Finding) {
	form, found := formOf(b.Rule), plan.ValuesOf(b.Rule, item)
	if form.Shown(found) == form.Shown(want) {
		return nil
	}
	units := audit.UnitsOf(item)
	for i, name := range b.Rule.Writes {
		if len(want) > 1 && want[i].Equal(found[i]) {
			continue
		}
		f := drift.Finding{
			Rule: b.Rule.Name, Kind: drift.Display, What: drift.Wrong, Item: key, Group: group, Attribute: name,
			Expected: form.Text(want[i]), Found: form.Text(found[i]), WriteUnits: units,
		}
		switch {
		case f.Found == "":
			f.What = drift.Missing
		case f.Expected == "":
			f.What = drift.Surplus
		}
		all, units = append(all, f), 0 // one write mends them all
	}
	return all
}

// stampAhead is what to say of a stamp with a higher count than was ever
// counted, as after the state table was restored: no sum would be shown before
// that count is reached.
func stampAhead(b *plan.Binding, key change.Key, group string, counted int64, item change.Image) drift.Finding {
	return drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Display, What: drift.Wrong, Item: key, Group: group, Attribute: b.Stamp,
		Expected: fmt.Sprintf("a count of at most %d", counted), Found: audit.Text(item.Lookup(b.Stamp)), WriteUnits: audit.TransactionUnitsMin,
	}
}
