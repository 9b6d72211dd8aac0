package projections

import (
	"context"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// judgeParked compares what is parked of an (item, rule) with what the item asks for.
func (s *auditRead) judgeParked(sus drift.Suspect) drift.Reading {
	r := attributes.ItemFromTable(s.rows[s.rowsOf(sus)[0]])
	want := s.parkingAsked(sus)
	finding := drift.Finding{Rule: s.ruleName(sus.Rule), Item: sus.Item}
	return drift.Reading{
		Suspect: sus, State: change.Digest(itemValue(r), change.String(want)), Concerns: []string{drift.KeyToken(sus.Item), mirrors.Token(sus.Item)},
		Findings: audit.CompareParked(finding, want, r), Fix: drift.Fix{Keys: []change.Key{sus.Item}},
	}
}

// parkingAsked is the code under which an item that was read has to be parked; "" for none.
func (s *auditRead) parkingAsked(sus drift.Suspect) string {
	b := s.planner.ByID(sus.Rule)
	if b != nil && b.Rule.MakesItems() && b.Rule.Target.HasKey(sus.Item) {
		if s.askedFor(b, sus) && plan.PlaceOf(b, sus.Item, table.Image(s.items[sus.Item])) == plan.PlaceOccupied {
			return plan.OccupiedCode
		}
		return ""
	}
	if b == nil || !b.Rule.HasParent() {
		if f := s.planner.EffectsOf(sus.Item, table.Image(s.items[sus.Item]))[sus.Rule]; f.Kind == plan.Parked {
			return f.Parked.Code
		}
		return ""
	}
	if bad := copies.BadChild(s.planner, s.childOf(sus), s.items[sus.Item]); bad != nil {
		return bad.Code
	}
	return ""
}

// askedFor reports whether some source asks for a mirror item.
func (s *auditRead) askedFor(b *plan.Binding, sus drift.Suspect) bool {
	return slices.ContainsFunc(s.sourcesOf(sus), func(text string) bool {
		source := change.ParseKey(text)
		f := s.planner.EffectsOf(source, table.Image(s.items[source]))[b.ID]
		return f.Kind == plan.Mirrored && f.Target == sus.Item
	})
}

// ReferenceChild is a suspect as an item and the copy rule of which it may be a child.
func (s *auditRead) childOf(sus drift.Suspect) plan.ItemRule {
	return plan.ItemRule{Binding: s.planner.ByID(sus.Rule), Key: sus.Item}
}

// ClearParked deletes a parked record that its item does not ask for. The same
// transaction checks that no process has parked it anew, and that the item (of a copy
// rule) or its ledger entry is as it was read.
func (a *Audit) ClearParked(ctx context.Context, r drift.Reading) (bool, error) {
	s := a.newRead()
	again, err := s.read(ctx, []drift.Suspect{r.Suspect})
	if err != nil || again[0].State != r.State {
		return false, err
	}
	key, c := s.rowsOf(r.Suspect)[0], table.NewExpression()
	condition := table.Whole(c.SameAs(s.rows[key], "parking", "code"))
	items := []ddb.TransactWriteItem{a.tables.DeletePart(key, condition, c)}
	child := s.childOf(r.Suspect)
	switch {
	case child.Binding == nil || !child.Rule.HasParent():
		ent, err := state.ReadEntry(s.planner, s.rows[state.EntryKey(r.Suspect.Item)])
		if err != nil || ent != nil && ent.Effects[r.Suspect.Rule].Kind == plan.Parked {
			return false, err // the entry comes first
		}
		check, err := s.entryCheck(r.Suspect.Item)
		if err != nil {
			return false, err
		}
		items = append(items, check)
	case a.tables.CanExist(r.Suspect.Item):
		items = append(items, copies.StillNamed(a.tables.Reader, child, s.items[r.Suspect.Item]))
	}
	return a.mended(a.tables.Transact(ctx, "clearing what is parked of "+r.Suspect.Item.String(), []string{r.Suspect.Rule}, items))
}
