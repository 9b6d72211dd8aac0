package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/rules"
)

// Seeding brings rules that are new to a table into force over all items that
// are there already, beside the stream (promise 10). Rules that read what
// others write are seeded after them, level by level: the items that a level's
// rules write are in the table when the next level's scan begins. Each level
// takes a scan that derives and, once that is complete, a scan that shows.

// SeedProgress is how far seeding has come.
type SeedProgress struct {
	Rules        []string // being seeded
	Pass, Passes int      // scans of the table, from 1
	Items        int64    // in this pass
	Done         bool
}

// seedPhase is what a scan does.
type seedPhase string

const (
	phaseDerive seedPhase = "derive" // rederives every item
	phaseShow   seedPhase = "show"   // rolls up every target
)

// seedCursor is seeding's place, kept in the registry after every page.
type seedCursor struct {
	epoch int
	level int
	phase seedPhase
	items int64
	last  row // the scan goes on behind this key; empty at the beginning
}

// Seed seeds every rule that is not live yet, resuming where a former run
// stopped. It returns at once when there is nothing to seed.
func (e *Engine) Seed(ctx context.Context, progress func(SeedProgress)) error {
	if progress == nil {
		progress = func(SeedProgress) {}
	}
	cursor, err := e.readCursor(ctx)
	if err != nil {
		return err
	}
	levels := e.seedLevels(cursor)
	if len(levels) == 0 {
		return nil
	}
	passes := 2 * len(levels)
	for i, level := range levels {
		names := e.seedNames(level, cursor)
		for j, phase := range []seedPhase{phaseDerive, phaseShow} {
			if cursor.level != level || cursor.phase != phase {
				if cursor.level == level && cursor.phase == phaseShow {
					continue // derived before the restart
				}
				cursor = seedCursor{epoch: e.epoch, level: level, phase: phase}
			}
			report := func(items int64) {
				progress(SeedProgress{Rules: names, Pass: 2*i + j + 1, Passes: passes, Items: items})
			}
			if err := e.seedPass(ctx, &cursor, report); err != nil {
				return fmt.Errorf("seeding: %w", err)
			}
			if phase == phaseDerive {
				if err := e.goLive(ctx, &cursor); err != nil {
					return fmt.Errorf("seeding: %w", err)
				}
			}
		}
	}
	if err := e.dropCursor(ctx); err != nil {
		return fmt.Errorf("seeding: %w", err)
	}
	progress(SeedProgress{Pass: passes, Passes: passes, Done: true})
	return nil
}

// seedLevels are the levels still to be seeded, ascending: those of rules that
// are not live, and the one that the cursor shows.
func (e *Engine) seedLevels(cursor seedCursor) []int {
	var levels []int
	for _, r := range e.set.Rules {
		if !e.byRule[r].live.Load() {
			levels = append(levels, r.Level)
		}
	}
	if cursor.phase == phaseShow {
		levels = append(levels, cursor.level)
	}
	slices.Sort(levels)
	return slices.Compact(levels)
}

func (e *Engine) seedNames(level int, cursor seedCursor) []string {
	var names []string
	for _, r := range e.set.Rules {
		showing := cursor.phase == phaseShow && cursor.level == level
		if r.Level == level && (showing || !e.byRule[r].live.Load()) {
			names = append(names, r.Name)
		}
	}
	return names
}

// seedPass scans the table once, from the cursor on.
func (e *Engine) seedPass(ctx context.Context, cursor *seedCursor, report func(int64)) error {
	if cursor.phase == phaseShow && !e.showsAnything(cursor.level) {
		return nil
	}
	in := &dynamodb.ScanInput{TableName: &e.table, ConsistentRead: ptr(true), ExclusiveStartKey: cursor.last}
	for {
		out, err := attempt(ctx, "scanning the table", func() (*dynamodb.ScanOutput, error) { return e.client.Scan(ctx, in) })
		if err != nil {
			return err
		}
		if cursor.phase == phaseDerive {
			err = e.derivePage(ctx, out.Items)
		} else {
			err = e.showPage(ctx, cursor.level, out.Items)
		}
		if err != nil {
			return err
		}
		cursor.items += int64(len(out.Items))
		report(cursor.items)
		cursor.last = out.LastEvaluatedKey
		if len(cursor.last) == 0 {
			return nil
		}
		if err := e.saveCursor(ctx, *cursor); err != nil {
			return err
		}
		in.ExclusiveStartKey = cursor.last
	}
}

func (e *Engine) showsAnything(level int) bool {
	return slices.ContainsFunc(e.set.Entities, func(ent *rules.Entity) bool {
		return slices.ContainsFunc(ent.Displays, func(r *rules.Rule) bool { return r.Level == level })
	})
}

