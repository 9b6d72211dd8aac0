package projections

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// registerStep is the outcome of one attempt to bind the file's rules.
type registerStep uint8

const (
	rulesBound     registerStep = iota // every rule of the file is in the registry
	rulesAdvanced                      // some rules were registered: read the registry again
	rulesContended                     // another process registers: read the registry again
)

// bindRules binds the file's rules to the registry's, registers what is new, and
// retires what is not in the file any more.
func (e *Engine) bindRules(ctx context.Context, cfg Config, known map[string]row, lives int64) (registerStep, error) {
	m := matchRules(cfg.Rules, known)
	agreed := cfg.ChangeRules && (cfg.AgreedEpoch == 0 || cfg.AgreedEpoch == e.epoch)
	if len(m.retire) > 0 && (cfg.Attach || !agreed) {
		return 0, m.refusal(e.stateTable, known)
	}
	spread := m.spread(cfg.Rules, known)
	switch {
	case cfg.Attach && len(m.fresh) > 0:
		return 0, e.notInForce("rule " + m.fresh[0].Name + " is")
	case cfg.Attach && len(spread) > 0:
		return 0, e.notInForce("so many write_shards of rule " + spread[0].Name + " are")
	}
	formers, err := e.readFormers(ctx, known, m.retire)
	if err != nil {
		return 0, err
	}
	if len(m.fresh)+len(spread)+len(m.retire) > 0 {
		return e.registerRules(ctx, cfg.Rules, m, spread, known, formers)
	}
	if !cfg.Attach {
		if err := e.renameRules(ctx, m); err != nil {
			return 0, err
		}
		if err := e.keepText(ctx, cfg.Rules, m, known); err != nil {
			return 0, err
		}
	}
	e.planner = &plan.Planner{Bindings: plan.Bind(cfg.Rules, m.ids), Incarnation: e.incarnation, Epoch: e.epoch, CanExist: e.canExist}
	e.planner.AddFormer(formers...)
	e.lives.Store(lives)
	for _, r := range cfg.Rules.Rules {
		b := e.planner.Of(r)
		item := known[b.ID]
		b.Epoch, b.Suffixes = int(numberOf(item["epoch"])), int(numberOf(item["writeShardsMax"]))
		if locator := textOf(item["locator"]); locator != "" {
			e.planner.Locate(r.Target, locator)
		}
		if textOf(item["state"]) == stateLive {
			b.Live.Store(true)
		} else {
			e.description.NewRules = append(e.description.NewRules, r.Name)
		}
	}
	for _, b := range formers {
		if !b.Cleaned.Load() {
			e.description.FormerRules = append(e.description.FormerRules, textOf(known[b.ID]["name"]))
		}
	}
	return rulesBound, nil
}

// notInForce says which part of the file another process has to bring into force first.
func (e *Engine) notInForce(what string) *SetupError {
	return &SetupError{Problem: fmt.Sprintf("%s not in force on table %s yet", what, e.table), Remedy: "start `dynamill run` with this rule file first"}
}

