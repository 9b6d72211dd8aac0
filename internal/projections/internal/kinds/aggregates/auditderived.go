package aggregates

import (
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// partOnly is what a fact says of an item that is not one which rules made, or not of the entity.
const partOnly = "part"

// factOfDerived says what stands at the key of a derived item.
func factOfDerived(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if !b.Rule.Target.HasKey(s.Key) {
		return
	}
	value := Of(b.Rule).shown(s.Image.Lookup(b.Rule.Writes[0]))
	if !isWhole(b, s.Key, s.Image) {
		value = partOnly
	}
	data := value + "\x00" + strconv.FormatInt(a.CountShown(b, s.Key, "", s.Image), 10)
	emit(drift.Fact{About: audit.SumToken(b.ID, s.Key.String()), Sub: subShown + s.Key.String(), Tag: tagShown, Data: data})
}

// judgeDerived judges an item that is there. Without members under this rule, another may have some: the first of the rules
// says that the item is suspect.
func (c *sumCase) judgeDerived(b *plan.Binding, s drift.Suspect, value string, count int64) {
	first := b
	for _, r := range b.Rule.Target.Makers {
		if other := c.Auditor.Of(r); c.Auditor.Shows(other) {
			first = other
			break
		}
	}
	wrong := !c.beyond() && value != Of(b.Rule).displayed(c.want) || count > c.have.Operations
	if wrong || c.want.Members == 0 && first == b {
		c.Suspect(s)
	}
}

// auditedItem is the derived item of a suspect, with its rules that are judged.
func auditedItem(e *auditing.Evidence, sus drift.Suspect) *derivedItem {
	entity := e.ByID(sus.Rule).Rule.Target
	it := &derivedItem{key: change.ParseKey(sus.Group), entity: entity}
	for _, r := range entity.Makers {
		if b := e.Of(r); e.Shows(b) || b.Live.Load() || b.ID == sus.Rule {
			it.live = append(it.live, b)
		} else {
			it.waits = true
		}
	}
	return it
}

// judgeDerived judges a derived item, and what it shows of one rule.
func judgeDerived(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, t auditedTotal, sum audit.Amount) {
	it, item := auditedItem(e, reading.Suspect), e.Items[reading.Suspect.Item]
	var s settlement
	if e.Incarnation != "" {
		s = addUpItem(it, e.Rows)
	}
	members := s.members - t.Members + sum.Members
	reading.Concerns = append(reading.Concerns, drift.KeyToken(it.key))
	for _, other := range it.live {
		reading.Concerns = append(reading.Concerns, audit.SumToken(other.ID, reading.Suspect.Group))
	}
	reading.Fix.Keys = []change.Key{it.key}
	reading.State = change.Digest(
		change.String(strconv.FormatInt(s.operations, 10)), change.String(strconv.FormatInt(members, 10)), auditing.RuleValue(b, item),
		change.Bool(item != nil && isWhole(b, it.key, item)), change.Bool(s.expired))
	f := drift.Finding{Rule: b.Rule.Name, Kind: drift.Display, Item: it.key, Group: reading.Suspect.Group}
	switch {
	case item == nil && (members <= 0 || s.expired), item != nil && members <= 0 && it.waits:
	case item == nil:
		f.What, f.Expected, f.WriteUnits = drift.Missing, "an item", audit.TransactionUnitsMin
		reading.Findings = []drift.Finding{f}
	case members <= 0:
		f.What, f.Found, f.WriteUnits = drift.Surplus, "an item", audit.UnitsOf(item)
		reading.Findings = []drift.Finding{f}
	case !isWhole(b, it.key, item):
		f.What, f.Expected, f.Found, f.WriteUnits = drift.Wrong, "an item that dynamill made", "another", audit.UnitsOf(item)
		reading.Findings = []drift.Finding{f}
	default:
		reading.Findings = compareDisplay(b, it.key, reading.Suspect.Group, item, Of(b.Rule).display(sum))
		if count := e.CountShown(b, it.key, "", item); sum.Equals(t.Amount) && count > t.Operations {
			reading.Findings = append(reading.Findings, stampAhead(b, it.key, reading.Suspect.Group, t.Operations, item))
		}
	}
}