func (e *Engine) derivePage(ctx context.Context, rows []row) error {
	var keys []change.Key
	for _, r := range rows {
		key := e.keyOf(r)
		m, ok := e.set.Identify(key, attributes.ItemFromTable(r))
		if ok && (feedsLedger(m.Entity) || len(m.Entity.Children) > 0) {
			keys = append(keys, key)
		}
	}
	_, err := e.rederive(ctx, keys, sources)
	return err
}

// showPage rolls up the aggregates that a page's items display.
func (e *Engine) showPage(ctx context.Context, level int, rows []row) error {
	pl := newPlan()
	for _, r := range rows {
		key, item := e.keyOf(r), attributes.ItemFromTable(r)
		m, ok := e.set.Identify(key, item)
		if !ok {
			continue
		}
		for _, rule := range m.Entity.Displays {
			if rule.Level == level {
				e.planDisplay(pl, rule, key, &m, item)
			}
		}
	}
	w := e.newWork(ctx, 0)
	defer w.release()
	w.rollUp(pl)
	w.bare(pl.bares)
	return w.err
}

// goLive turns the cursor to showing and marks a level's rules live, at once. Whoever
// applies records looks at the registry afterwards: either it finds the rules
// live and rolls up, or the scan that follows here sees what it applied.
func (e *Engine) goLive(ctx context.Context, cursor *seedCursor) error {
	*cursor = seedCursor{epoch: e.epoch, level: cursor.level, phase: phaseShow}
	c := newExpression()
	raise := c.sprintf("ADD %n %v", "live", numberValue(1))
	same := c.sprintf("%n = %v", "epoch", numberValue(int64(e.epoch)))
	items := []ddb.TransactWriteItem{{Update: &ddb.Update{
		TableName: &e.stateTable, Key: stateKey{registryPartition, registryTable}.attributes(),
		UpdateExpression: &raise, ConditionExpression: &same,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}, {Put: &ddb.Put{TableName: &e.stateTable, Item: e.cursorItem(*cursor)}}}
	for _, r := range e.set.Rules {
		b := e.byRule[r]
		if r.Level != cursor.level || b.live.Load() {
			continue
		}
		c := newExpression()
		set := c.sprintf("SET %n = %v", "state", textValue(stateLive))
		items = append(items, ddb.TransactWriteItem{Update: &ddb.Update{
			TableName: &e.stateTable, Key: stateKey{registryPartition, registryRule + b.id}.attributes(),
			UpdateExpression: &set, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}})
	}
	err := e.transact(ctx, "bringing rules to life", items)
	if err != nil && classify(err) == classCanceled {
		return ErrEpochMoved
	}
	if err != nil {
		return err
	}
	if err := e.checkRegistry(ctx); err != nil && !errors.Is(err, errWentLive) {
		return err
	}
	return nil
}

func (e *Engine) cursorKey() stateKey { return stateKey{registryPartition, registrySeeding} }

func (e *Engine) readCursor(ctx context.Context) (seedCursor, error) {
	rows, err := e.readState(ctx, "reading the seeding cursor", []stateKey{e.cursorKey()})
	if err != nil {
		return seedCursor{}, err
	}
	r := rows[e.cursorKey()]
	c := seedCursor{
		epoch: int(numberOf(r["epoch"])), level: int(numberOf(r["level"])),
		phase: seedPhase(textOf(r["phase"])), items: numberOf(r["items"]),
	}
	if last, ok := r["last"].(*ddb.AttributeValueMemberM); ok {
		c.last = last.Value
	}
	if c.epoch != e.epoch {
		return seedCursor{level: -1}, nil
	}
	return c, nil
}

func (e *Engine) cursorItem(c seedCursor) row {
	r := e.cursorKey().attributes()
	r["epoch"], r["level"] = numberValue(int64(c.epoch)), numberValue(int64(c.level))
	r["phase"], r["items"] = textValue(string(c.phase)), numberValue(c.items)
	if len(c.last) > 0 {
		r["last"] = &ddb.AttributeValueMemberM{Value: c.last}
	}
	return r
}

func (e *Engine) saveCursor(ctx context.Context, c seedCursor) error {
	_, err := attempt(ctx, "saving the seeding cursor", func() (*dynamodb.PutItemOutput, error) {
		return e.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &e.stateTable, Item: e.cursorItem(c)})
	})
	return err
}

func (e *Engine) dropCursor(ctx context.Context) error {
	_, err := attempt(ctx, "dropping the seeding cursor", func() (*dynamodb.DeleteItemOutput, error) {
		return e.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &e.stateTable, Key: e.cursorKey().attributes()})
	})
	return err
}
