package groupaudit

import (
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/tally"
)

// partOnly is what a fact says of an item that is not one which rules made, or not of the entity.
const partOnly = "part"

// factOfDerived says what stands at the key of a derived item.
func factOfDerived(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if !b.Rule.Target.HasKey(s.Key) {
		return
	}
	value := Shown(b, s.Image)
	if !groups.IsWhole(b.Rule.Target, s.Key, s.Image) {
		value = partOnly
	}
	data := value + "\x00" + strconv.FormatInt(a.CountShown(b, s.Key, "", s.Image), 10)
	emit(drift.Fact{About: audit.SumToken(b.ID, s.Key.String()), Sub: subShown + s.Key.String(), Tag: tagShown, Data: data})
}

// judgeDerived judges an item that is there. Without members under this rule, another may have some: the first of the rules
// says that the item is suspect.
func (c *groupCase) judgeDerived(b *plan.Binding, s drift.Suspect, value string, count int64) {
	first := b
	for _, r := range b.Rule.Target.Makers {
		if other := c.Auditor.Of(r); c.Auditor.Shows(other) {
			first = other
			break
		}
	}
	wrong := !c.overflows() && value != c.shown(b) || count > c.have.Operations
	if wrong || c.want.Members == 0 && first == b {
		c.Suspect(s)
	}
}

// auditedItem is the derived item of a suspect, with its rules that are judged.
func auditedItem(e *auditing.Evidence, sus drift.Suspect) *groups.Item {
	entity := e.ByID(sus.Rule).Rule.Target
	it := &groups.Item{Key: change.ParseKey(sus.Group), Entity: entity}
	for _, r := range entity.Makers {
		if b := e.Of(r); e.Shows(b) || b.Live.Load() || b.ID == sus.Rule {
			it.Live = append(it.Live, b)
		} else {
			it.Waits = true
		}
	}
	return it
}

// judgeDerived judges a derived item, and what it shows of one rule.
func judgeDerived(e *auditing.Evidence, reading *drift.Reading, b *plan.Binding, t auditedTotal, sum tally.Amount) {
	it, item := auditedItem(e, reading.Suspect), e.Items[reading.Suspect.Item]
	var s groups.ItemTotals
	if e.Incarnation != "" {
		s = groups.AddUpItem(it, e.Rows)
	}
	members := s.Members - t.Members + sum.Members
	reading.Concerns = append(reading.Concerns, drift.KeyToken(it.Key))
	for _, other := range it.Live {
		reading.Concerns = append(reading.Concerns, audit.SumToken(other.ID, reading.Suspect.Group))
	}
	reading.Fix.Keys = []change.Key{it.Key}
	reading.State = change.Digest(
		change.String(strconv.FormatInt(s.Operations, 10)), change.String(strconv.FormatInt(members, 10)), auditing.RuleValue(b, item),
		change.Bool(item != nil && groups.IsWhole(b.Rule.Target, it.Key, item)), change.Bool(s.Expired))
	f := drift.Finding{Rule: b.Rule.Name, Kind: drift.Display, Item: it.Key, Group: reading.Suspect.Group}
	switch {
	case item == nil && (members <= 0 || s.Expired), item != nil && members <= 0 && it.Waits:
	case item == nil:
		f.What, f.Expected, f.WriteUnits = drift.Missing, "an item", audit.TransactionUnitsMin
		reading.Findings = []drift.Finding{f}
	case members <= 0:
		f.What, f.Found, f.WriteUnits = drift.Surplus, "an item", audit.UnitsOf(item)
		reading.Findings = []drift.Finding{f}
	case !groups.IsWhole(b.Rule.Target, it.Key, item):
		f.What, f.Expected, f.Found, f.WriteUnits = drift.Wrong, "an item that dynamill made", "another", audit.UnitsOf(item)
		reading.Findings = []drift.Finding{f}
	default:
		reading.Findings = compareShown(b, it.Key, reading.Suspect.Group, item, t, sum)
		if count := e.CountShown(b, it.Key, "", item); sum.Equals(t.Amount) && count > t.Operations {
			reading.Findings = append(reading.Findings, stampAhead(b, it.Key, reading.Suspect.Group, t.Operations, item))
		}
	}
}
