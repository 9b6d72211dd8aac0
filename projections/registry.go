package projections

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// A rule's state in the registry.
const (
	stateSeeding = "seeding" // its aggregates are not shown yet
	stateLive    = "live"
)

func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// describeTable learns the user table's keys, and what tells it from another of the same name.
func (e *Engine) describeTable(ctx context.Context, set *rules.Set) (string, error) {
	out, err := e.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &e.table})
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return "", &SetupError{fmt.Sprintf("table %s does not exist", e.table), "check --table, --region and --endpoint", err}
	}
	if err != nil {
		return "", fmt.Errorf("describing table %s: %w", e.table, err)
	}
	t := out.Table
	e.streamLabel.Store(t.LatestStreamLabel)
	kinds := map[string]change.Kind{}
	for _, d := range t.AttributeDefinitions {
		kinds[*d.AttributeName] = map[ddb.ScalarAttributeType]change.Kind{
			ddb.ScalarAttributeTypeS: change.KindString, ddb.ScalarAttributeTypeN: change.KindNumber, ddb.ScalarAttributeTypeB: change.KindBinary,
		}[d.AttributeType]
	}
	for _, k := range t.KeySchema {
		if k.KeyType == ddb.KeyTypeHash {
			e.partitionKey = *k.AttributeName
		} else {
			e.sortKey = *k.AttributeName
		}
	}
	if e.partitionKey != set.Table.PartitionKey || e.sortKey != set.Table.SortKey {
		return "", &SetupError{
			Problem: fmt.Sprintf("the keys of table %s are [%s], but the rule file says [%s]", e.table,
				keyNames(e.partitionKey, e.sortKey), keyNames(set.Table.PartitionKey, set.Table.SortKey)),
			Remedy: "write the table's own key names under table.keys",
		}
	}
	if guard.Off(guard.Claims) {
		for _, r := range set.Rules {
			r.Injective = r.Kind == rules.Mirror
		}
	}
	if err := set.CheckKeys(kinds[e.partitionKey], kinds[e.sortKey]); err != nil {
		return "", err
	}
	e.partitionN, e.sortN = kinds[e.partitionKey] == change.KindNumber, kinds[e.sortKey] == change.KindNumber
	e.description = Description{StateTable: e.stateTable}
	if t.TableId != nil && *t.TableId != "" {
		return *t.TableId, nil
	}
	id := e.table
	if t.CreationDateTime != nil { // some emulators give no table id
		id += "@" + t.CreationDateTime.UTC().Format(time.RFC3339Nano)
	}
	return id, nil
}

func keyNames(partition, sort string) string {
	if sort == "" {
		return partition
	}
	return partition + ", " + sort
}

// openRegistry makes sure of the state table and binds the rules to what the
// registry knows of them.
func (e *Engine) openRegistry(ctx context.Context, cfg Config, tableID string) error {
	created, err := e.ensureStateTable(ctx, cfg.Attach)
	if err != nil {
		return err
	}
	e.description.StateTableCreated = created
	for range 10 {
		table, known, err := e.readRegistry(ctx)
		if err != nil {
			return err
		}
		if table == nil {
			if cfg.Attach {
				return &SetupError{Problem: fmt.Sprintf("state table %s is empty", e.stateTable), Remedy: "start `dynamill run` first"}
			}
			if founded, err := e.checkForeign(ctx); err != nil {
				return err
			} else if founded {
				continue
			}
			if err := e.ensureTTL(ctx); err != nil {
				return err
			}
			if err := e.foundRegistry(ctx, tableID); err != nil {
				return err
			}
			continue
		}
		if got := textOf(table["tableId"]); got != tableID {
			return &SetupError{
				Problem: fmt.Sprintf("state table %s belongs to another table of the name %s (id %s, this one is %s)", e.stateTable, e.table, got, tableID),
				Remedy:  "name another one with --state-table, or delete it if that table is gone",
			}
		}
		e.incarnation, e.epoch = textOf(table["incarnation"]), int(numberOf(table["epoch"]))
		done, err := e.bindRules(ctx, cfg, known, numberOf(table["live"]))
		if err != nil || done {
			return err
		}
	}
	return fmt.Errorf("registering the rules in %s: other processes keep registering theirs", e.stateTable)
}

// readRegistry reads the registry: the table's own item, nil if there is none,
// and one for each rule by id. A query is not one moment's picture. The table's
// item is therefore read before the rules, so that whatever it says is live is
// found live, and again after them, should more rules have been registered.
func (e *Engine) readRegistry(ctx context.Context) (row, map[string]row, error) {
	for {
		table, err := e.readTableItem(ctx)
		if err != nil || table == nil {
			return nil, nil, err
		}
		known, err := e.readRules(ctx)
		if err != nil {
			return nil, nil, err
		}
		after, err := e.readTableItem(ctx)
		if err != nil || textOf(after["epoch"]) == textOf(table["epoch"]) {
			return table, known, err
		}
	}
}

