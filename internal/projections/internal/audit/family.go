package audit

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

// Family is what a kind of rule tells an audit of its rules: facts about what
// they derive, beside those about the ledger's entries, and what is suspect in them.
type Family interface {
	// Facts are what an item says of a rule.
	Facts(a *Auditor, b *plan.Binding, s *Subject, emit func(drift.Fact))
	// EffectFacts tells what an effect that an item asks for says about a group. purpose tells several effects of one rule apart.
	EffectFacts(a *Auditor, b *plan.Binding, source change.Key, purpose string, f effects.Effect, emit func(drift.Fact))
	// RowFacts are what a row of the state table says of the rules of this kind.
	RowFacts(a *Auditor, r Row, emit func(drift.Fact))
	// Case judges facts about one thing of a sort that the kind's family has; nil for every other sort.
	Case(j *Judge) Case
}

// Subject is an item whose facts are asked for.
type Subject struct {
	Key   change.Key
	Image change.Image
	Match rules.Match // of no entity: it is of none
}

// Row is a row of the state table: its key's words are kind/id/name.
type Row struct {
	change.Item
	Kind, ID, Name string
}

// Case judges the facts about one thing, given in their order.
type Case interface {
	Add(f drift.Fact)
	End()
}

// families are those of all rules, in force or not, each once.
func families(p *plan.Planner) []Family {
	var all []Family
	for _, b := range slices.Concat(p.InForce, p.Formers()) {
		if f, ok := b.Family.(Family); ok && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}
