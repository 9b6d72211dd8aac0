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
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/projections/internal/plan"
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
	level   int       // of the rules that the scan is for, or everyLevel
	phase   seedPhase // "" while no scan is under way
	items   int64
	last    row   // the scan goes on behind this key; empty at the beginning
	changes int64 // raised with every change of the stored cursor, which is changed only by who read it last
}

// everyLevel stands for the rules of every level, where a scan that shows what
// is live was cut off by a change of the rules, and with it of their levels.
const everyLevel = -1

// isFor reports whether the cursor's scan is for a rule.
func (c seedCursor) isFor(r *rules.Rule) bool { return c.level == r.Level || c.level == everyLevel }

// seedPageMax is how many items are worked off between two places of the
// cursor: what a restart does again, and how often progress is told.
const seedPageMax = 500

// errCursorMoved says that another process seeds too: its place counts.
var errCursorMoved = errors.New("another process moved the seeding cursor")

// Seed seeds every rule that is not live yet, resuming where a former run
// stopped. It returns at once when there is nothing to seed. Several processes
// may seed at the same time; they go on from each other's place.
func (e *Engine) Seed(ctx context.Context, progress func(SeedProgress)) error {
	if progress == nil {
		progress = func(SeedProgress) {}
	}
	for done := 0; ; {
		cursor, err := e.readSeeding(ctx)
		if err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
		left := e.aim(&cursor)
		if left == 0 {
			if done > 0 {
				progress(SeedProgress{Pass: done, Passes: done, Done: true})
			}
			return nil
		}
		names := e.seedNames(cursor)
		err = e.seedPass(ctx, &cursor, func(items int64) {
			progress(SeedProgress{Rules: names, Pass: done + 1, Passes: done + left, Items: items})
		})
		if err == nil && cursor.phase == phaseDerive {
			err = e.goLive(ctx, cursor)
		} else if err == nil {
			err = e.dropCursor(ctx, cursor)
		}
		switch {
		case err == nil:
			done++
		case !errors.Is(err, errCursorMoved):
			return fmt.Errorf("seeding: %w", err)
		}
	}
}

// readSeeding reads the cursor, and which rules are live, as they were at one moment.
func (e *Engine) readSeeding(ctx context.Context) (cursor seedCursor, err error) {
	err = e.underRegistry(ctx, func() error {
		cursor, err = e.readCursor(ctx)
		return err
	})
	return cursor, err
}

// aim turns the cursor to the next scan, unless it is in the middle of it, and
// returns how many scans are left: none if everything is live and shown.
func (e *Engine) aim(cursor *seedCursor) int {
	var levels []int
	for _, r := range e.planner.Set.Rules {
		if !e.planner.Of(r).Live.Load() {
			levels = append(levels, r.Level)
		}
	}
	slices.Sort(levels)
	left := 2 * len(slices.Compact(levels))
	switch {
	case cursor.phase == phaseShow:
		left++
	case left > 0 && (cursor.phase != phaseDerive || cursor.level != levels[0]):
		*cursor = seedCursor{level: levels[0], phase: phaseDerive, changes: cursor.changes}
	}
	return left
}

// seedNames are the rules that the cursor's scan is for.
func (e *Engine) seedNames(cursor seedCursor) []string {
	var names []string
	for _, r := range e.planner.Set.Rules {
		if cursor.isFor(r) && (cursor.phase == phaseShow || !e.planner.Of(r).Live.Load()) {
			names = append(names, r.Name)
		}
	}
	return names
}

