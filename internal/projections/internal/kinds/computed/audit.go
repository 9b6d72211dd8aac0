package computed

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

var (
	_ audit.Family      = kind{}
	_ auditing.Family   = kind{}
	_ explaining.Family = kind{}
)

// computedValue is the kind of drift of an attribute that a rule works out from its item.
const computedValue drift.Kind = "computed value"

// Facts implements audit.Family.
func (kind) Facts(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if s.Match.Entity != b.Rule.Target {
		return
	}
	w := wantedOf(a.Planner, b, s.Key, &s.Match, s.Image)
	if w.Bad != nil {
		audit.MustBeParked(b.ID, s.Key, w.Bad.Code, emit)
	}
	if !w.holds(b, s.Image) {
		audit.EmitSuspect(computedValue, b.ID, s.Key, emit)
	}
}

// EffectFacts implements audit.Family: a set rule feeds no ledger.
func (kind) EffectFacts(*audit.Auditor, *plan.Binding, change.Key, string, effects.Effect, func(drift.Fact)) {
}

// RowFacts implements audit.Family: a set rule keeps no rows.
func (kind) RowFacts(*audit.Auditor, audit.Row, func(drift.Fact)) {}

// Case implements audit.Family: each fact is a suspect by itself.
func (kind) Case(*audit.Judge) audit.Case { return nil }

var procedures = map[drift.Kind]*auditing.Procedure{
	computedValue: {Items: auditing.Items{auditing.OwnItem}, Judge: judgeValue},
	drift.Parked:  {Rows: auditing.Rows{auditing.ParkedRows}, Judge: judgeParked, Mend: clearParked},
}

// Procedure implements auditing.Family.
func (kind) Procedure(of drift.Kind) *auditing.Procedure { return procedures[of] }

// wantedOfSuspect is what a suspect item must hold as it was read; false if it is gone, or of another entity.
func wantedOfSuspect(e *auditing.Evidence, sus drift.Suspect) (Wanted, bool) {
	return wantedIn(e.Planner, plan.ItemRule{Binding: e.ByID(sus.Rule), Key: sus.Item}, table.Image(e.Items[sus.Item]))
}

func judgeValue(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	b, item := e.ByID(sus.Rule), e.Items[sus.Item]
	w, ok := wantedOfSuspect(e, sus)
	reading := drift.ReadingOf(sus, change.Digest(append([]change.Value{auditing.RuleValue(b, item), change.Bool(ok)}, w.Values...)...))
	if ok && !w.holds(b, item) {
		f := drift.Finding{Rule: b.Rule.Name, Kind: computedValue, Item: sus.Item, WriteUnits: audit.UnitsOf(item)}
		reading.Findings = audit.CompareAttributes(f, b.Rule.Writes, w.Values, item)
	}
	return reading
}

func judgeParked(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	if w, _ := wantedOfSuspect(e, sus); w.Bad != nil {
		return e.JudgeParked(sus, w.Bad.Code)
	}
	return e.JudgeParked(sus, "")
}

// clearParked deletes the parked record of an item that the rule can read, if the item still holds what was read.
func clearParked(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	id := plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: r.Suspect.Item}
	return e.DeleteParked(ctx, r.Suspect, target.StillReads(e.Tables.Reader, id, id.Rule.Reads, e.Items[id.Key])...)
}

// StampScope implements explaining.Family: the stamp names the item alone.
func (kind) StampScope(b *plan.Binding, s *audit.Subject) (string, bool) {
	return "", s.Match.Entity == b.Rule.Target
}

// RowsOf implements explaining.Family.
func (kind) RowsOf(*explaining.Explainer, *plan.Binding, *audit.Subject) []explaining.Row { return nil }