// registerRules retires rules, adds others, and write suffixes of rules, as many as one
// transaction holds, under a new epoch: a worker that does not know it must not go on.
// If another process registers at the same time, nothing is written.
func (e *Engine) registerRules(ctx context.Context, set *rules.Set, m matched, spread []*rules.Rule, known map[string]row, formers []*plan.Binding) (registerStep, error) {
	c := newExpression()
	raise := c.sprintf("SET %n = %v", "epoch", numberValue(int64(e.epoch+1)))
	unchanged := e.rulesStand(c)
	items := []ddb.TransactWriteItem{{Update: &ddb.Update{
		TableName: &e.stateTable, Key: stateKey{registryPartition, registryTable}.attributes(),
		UpdateExpression: &raise, ConditionExpression: &unchanged,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}
	if len(m.fresh) > 0 {
		items = append(items, e.textWrite(set))
	}
	for _, id := range m.retire {
		items = append(items, e.ruleWrite(id, "state", textValue(stateRetiring)))
	}
	for _, r := range spread {
		items = append(items, e.ruleWrite(m.ids[r], "writeShardsMax", numberValue(int64(r.Suffixes()))))
	}
	items = append(items, e.freshWrites(set, m, known, formers)...)
	err := e.transact(ctx, "registering new rules", nil, items[:min(len(items), plan.TransactActionsMax)])
	if err != nil && classify(err) == classCanceled {
		return rulesContended, nil
	}
	return rulesAdvanced, err
}

// rulesStand is the condition that the registry is the one that this engine knows, and has no newer rules.
func (e *Engine) rulesStand(c *expression) string {
	return c.sprintf("%n = %v AND %n = %v", "epoch", numberValue(int64(e.epoch)), "incarnation", textValue(e.incarnation))
}

// freshWrites are the rows of new rules.
func (e *Engine) freshWrites(set *rules.Set, m matched, known map[string]row, formers []*plan.Binding) []ddb.TransactWriteItem {
	taken, located := map[string]bool{}, map[string]bool{}
	for id := range known {
		taken[id] = true
	}
	for _, b := range formers {
		located[b.Locator] = true
	}
	locators := map[string]string{} // of entities that are found by rules in force, or by new ones before
	for _, r := range set.Rules {
		if item := known[m.ids[r]]; item != nil && r.ByUnique {
			locators[r.Target.Name] = cmp.Or(textOf(item["locator"]), r.Target.Name)
		}
	}
	var writes []ddb.TransactWriteItem
	for _, r := range m.fresh {
		id := freeName(r.Name, taken)
		taken[id] = true
		item := stateKey{registryPartition, registryRule + id}.attributes()
		item["name"], item["fingerprint"], item["state"] = textValue(r.Name), textValue(r.Fingerprint), textValue(stateSeeding)
		item["epoch"], item["file"] = numberValue(int64(e.epoch+1)), textValue(textName(set.Text()))
		if r.Suffixes() > 0 {
			item["writeShardsMax"] = numberValue(int64(r.Suffixes()))
		}
		if r.ByUnique {
			if locators[r.Target.Name] == "" {
				locators[r.Target.Name] = freeName(r.Target.Name, located)
				located[locators[r.Target.Name]] = true
			}
			item["locator"] = textValue(locators[r.Target.Name])
		}
		writes = append(writes, ddb.TransactWriteItem{Put: &ddb.Put{
			TableName: &e.stateTable, Item: item, ConditionExpression: ptr("attribute_not_exists(pk)"),
		}})
	}
	return writes
}

// ruleWrite sets one attribute of a rule's row. A row that is not there is not made: the state table is another one.
func (e *Engine) ruleWrite(id, attribute string, v ddb.AttributeValue) ddb.TransactWriteItem {
	c := newExpression()
	set := c.sprintf("SET %n = %v", attribute, v)
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: stateKey{registryPartition, registryRule + id}.attributes(),
		UpdateExpression: &set, ConditionExpression: ptr("attribute_exists(pk)"),
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// renameRules has the registry call rules as the file does.
func (e *Engine) renameRules(ctx context.Context, m matched) error {
	for _, r := range m.renamed {
		c := newExpression()
		set := c.sprintf("SET %n = %v", "name", textValue(r.Name))
		in := e.stateUpdate(stateKey{registryPartition, registryRule + m.ids[r]}, set, "attribute_exists(pk)", c)
		if _, err := e.update(ctx, "", "renaming a rule in the registry", in); err != nil {
			return err
		}
	}
	return nil
}

// keepText keeps the file for rules in force that were registered before files
// were kept: to change them, what they were must be known.
func (e *Engine) keepText(ctx context.Context, set *rules.Set, m matched, known map[string]row) error {
	var without []string
	for _, r := range set.Rules {
		if id := m.ids[r]; textOf(known[id]["file"]) == "" {
			without = append(without, id)
		}
	}
	for ids := range slices.Chunk(without, plan.TransactActionsMax-1) {
		items := []ddb.TransactWriteItem{e.textWrite(set)}
		for _, id := range ids {
			items = append(items, e.ruleWrite(id, "file", textValue(textName(set.Text()))))
		}
		if err := e.transact(ctx, "keeping the rule file", nil, items); err != nil {
			return err
		}
	}
	return nil
}