func (e *Engine) readTableItem(ctx context.Context) (row, error) {
	out, err := attempt(ctx, e, "reading the rules epoch", func() (*dynamodb.GetItemOutput, error) {
		return e.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &e.stateTable, Key: stateKey{registryPartition, registryTable}.attributes(), ConsistentRead: ptr(true),
		})
	})
	if err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return out.Item, nil
}

func (e *Engine) readRules(ctx context.Context) (map[string]row, error) {
	c := newExpression()
	in := &dynamodb.QueryInput{TableName: &e.stateTable, ConsistentRead: ptr(true)}
	in.KeyConditionExpression = ptr(c.sprintf("%n = %v AND begins_with(%n, %v)", statePartition, textValue(registryPartition), stateSort, textValue(registryRule)))
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = c.names, c.values
	known := map[string]row{}
	err := e.queryPages(ctx, "reading the registry", in, func(rows []row) error {
		for _, item := range rows {
			known[strings.TrimPrefix(textOf(item[stateSort]), registryRule)] = item
		}
		return nil
	})
	return known, err
}

// foundRegistry writes the registry of a new state table; another process may be faster.
func (e *Engine) foundRegistry(ctx context.Context, tableID string) error {
	item := stateKey{registryPartition, registryTable}.attributes()
	item["table"], item["tableId"] = textValue(e.table), textValue(tableID)
	item["incarnation"], item["epoch"] = textValue(randomID()), numberValue(0)
	item["created"] = textValue(e.now().UTC().Format(time.RFC3339))
	_, err := attempt(ctx, e, "founding the registry", func() (*dynamodb.PutItemOutput, error) {
		return e.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &e.stateTable, Item: item, ConditionExpression: ptr("attribute_not_exists(pk)"),
		})
	})
	if err != nil && classify(err) != classCondition {
		return err
	}
	return nil
}

// matched is how the rules of a file stand to those of the registry.
type matched struct {
	ids            map[*rules.Rule]string
	fresh, renamed []*rules.Rule
	refused        *RulesChangedError // nil if every rule in force is in the file, unchanged
}

// matchRules finds each rule of the file in the registry: by name, or, renamed, by fingerprint.
func (e *Engine) matchRules(set *rules.Set, known map[string]row) matched {
	m := matched{ids: map[*rules.Rule]string{}}
	used := map[string]bool{}
	inOrder := slices.Sorted(maps.Keys(known))
	find := func(r *rules.Rule, same func(row) bool) bool {
		for _, id := range inOrder {
			if item := known[id]; !used[id] && textOf(item["fingerprint"]) == r.Fingerprint && same(item) {
				m.ids[r], used[id] = id, true
				return true
			}
		}
		return false
	}
	var rest []*rules.Rule
	for _, r := range set.Rules {
		if !find(r, func(item row) bool { return textOf(item["name"]) == r.Name }) {
			rest = append(rest, r)
		}
	}
	for _, r := range rest {
		if find(r, func(row) bool { return true }) {
			m.renamed = append(m.renamed, r)
		} else {
			m.fresh = append(m.fresh, r)
		}
	}
	refused := &RulesChangedError{StateTable: e.stateTable}
	for id, item := range known {
		if name := textOf(item["name"]); used[id] {
			continue
		} else if ruleNamed(m.fresh, name) {
			refused.Changed = append(refused.Changed, name)
		} else {
			refused.Removed = append(refused.Removed, name)
		}
	}
	if len(refused.Changed)+len(refused.Removed) > 0 {
		slices.Sort(refused.Changed)
		slices.Sort(refused.Removed)
		m.refused = refused
	}
	return m
}

// bindRules binds the file's rules to the registry's, and registers what is
// new. It reports false if the registry has to be read again.
func (e *Engine) bindRules(ctx context.Context, cfg Config, known map[string]row, lives int64) (bool, error) {
	m := e.matchRules(cfg.Rules, known)
	ids, fresh, renamed := m.ids, m.fresh, m.renamed
	if m.refused != nil {
		return false, m.refused
	}
	if cfg.Attach && len(fresh) > 0 {
		return false, &SetupError{Problem: fmt.Sprintf("rule %s is not in force on table %s yet", fresh[0].Name, e.table), Remedy: "start `dynamill run` with this rule file first"}
	}
	for _, r := range renamed {
		if err := e.renameRule(ctx, ids[r], r.Name); err != nil {
			return false, err
		}
	}
	var spread []*rules.Rule // with more write suffixes than ever before
	for _, r := range cfg.Rules.Rules {
		if known[ids[r]] != nil && int64(r.WriteShards) > numberOf(known[ids[r]]["writeShardsMax"]) {
			spread = append(spread, r)
		}
	}
	if len(fresh) > 0 || len(spread) > 0 {
		return false, e.registerRules(ctx, fresh, spread, ids, known)
	}
	e.planner = &plan.Planner{Bindings: plan.Bind(cfg.Rules, ids), Incarnation: e.incarnation, Epoch: e.epoch}
	e.lives.Store(lives)
	for _, r := range cfg.Rules.Rules {
		b := e.planner.Of(r)
		b.Epoch, b.Suffixes = int(numberOf(known[b.ID]["epoch"])), int(numberOf(known[b.ID]["writeShardsMax"]))
		if live := textOf(known[b.ID]["state"]) == stateLive; live {
			b.Live.Store(true)
		} else {
			e.description.NewRules = append(e.description.NewRules, r.Name)
		}
	}
	return true, nil
}