// seedPass scans the table once, from the cursor on.
func (e *Engine) seedPass(ctx context.Context, cursor *seedCursor, report func(int64)) error {
	if cursor.phase == phaseShow && !e.showsAnything(*cursor) {
		return nil
	}
	in := &dynamodb.ScanInput{TableName: &e.table, ConsistentRead: ptr(true), ExclusiveStartKey: cursor.last, Limit: ptr(int32(seedPageMax))}
	for {
		out, err := attempt(ctx, e, "scanning the table", func() (*dynamodb.ScanOutput, error) { return e.client.Scan(ctx, in) })
		if err != nil {
			return err
		}
		if cursor.phase == phaseDerive {
			err = e.derivePage(ctx, out.Items)
		} else {
			err = e.showPage(ctx, *cursor, out.Items)
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
		if err := e.saveCursor(ctx, cursor); err != nil {
			return err
		}
		in.ExclusiveStartKey = cursor.last
	}
}

func (e *Engine) showsAnything(cursor seedCursor) bool {
	return slices.ContainsFunc(e.planner.Set.Entities, func(ent *rules.Entity) bool {
		return slices.ContainsFunc(ent.Displays, cursor.isFor)
	})
}

func (e *Engine) derivePage(ctx context.Context, rows []row) error {
	var keys []change.Key
	for _, r := range rows {
		key := e.keyOf(r)
		m, ok := e.planner.Set.Identify(key, attributes.ItemFromTable(r))
		if ok && (plan.FeedsLedger(m.Entity) || len(m.Entity.Children) > 0) {
			keys = append(keys, key)
		}
	}
	return e.rederive(ctx, keys, plan.Sources, nil)
}

// showPage rolls up the aggregates that a page's items display.
func (e *Engine) showPage(ctx context.Context, cursor seedCursor, rows []row) error {
	pl := &plan.Changes{}
	for _, r := range rows {
		key, item := e.keyOf(r), attributes.ItemFromTable(r)
		m, ok := e.planner.Set.Identify(key, item)
		if !ok {
			continue
		}
		for _, rule := range m.Entity.Displays {
			if cursor.isFor(rule) {
				e.planner.Display(pl, rule, key, &m, item)
			}
		}
	}
	w := e.newWork(ctx, 0)
	defer w.release()
	w.rollUp(pl)
	w.bare(&pl.Bares)
	return w.err
}

// goLive turns the cursor to showing and marks a level's rules live, at once. Whoever
// applies records looks at the registry afterwards: either it finds the rules
// live and rolls up, or the scan that follows here sees what it applied.
func (e *Engine) goLive(ctx context.Context, cursor seedCursor) error {
	show := seedCursor{level: cursor.level, phase: phaseShow, changes: cursor.changes}
	c := newExpression()
	raise := c.sprintf("ADD %n %v", "live", numberValue(1))
	same := c.sprintf("%n = %v", "epoch", numberValue(int64(e.epoch)))
	items := []ddb.TransactWriteItem{{Update: &ddb.Update{
		TableName: &e.stateTable, Key: stateKey{registryPartition, registryTable}.attributes(),
		UpdateExpression: &raise, ConditionExpression: &same,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}}
	c = newExpression()
	unmoved := guarded(guard.SeedCursor, c.cursorIs(cursor))
	items = append(items, ddb.TransactWriteItem{Put: &ddb.Put{
		TableName: &e.stateTable, Item: e.cursorItem(show), ConditionExpression: &unmoved,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}})
	for _, r := range e.planner.Set.Rules {
		b := e.planner.Of(r)
		if r.Level != cursor.level || b.Live.Load() {
			continue
		}
		c := newExpression()
		set := c.sprintf("SET %n = %v", "state", textValue(stateLive))
		items = append(items, ddb.TransactWriteItem{Update: &ddb.Update{
			TableName: &e.stateTable, Key: stateKey{registryPartition, registryRule + b.ID}.attributes(),
			UpdateExpression: &set, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}})
	}
	err := e.transact(ctx, "bringing rules to life", nil, items)
	if err != nil && classify(err) == classCanceled {
		return errCursorMoved // or the epoch, which reading it again tells
	}
	return err
}

func cursorKey() stateKey { return stateKey{registryPartition, registrySeeding} }

// readCursor reads the stored cursor. Of one of another epoch nothing counts but
// its changes, and that a scan was under way which shows what is live: the rules
// that it was for stay live, and nobody else would show them.
func (e *Engine) readCursor(ctx context.Context) (seedCursor, error) {
	rows, err := e.readState(ctx, "reading the seeding cursor", []stateKey{cursorKey()})
	if err != nil {
		return seedCursor{}, err
	}
	r := rows[cursorKey()]
	c := seedCursor{changes: numberOf(r["changes"])}
	phase := seedPhase(textOf(r["phase"]))
	if int(numberOf(r["epoch"])) != e.epoch {
		if phase == phaseShow {
			c.level, c.phase = everyLevel, phaseShow
		}
		return c, nil
	}
	c.level, c.phase, c.items = int(numberOf(r["level"])), phase, numberOf(r["items"])
	if last, ok := r["last"].(*ddb.AttributeValueMemberM); ok {
		c.last = last.Value
	}
	return c, nil
}

// cursorItem is the cursor as it is stored by its next change.
func (e *Engine) cursorItem(c seedCursor) row {
	r := cursorKey().attributes()
	r["epoch"], r["level"] = numberValue(int64(e.epoch)), numberValue(int64(c.level))
	r["phase"], r["items"] = textValue(string(c.phase)), numberValue(c.items)
	r["changes"] = numberValue(c.changes + 1)
	if len(c.last) > 0 {
		r["last"] = &ddb.AttributeValueMemberM{Value: c.last}
	}
	return r
}

// cursorIs is the condition that nobody changed the stored cursor since it was read.
func (c *expression) cursorIs(cursor seedCursor) string {
	if cursor.changes == 0 {
		return "attribute_not_exists(" + c.name("changes") + ")"
	}
	return c.sprintf("%n = %v", "changes", numberValue(cursor.changes))
}

func (e *Engine) saveCursor(ctx context.Context, cursor *seedCursor) error {
	err := e.storeCursor(ctx, *cursor)
	cursor.changes++
	return err
}

// dropCursor ends a level: no scan is under way any more.
func (e *Engine) dropCursor(ctx context.Context, cursor seedCursor) error {
	return e.storeCursor(ctx, seedCursor{changes: cursor.changes})
}

func (e *Engine) storeCursor(ctx context.Context, cursor seedCursor) error {
	c := newExpression()
	condition := guarded(guard.SeedCursor, c.cursorIs(cursor))
	err := e.putState(ctx, "", "saving the seeding cursor", &dynamodb.PutItemInput{
		Item: e.cursorItem(cursor), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	})
	if err != nil && classify(err) == classCondition {
		return errCursorMoved
	}
	return err
}
