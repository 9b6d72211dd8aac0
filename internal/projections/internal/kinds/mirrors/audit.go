package mirrors

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// The marks behind the digest of an item at a mirror's key; markOccupied stands alone.
const (
	markStamped  = " stamped"
	markMade     = " made" // by the engine, and carries no stamp of the rule
	markOccupied = "occupied"
)

// Facts implements audit.Family: they say how an item stands to a rule that could have made it.
func (kind) Facts(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if !b.Rule.Target.HasKey(s.Key) {
		return
	}
	data := contentDigest(b.Rule, s.Image)
	at := placeOf(b, s.Key, s.Image)
	switch {
	case stamped(a, b, s.Key, s.Image):
		data += markStamped
	case at == placeMade:
		data += markMade
	case at == placeOccupied:
		data = markOccupied
	}
	emit(drift.Fact{About: audit.MadeToken(s.Key), Sub: b.ID + "\x00", Tag: audit.TagHave, Data: data})
}

func stamped(a *audit.Auditor, b *plan.Binding, key change.Key, img change.Image) bool {
	return plan.Stamped(b, stamp.Context(a.Incarnation, key, ""), img)
}

// EffectFacts implements audit.Family.
func (kind) EffectFacts(_ *audit.Auditor, b *plan.Binding, source change.Key, _ string, f effects.Effect, emit func(drift.Fact)) {
	it, _ := itemOf(f)
	emit(drift.Fact{About: audit.MadeToken(it.target), Sub: b.ID + "\x00" + source.String(), Tag: audit.TagWant, Data: it.digest})
	if b.Claimed() {
		emit(drift.Fact{About: audit.About(audit.AboutClaims, b.ID, f.Group), Sub: source.String(), Tag: audit.TagWant})
	}
}

// RowFacts implements audit.Family.
func (kind) RowFacts(*audit.Auditor, audit.Row, func(drift.Fact)) {}

// Case implements audit.Family.
func (kind) Case(j *audit.Judge) audit.Case {
	if j.Kind != audit.AboutMade {
		return nil
	}
	return &mirrorCase{Judge: j}
}

// mirrorCase judges one mirror item. It takes, rule by rule, first how the item stands, then its
// sources in the order of their keys: the first one's content counts.
type mirrorCase struct {
	*audit.Judge
	rule    audit.Part // by the rule's id
	sources []string
	asked   bool // by some rule
	surplus bool // the item carries the marks of a rule that does not ask for it
	differs bool
}

// Add implements audit.Case.
func (c *mirrorCase) Add(f drift.Fact) {
	id, source, _ := strings.Cut(f.Sub, "\x00")
	if id != c.rule.Sub {
		c.endRule()
		c.rule = audit.Part{Sub: id}
	}
	switch {
	case f.Tag == audit.TagHave:
		c.rule.Has, c.rule.Have = true, f.Data
	case !c.rule.Wants:
		c.rule.Wants, c.rule.Want = true, f.Data
		c.sources = append(c.sources, source) // of every rule the first one, which counts
	default:
		audit.AppendSome(&c.sources, source)
	}
}

func (c *mirrorCase) endRule() {
	r := c.rule
	switch {
	case r.Sub == "":
	case r.Wants && r.Have == markOccupied:
		c.asked = true
		c.Suspect(drift.Suspect{Kind: drift.Parked, Rule: r.Sub, Item: c.Key(), Members: c.sources})
	case r.Wants:
		c.asked = true
		c.differs = c.differs || !r.Has || r.Have != r.Want+markStamped
	case strings.HasSuffix(r.Have, markStamped), strings.HasSuffix(r.Have, markMade):
		c.surplus = true
	}
}

// End implements audit.Case.
func (c *mirrorCase) End() {
	c.endRule()
	if c.differs || !c.asked && c.surplus {
		c.Suspect(drift.Suspect{Kind: made, Item: c.Key(), Members: c.sources})
	}
}

// compare says how the item at a mirror's key differs from the one for which a rule asks (nil: none).
// If it asks for none, an item that the engine made is surplus, and so is a stamp.
func compare(a *audit.Auditor, b *plan.Binding, key change.Key, item change.Item, want *mirrorItem) []drift.Finding {
	f := drift.Finding{Rule: b.Rule.Name, Kind: made, Item: key, WriteUnits: 2 * (1 + audit.UnitsOf(item))}
	at, stamped := placeOf(b, key, table.Image(item)), stamped(a, b, key, table.Image(item))
	switch {
	case want == nil && (at == placeMade || stamped):
		f.What, f.Found = drift.Surplus, audit.ItemText(item, b.Rule.Writes)
	case at == placeOccupied && stamped:
		f.What, f.Attribute, f.Found = drift.Surplus, b.Stamp, audit.Text(item.Lookup(b.Stamp))
	case want == nil, at == placeOccupied, want.expired && item == nil:
		return nil
	case item == nil:
		f.What, f.Expected = drift.Missing, audit.ItemText(want.content, b.Rule.Writes)
	default:
		differing := audit.CompareAttributes(f, b.Rule.Writes, plan.ValuesOf(b.Rule, change.Item(want.content)), item)
		if stamped || len(differing) > 0 {
			return differing
		}
		f.What, f.Attribute, f.Expected, f.Found = drift.Missing, b.Stamp, "a stamp", audit.Text(item.Lookup(b.Stamp))
	}
	return []drift.Finding{f}
}
