package projections

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/rules"
)

// seedPhase is what a scan does.
type seedPhase string

const (
	phaseDerive seedPhase = "derive" // rederives every item
	phaseShow   seedPhase = "show"   // rolls up every target
	phaseRetire seedPhase = "retire" // no scan: former rules retire
	phaseClean  seedPhase = "clean"  // takes off what rules wrote that are no more
	phaseSweep  seedPhase = "sweep"  // over the state table: what such rules left there, and items that vanished

	phaseRederive seedPhase = "rederive" // never the cursor's: brings every item to what it asks for
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

// errCursorMoved says that another process seeds too: its place counts.
var errCursorMoved = errors.New("another process moved the seeding cursor")

func cursorKey() stateKey { return stateKey{registryPartition, registrySeeding} }

// readCursor reads the stored cursor. Of one of another epoch, or that a seeder of a
// lost state table has left, nothing counts but its changes, and that a scan was under
// way which shows what is live: the rules that it was for stay live, and nobody else
// would show them.
func (e *Engine) readCursor(ctx context.Context) (seedCursor, error) {
	rows, err := e.readState(ctx, "reading the seeding cursor", []stateKey{cursorKey()})
	if err != nil {
		return seedCursor{}, err
	}
	r := rows[cursorKey()]
	c := seedCursor{changes: numberOf(r["changes"])}
	phase := seedPhase(textOf(r["phase"]))
	if int(numberOf(r["epoch"])) != e.epoch || textOf(r["incarnation"]) != e.incarnation {
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
	r["incarnation"], r["epoch"], r["level"] = textValue(e.incarnation), numberValue(int64(e.epoch)), numberValue(int64(c.level))
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