func ruleNamed(rs []*rules.Rule, name string) bool {
	for _, r := range rs {
		if r.Name == name {
			return true
		}
	}
	return false
}

// registerRules adds rules, and write suffixes of rules, under a new epoch:
// a worker that does not know them must not go on. Where another process
// registers at the same time, nothing is written, and the registry is read again.
func (e *Engine) registerRules(ctx context.Context, fresh, spread []*rules.Rule, ids map[*rules.Rule]string, known map[string]row) error {
	c := newExpression()
	raise := c.sprintf("SET %n = %v", "epoch", numberValue(int64(e.epoch+1)))
	unchanged := c.sprintf("%n = %v", "epoch", numberValue(int64(e.epoch)))
	items := []ddb.TransactWriteItem{{Update: &ddb.Update{
		TableName: &e.stateTable, Key: stateKey{registryPartition, registryTable}.attributes(),
		UpdateExpression: &raise, ConditionExpression: &unchanged,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}
	taken := map[string]bool{}
	for id := range known {
		taken[id] = true
	}
	if len(fresh)+len(spread) >= plan.TransactActionsMax {
		return &SetupError{Problem: fmt.Sprintf("%d rules are new or spread further at once", len(fresh)+len(spread)), Remedy: fmt.Sprintf("add at most %d at a time", plan.TransactActionsMax-1)}
	}
	for _, r := range fresh {
		id := ruleID(r.Name, taken)
		taken[id] = true
		item := stateKey{registryPartition, registryRule + id}.attributes()
		item["name"], item["fingerprint"], item["state"] = textValue(r.Name), textValue(r.Fingerprint), textValue(stateSeeding)
		item["epoch"] = numberValue(int64(e.epoch + 1))
		if r.WriteShards > 0 {
			item["writeShardsMax"] = numberValue(int64(r.WriteShards))
		}
		items = append(items, ddb.TransactWriteItem{Put: &ddb.Put{
			TableName: &e.stateTable, Item: item, ConditionExpression: ptr("attribute_not_exists(pk)"),
		}})
	}
	for _, r := range spread {
		c := newExpression()
		set := c.sprintf("SET %n = %v", "writeShardsMax", numberValue(int64(r.WriteShards)))
		items = append(items, ddb.TransactWriteItem{Update: &ddb.Update{
			TableName: &e.stateTable, Key: stateKey{registryPartition, registryRule + ids[r]}.attributes(),
			UpdateExpression: &set, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}})
	}
	err := e.transact(ctx, "registering new rules", nil, items)
	if err != nil && classify(err) == classCanceled {
		return nil
	}
	return err
}

// ruleID is a rule's name where it is free, else with a number behind it.
func ruleID(name string, taken map[string]bool) string {
	id := name
	for n := 2; taken[id]; n++ {
		id = fmt.Sprintf("%s-%d", name, n)
	}
	return id
}

func (e *Engine) renameRule(ctx context.Context, id, name string) error {
	c := newExpression()
	set := c.sprintf("SET %n = %v", "name", textValue(name))
	_, err := e.update(ctx, "", "renaming a rule in the registry", &dynamodb.UpdateItemInput{
		TableName: &e.stateTable, Key: stateKey{registryPartition, registryRule + id}.attributes(),
		UpdateExpression: &set, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	})
	return err
}

// errWentLive says that rules went live since this engine last looked.
var errWentLive = errors.New("rules went live meanwhile")

// checkRegistry makes sure that the rules stand as this engine took them to:
// records must not be called done under rules that are not all there are
// (ErrEpochMoved), nor without the roll-ups of rules that another process has
// brought to life meanwhile (errWentLive; the next look finds them live here too).
func (e *Engine) checkRegistry(ctx context.Context) error {
	table, err := e.readTableItem(ctx)
	if err != nil {
		return err
	}
	if (int(numberOf(table["epoch"])) != e.epoch || textOf(table["incarnation"]) != e.incarnation) && !guard.Off(guard.EpochChecked) {
		return ErrEpochMoved
	}
	if numberOf(table["live"]) == e.lives.Load() {
		return nil
	}
	known, err := e.readRules(ctx)
	if err != nil {
		return err
	}
	for id, item := range known {
		if b := e.planner.ByID(id); b != nil && textOf(item["state"]) == stateLive {
			b.Live.Store(true)
		}
	}
	e.lives.Store(numberOf(table["live"]))
	return errWentLive
}

// underRegistry does work, and does it again if rules went live meanwhile, by
// whomever: what was left out because they were not must be made up for.
func (e *Engine) underRegistry(ctx context.Context, do func() error) error {
	for {
		lives := e.lives.Load()
		if err := do(); err != nil {
			return err
		}
		if err := e.checkRegistry(ctx); err != nil && !errors.Is(err, errWentLive) {
			return err
		}
		if e.lives.Load() == lives || guard.Off(guard.LiveAsked) {
			return nil
		}
	}
}
