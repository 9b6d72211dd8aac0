package aggregates

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/groupaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

// Effects implements plan.Feeder: a source, or each element of its list, adds to an aggregate.
func (*kind) Effects(b *plan.Binding, m *rules.Match, img change.Image, tell func(string, effects.Effect)) error {
	return Of(b.Rule).ForEach(m, img, func(element string, c rules.Contribution) {
		tell(element, effects.Effect{Kind: effects.Contribution, Amount: c.Amount, Group: c.Group, Per: c.Per})
	})
}

// CanHave implements plan.Feeder.
func (*kind) CanHave(p *plan.Planner, b *plan.Binding, what string, f effects.Effect) bool {
	return f.Kind == effects.Contribution && f.Member == nil && (what != "") == b.Rule.Each.Given() && (f.Per != "") == b.Rule.HasPer() &&
		(b.Rule.ByUnique || p.IsTarget(b.Rule, change.ParseKey(f.Group)))
}

// Words implements plan.Feeder.
func (*kind) Words(b *plan.Binding, f effects.Effect) plan.Words {
	write, what := groups.RollUpText(b, f.Group), f.Amount.String()
	if f.Per != "" {
		what += " under " + f.Per
	}
	return plan.Words{What: what + " in " + f.Group, Undo: write, Redo: write}
}

var (
	_ host.Grouper      = (*kind)(nil)
	_ host.Keeper       = (*kind)(nil)
	_ plan.Feeder       = (*kind)(nil)
	_ audit.Family      = (*kind)(nil)
	_ auditing.Family   = (*kind)(nil)
	_ explaining.Family = (*kind)(nil)
	_ groupaudit.Form   = (*Form)(nil)
	_ groups.Tidier     = (*Form)(nil)
)

// RowFacts implements audit.Family.
func (k *kind) RowFacts(a *audit.Auditor, r audit.Row, emit func(drift.Fact)) {
	groupaudit.RowFacts(k, a, r, emit)
}
