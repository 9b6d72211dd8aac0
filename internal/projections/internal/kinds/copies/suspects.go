package copies

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
)

var ofCopies = &auditing.Procedure{
	Rows: auditing.Rows{childaudit.LocatorRow}, Items: auditing.Items{auditing.OwnItem, childaudit.ParentsOf}, Judge: judgeCopy,
	Tasks: childaudit.TasksOf,
}

// Procedure implements auditing.Family.
func (k kind) Procedure(of drift.Kind) *auditing.Procedure {
	if of == copied {
		return ofCopies
	}
	return k.Auditing.Procedure(of)
}

func judgeCopy(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	b, child := e.ByID(sus.Rule), e.Items[sus.Item]
	reading := drift.ReadingOf(sus, "")
	l := childaudit.SuspectLink(e, sus)
	want := make([]change.Value, len(b.Rule.Attributes))
	elsewhere := b.Rule.ByUnique && l.Refers && l.Parent.String() != sus.Group
	if l.Refers {
		want = Of(b.Rule).Given(childaudit.ParentNow(e, sus, l.Parent))
		for _, key := range childaudit.ParentsOf(e, sus) {
			reading.Concerns = append(reading.Concerns, drift.KeyToken(key))
		}
		if b.Rule.ByUnique {
			reading.Concerns = append(reading.Concerns, audit.LocatorToken(effects.LocatorID(b.Locator), l.Parent.Partition))
		}
		reading.Suspect.Group = l.Parent.String()
	}
	refersTo := change.String(fmt.Sprint(l.IsChild, l.Bad == nil, l.Refers, l.Parent))
	reading.State = change.Digest(append([]change.Value{auditing.RuleValue(b, child), refersTo}, want...)...)
	if l.IsChild && l.Bad == nil && !elsewhere {
		f := drift.Finding{Rule: b.Rule.Name, Kind: copied, Item: sus.Item, WriteUnits: audit.UnitsOf(child)}
		reading.Findings = audit.CompareAttributes(f, b.Rule.Writes, want, child)
	}
	return reading
}
