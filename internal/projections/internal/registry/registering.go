package registry

import (
	"cmp"
	"context"
	"fmt"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// bindRules binds the rules, registers new ones, and retires those not in the file. The next round reads what this one registered.
func (reg *Registry) bindRules(ctx context.Context, opts Options, known map[string]state.Rule, lives int64) (table.Round, error) {
	m := Match(opts.Rules, known)
	agreed := opts.AgreedEpoch == AnyEpoch || opts.AgreedEpoch == reg.Planner.Epoch
	if len(m.Retire) > 0 && (opts.Attach || !agreed) {
		return table.Lost, m.Refusal(reg.tables.StateTable)
	}
	spread := m.spread()
	switch {
	case opts.Attach && len(m.New) > 0:
		return table.Lost, NotInForce(reg.tables.Table, "rule "+m.New[0].Name+" is")
	case opts.Attach && len(spread) > 0:
		return table.Lost, NotInForce(reg.tables.Table, "the larger write_shards of rule "+spread[0].Name+" are")
	}
	formers, err := m.ReadFormers(ctx, reg.tables.Reader)
	if err != nil {
		return table.Lost, err
	}
	if len(m.New)+len(spread)+len(m.Retire) > 0 {
		if err := m.checkRows(); err != nil {
			return table.Lost, err
		}
		return reg.registerRules(ctx, m, spread, formers)
	}
	if !opts.Attach {
		if err := reg.renameRules(ctx, m); err != nil {
			return table.Lost, err
		}
	}
	reg.Planner.Bindings = plan.Bind(opts.Rules, m.IDs)
	reg.Planner.AddFormer(formers...)
	reg.changesSeen.Store(lives)
	for _, r := range opts.Rules.Rules {
		b := reg.Planner.Of(r)
		item := known[b.ID]
		BindRule(reg.Planner, b, item)
		if err := reg.readCountExtents(ctx, b); err != nil {
			return table.Lost, err
		}
		if item.State == state.Live {
			b.Live.Store(true)
		}
		if item.State != state.Live || item.Counted != item.Generation {
			reg.Found.NewRules = append(reg.Found.NewRules, r.Name)
		}
	}
	for _, b := range formers {
		if !b.Cleaned.Load() {
			reg.Found.FormerRules = append(reg.Found.FormerRules, known[b.ID].Name)
		}
	}
	return table.Finished, nil
}

// BindRule binds a rule to what the registry says of it.
func BindRule(p *plan.Planner, b *plan.Binding, item state.Rule) {
	b.Epoch, b.Suffixes, b.Incarnation = item.Epoch, item.WriteShardsMax, p.Incarnation
	b.Generation.Store(int64(item.Generation))
	b.Counted.Store(int64(item.Counted))
	b.Located.Store(item.Located)
	if item.Begun == item.Generation {
		b.Stream = item.Stream
	}
	if item.Locator != "" {
		p.Locate(b.Rule.Pointed(), item.Locator)
	}
}

// NotInForce says which part of the file another process has to bring into force first.
func NotInForce(tableName, what string) *table.SetupError {
	return &table.SetupError{Problem: fmt.Sprintf("%s not in force on table %s yet", what, tableName),
		Remedy: "start `dynamill run` or `dynamill replay` with this rule file first"}
}

// registerRules retires rules, adds others and write suffixes, as many as one transaction holds, under a new epoch: a worker that does not
// know it must not go on. If another process registers at the same time, nothing is written.
func (reg *Registry) registerRules(ctx context.Context, m Matched, spread []*rules.Rule, formers []*plan.Binding) (table.Round, error) {
	items := []ddb.TransactWriteItem{reg.epochWrite(reg.Planner.Epoch + 1)}
	if len(m.New) > 0 {
		text := m.set.Text()
		items = append(items, reg.tables.PutPart(state.FileRow(textName(text), text), "", table.NewExpression()))
	}
	for _, id := range m.Retire {
		items = append(items, reg.RuleWrite(id, "state", table.Text(state.Retiring)))
	}
	for _, r := range spread {
		items = append(items, reg.RuleWrite(m.IDs[r], "writeShardsMax", table.Number(int64(r.Suffixes()))))
	}
	items = append(items, reg.newRuleWrites(m, formers)...)
	err := reg.tables.Transact(ctx, "registering new rules", []string{""}, items[:min(len(items), plan.TransactActionsMax)])
	if table.LostRace(err) {
		return table.Lost, nil
	}
	return table.Advanced, err
}

// RulesStand is the condition that the registry is the one that this engine knows, and has no newer rules.
func (reg *Registry) RulesStand(c *table.Expression) string {
	return c.Format("%n = %v AND %n = %v", "epoch", table.Number(int64(reg.Planner.Epoch)), "incarnation", table.Text(reg.Planner.Incarnation))
}

// epochWrite begins a newer epoch, if the rules stand.
func (reg *Registry) epochWrite(epoch int) ddb.TransactWriteItem {
	c := table.NewExpression()
	raise := c.Format("SET %n = %v", "epoch", table.Number(int64(epoch)))
	return reg.tables.UpdatePart(state.TableKey(), raise, reg.RulesStand(c), c)
}

// newRuleWrites are the rows of new rules.
func (reg *Registry) newRuleWrites(m Matched, formers []*plan.Binding) []ddb.TransactWriteItem {
	taken, located := map[string]bool{}, map[string]bool{}
	for id := range m.known {
		taken[id] = true
	}
	for _, b := range formers {
		located[b.Locator] = true
	}
	locators, made := map[string]string{}, map[string]bool{} // of entities that are found by rules in force, or by new ones before
	for _, r := range m.set.Rules {
		if item, ok := m.known[m.IDs[r]]; ok && r.ByUnique {
			entity := r.Pointed().Name
			locators[entity] = cmp.Or(item.Locator, entity)
			made[entity] = made[entity] || item.Located || item.State == state.Live
		}
	}
	var writes []ddb.TransactWriteItem
	for _, r := range m.New {
		row := state.Rule{
			Name: r.Name, Fingerprint: r.Fingerprint, State: state.Seeding, Epoch: reg.Planner.Epoch + 1,
			File: textName(m.set.Text()), WriteShardsMax: r.Suffixes(),
		}
		if r.Folds() {
			row.Generation = row.Epoch
		}
		if r.ByUnique {
			entity := r.Pointed().Name
			if locators[entity] == "" {
				locators[entity] = FreeName(entity, located)
			}
			row.Locator, row.Located = locators[entity], r.Folds() && made[entity]
		}
		id := FreeID(r.Name, taken)
		writes = append(writes, reg.tables.PutPart(row.Row(id), "attribute_not_exists(pk)", table.NewExpression()))
	}
	return writes
}

// RuleWrite sets one attribute of a rule's row. A row that is not there is not made: the state table is another one.
func (reg *Registry) RuleWrite(id, attribute string, v ddb.AttributeValue) ddb.TransactWriteItem {
	c := table.NewExpression()
	set := c.Format("SET %n = %v", attribute, v)
	return reg.tables.UpdatePart(state.RuleKey(id), set, "attribute_exists(pk)", c)
}

// LiveWrite brings a rule to life; a hot rule displays its newest generation from then on.
func (reg *Registry) LiveWrite(b *plan.Binding) ddb.TransactWriteItem {
	c := table.NewExpression()
	set, condition := c.Format("SET %n = %v", "state", table.Text(state.Live)), "attribute_exists(pk)"
	if generation := table.Number(b.Generation.Load()); b.Rule.Folds() {
		set += c.Format(", %n = %v", state.CountedAttribute, generation)
		condition = c.Format("%n = %v", state.GenerationAttribute, generation)
	}
	return reg.tables.UpdatePart(state.RuleKey(b.ID), set, condition, c)
}

// renameRules has the registry call rules as the file does.
func (reg *Registry) renameRules(ctx context.Context, m Matched) error {
	for _, r := range m.renamed {
		c := table.NewExpression()
		set := c.Format("SET %n = %v", "name", table.Text(r.Name))
		if _, err := reg.tables.UpdateState(ctx, "", "renaming a rule in the registry", state.RuleKey(m.IDs[r]), set, "attribute_exists(pk)",
			c); err != nil {
			return err
		}
	}
	return nil
}
