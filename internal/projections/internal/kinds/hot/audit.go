package hot

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

var (
	_ audit.Family      = (*kind)(nil)
	_ auditing.Family   = (*kind)(nil)
	_ explaining.Family = (*kind)(nil)
	_ explaining.Lister = (*kind)(nil)
)

// Facts implements audit.Family: an item that the rule cannot read must be parked. What groups add up to is for a count to find out, which
// reads the stream beside the table.
func (*kind) Facts(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	if s.Match.Entity != b.Rule.Source {
		return
	}
	if _, why := Of(b.Rule).read(&s.Match, s.Image); why != nil {
		audit.MustBeParked(b.ID, s.Key, why.Code, emit)
	}
}

// EffectFacts implements audit.Family: a hot rule feeds no ledger.
func (*kind) EffectFacts(*audit.Auditor, *plan.Binding, change.Key, string, effects.Effect, func(drift.Fact)) {
}

// RowFacts implements audit.Family.
func (*kind) RowFacts(*audit.Auditor, audit.Row, func(drift.Fact)) {}

// Case implements audit.Family: each fact is a suspect by itself.
func (*kind) Case(*audit.Judge) audit.Case { return nil }

var procedures = map[drift.Kind]*auditing.Procedure{
	drift.Parked: {Rows: auditing.Rows{auditing.ParkedRows}, Items: auditing.Items{auditing.OwnItem}, Judge: judgeParked, Mend: clearParked},
}

// Procedure implements auditing.Family.
func (*kind) Procedure(of drift.Kind) *auditing.Procedure { return procedures[of] }

func judgeParked(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	id := plan.ItemRule{Binding: e.ByID(sus.Rule), Key: sus.Item}
	if item := e.Items[sus.Item]; item != nil {
		if why := unreadable(e.Planner, id, item); why != nil {
			return e.JudgeParked(sus, why.Code)
		}
	}
	return e.JudgeParked(sus, "")
}

// clearParked deletes the parked record of an item that the rule can read, if the item still holds what was read.
func clearParked(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	id := plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: r.Suspect.Item}
	return e.DeleteParked(ctx, r.Suspect, target.StillReads(e.Tables.Reader, id, id.Rule.Reads, e.Items[id.Key])...)
}

// StampScope implements explaining.Family: the group that the item displays.
func (*kind) StampScope(b *plan.Binding, s *audit.Subject) (string, bool) {
	if s.Match.Entity != b.Rule.Target {
		return "", false
	}
	group, ok, err := b.Rule.GroupOf(&s.Match, s.Image)
	return groups.Scope(b, group), ok && err == nil
}

// QueryOf implements explaining.Lister: the rows of the group that the item displays, one for each lane.
func (k *kind) QueryOf(b *plan.Binding, s *audit.Subject) (explaining.Query, bool) {
	group, ok := k.StampScope(b, s)
	generation := cmp.Or(b.Counted.Load(), b.Generation.Load())
	if !ok || generation == 0 {
		return explaining.Query{}, false
	}
	rows := state.FoldedOf(plan.GroupRef{Binding: b, Group: group}, generation)
	return explaining.Query{Partition: rows, Name: "folded row", Says: rowWords}, true
}

// rowWords tell people what a row of a group says.
func rowWords(r table.Row) string {
	f := state.ReadFolded(r)
	if f.Torn {
		return "DynamoDB refused to add to it, or another program wrote in it: run `dynamill verify --repair`"
	}
	text := fmt.Sprintf("%s from %s, after %s", f.Amount.Value, printable.Counted(f.Amount.Members, "source"),
		printable.Counted(f.Amount.Operations, "operation"))
	if f.IsBase() {
		return "what the group began with: " + text
	}
	return "of the lane that shard " + f.Lane + " began: " + text + "; up to record " + lanes.Unpad(f.HighWater)
}

// RowsOf implements explaining.Family: they are found by a query.
func (*kind) RowsOf(*explaining.Explainer, *plan.Binding, *audit.Subject) []explaining.Row {
	return nil
}

var _ rules.Folder = (*Form)(nil)
