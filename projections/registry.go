package projections

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// registerTriesMax bounds how often registering begins anew because other processes register theirs.
const registerTriesMax = 10

// openRegistry makes sure of the state table and binds the rules to what the
// registry knows of them.
func (e *Engine) openRegistry(ctx context.Context, cfg Config, tableID string) error {
	created, err := e.tables.EnsureStateTable(ctx, cfg.Attach)
	if err != nil {
		return err
	}
	e.planner = &plan.Planner{CanExist: e.tables.CanExist}
	e.description = Description{StateTable: e.tables.StateTable, StateTableCreated: created}
	for try := 0; try < registerTriesMax; try++ {
		own, known, err := e.readRegistry(ctx)
		if err != nil {
			return err
		}
		if own == nil {
			if cfg.Attach {
				return &table.SetupError{Problem: fmt.Sprintf("state table %s is empty", e.tables.StateTable), Remedy: "start `dynamill run` first"}
			}
			if founded, err := e.checkForeign(ctx); err != nil {
				return err
			} else if founded {
				continue
			}
			if err := e.tables.EnsureTTL(ctx); err != nil {
				return err
			}
			if err := e.foundRegistry(ctx, tableID); err != nil {
				return err
			}
			continue
		}
		if got := own.ID; got != tableID {
			return &table.SetupError{
				Problem: fmt.Sprintf("state table %s belongs to another table, %s (id %s; %s has the id %s)", e.tables.StateTable, own.Name, got, e.tables.Table, tableID),
				Remedy:  "name another one with --state-table, or delete it if that table is gone",
			}
		}
		e.planner.Incarnation, e.planner.Epoch = own.Incarnation, own.Epoch
		switch step, err := e.bindRules(ctx, cfg, known, own.Live); {
		case err != nil || step == rulesBound:
			return err
		case step == rulesAdvanced: // many rules are registered in several steps, each by itself whole
			if try = 0; cfg.AgreedEpoch > 0 {
				cfg.AgreedEpoch = e.planner.Epoch + 1 // this engine's own step; another process's is not agreed to
			}
		}
	}
	return fmt.Errorf("registering the rules in %s: other processes keep registering theirs", e.tables.StateTable)
}

// checkForeign refuses a table without a registry that belongs to another program: it has
// items in it. It reports whether the registry is there by now.
func (e *Engine) checkForeign(ctx context.Context) (founded bool, err error) {
	if holds, err := e.tables.HoldsItems(ctx); err != nil || !holds {
		return false, err
	}
	if own, err := e.readTableItem(ctx); err != nil || own != nil { // another process was faster
		return true, err
	}
	return false, &table.SetupError{
		Problem: fmt.Sprintf("table %s holds items, but not dynamill's state", e.tables.StateTable), Remedy: "name another one with --state-table, or none",
	}
}

// readRegistry reads the registry: the table's own item, nil if there is none,
// and one for each rule by id. A query is not one moment's picture. The table's
// item is therefore read before the rules, so that whatever it says is live is
// found live, and again after them, should more rules have been registered.
func (rd *ruleReader) readRegistry(ctx context.Context) (*state.Table, map[string]state.Rule, error) {
	for {
		row, err := rd.readTableRow(ctx)
		if err != nil || row == nil {
			return nil, nil, err
		}
		rows, err := rd.readRules(ctx)
		if err != nil {
			return nil, nil, err
		}
		after, err := rd.readTableItem(ctx)
		if err != nil {
			return nil, nil, err
		}
		own := state.ReadTable(row)
		if after == nil || after.Epoch != own.Epoch {
			continue
		}
		known := make(map[string]state.Rule, len(rows))
		for id, r := range rows {
			known[id] = state.ReadRule(r)
		}
		return own, known, state.CheckRegistry(rd.reader.StateTable, row, rows)
	}
}

func (rd *ruleReader) readTableRow(ctx context.Context) (table.Row, error) {
	return rd.reader.GetState(ctx, "reading the rules epoch", state.TableKey())
}

func (rd *ruleReader) readTableItem(ctx context.Context) (*state.Table, error) {
	row, err := rd.readTableRow(ctx)
	return state.ReadTable(row), err
}

func (rd *ruleReader) readRules(ctx context.Context) (map[string]table.Row, error) {
	c := table.NewExpression()
	in := rd.reader.StateQuery(state.RulesCondition(c), c)
	known := map[string]table.Row{}
	err := rd.reader.QueryPages(ctx, "reading the registry", in, func(rows []table.Row) error {
		for _, r := range rows {
			known[state.RuleID(r)] = r
		}
		return nil
	})
	return known, err
}

// foundRegistry writes the registry of a new state table; another process may be faster.
func (e *Engine) foundRegistry(ctx context.Context, tableID string) error {
	row := state.Table{Name: e.tables.Table, ID: tableID, Incarnation: randomID(), Created: e.now()}.Row()
	_, err := table.Attempt(ctx, e.tables.Reader, "founding the registry", func() (*dynamodb.PutItemOutput, error) {
		return e.tables.Client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &e.tables.StateTable, Item: row, ConditionExpression: new("attribute_not_exists(pk)"),
		})
	})
	if err != nil && awscall.Classify(err) != awscall.Condition {
		return err
	}
	return nil
}

// errWentLive says that rules went live since this engine last looked.
var errWentLive = errors.New("rules went live meanwhile")

// checkRegistry makes sure that the rules stand as this engine took them to:
// records must not be called done under rules that are not all there are
// (ErrEpochMoved), nor without the roll-ups of rules that another process has
// brought to life meanwhile, or without taking back what rules wrote that it has
// retired (errWentLive; the next look finds them so here too).
func (e *Engine) checkRegistry(ctx context.Context) error {
	own, err := e.readTableItem(ctx)
	if err != nil {
		return err
	}
	if !own.Is(e.planner.Incarnation, e.planner.Epoch) {
		return ErrEpochMoved
	}
	if own.Live == e.lives.Load() {
		return nil
	}
	known, err := e.readRules(ctx)
	if err != nil {
		return err
	}
	for id, row := range known {
		item := state.ReadRule(row)
		if b := e.planner.ByID(id); b != nil && item.State == state.Live {
			b.Live.Store(true)
		}
		if b := e.planner.Former(id); b != nil {
			b.Retired.Store(item.State == state.Retired)
			b.Cleaned.Store(item.Cleaned)
		}
	}
	e.lives.Store(own.Live)
	return errWentLive
}

// outgrow is called for a version of newer rules, and returns ErrEpochMoved. Where
// the registry has none so new, a worker of a state table that was lost has written it,
// late. The epoch is raised above its, so that all it left counts as of older rules.
func (e *Engine) outgrow(ctx context.Context, v plan.Version) error {
	if err := e.checkRegistry(ctx); err != nil && !errors.Is(err, errWentLive) {
		return err
	}
	above := max(v.RulesEpoch(), e.planner.Epoch) + 1
	if above > plan.EpochMax {
		return fmt.Errorf("a ledger entry of state table %s is of rules epoch %d, above which there is none: take it out, and verify", e.tables.StateTable, v.RulesEpoch())
	}
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "epoch", table.Number(int64(above)))
	_, err := e.tables.Update(ctx, "", "raising the rules epoch above that of a lost state table",
		e.tables.StateUpdate(state.TableKey(), set, e.rulesStand(c), c))
	if err != nil {
		return err
	}
	return ErrEpochMoved
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
		if e.lives.Load() == lives {
			return nil
		}
	}
}
