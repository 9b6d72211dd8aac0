package auditing

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// What State digests is what a judgement goes by and no more: a suspect is not
// to seem to move because another attribute of its item, or of its parent, does.

// EffectsValue is what effects are, for a State.
func EffectsValue(effects plan.Effects) change.Value {
	all := map[string]change.Value{}
	for k, f := range effects {
		all[k.String()] = change.String(f.String())
	}
	return change.Map(all)
}

// RuleValue is what an item holds under a rule, for a State.
func RuleValue(b *plan.Binding, item change.Item) change.Value {
	if item == nil {
		return change.Value{}
	}
	return change.List(append(plan.ValuesOf(b.Rule, item), item.Lookup(b.Stamp)))
}

// RowValue is what a row holds, for a State.
func RowValue(r table.Row) change.Value { return itemValue(attributes.ItemFromTable(r)) }

func itemValue(it change.Item) change.Value {
	if it == nil {
		return change.Value{}
	}
	return change.Map(it)
}

// EffectsIn are the texts of the effects that a ledger entry has in force.
func EffectsIn(entry table.Row) map[plan.EffectKey]string {
	all := map[plan.EffectKey]string{}
	for name, v := range attributes.FromTable(entry["e"]).Map() {
		all[plan.ParseEffectKey(name)] = v.Text()
	}
	return all
}
