package projections

import (
	"context"
	"errors"
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/table"
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
	last    table.Row    // the scan goes on behind this key; empty at the beginning
	changes change.Value // as stored: each write raises it, on condition that it is as it was read
}

// raised is the count of changes after the next one.
func raised(changes change.Value) change.Value {
	n, _ := plan.ReadCount(changes) // of a row that another program has written, the count begins anew
	return change.Number(strconv.FormatInt(n+1, 10))
}

// everyLevel stands for the rules of every level, where a scan that shows what
// is live was cut off by a change of the rules, and with it of their levels.
const everyLevel = -1

// isFor reports whether the cursor's scan is for a rule.
func (c seedCursor) isFor(r *rules.Rule) bool { return c.level == r.Level || c.level == everyLevel }

// errCursorMoved says that another process seeds too: its place counts.
var errCursorMoved = errors.New("another process moved the seeding cursor")

func cursorKey() table.Key { return table.Key{Partition: registryPartition, Sort: registrySeeding} }

// readCursor reads the stored cursor. Of one of another epoch, or that a seeder of a
// lost state table has left, nothing counts but its changes, and that a scan was under
// way which shows what is live: the rules that it was for stay live, and no other scan
// would show them.
func (rd *ruleReader) readCursor(ctx context.Context) (seedCursor, error) {
	rows, err := rd.reader.ReadState(ctx, "reading the seeding cursor", []table.Key{cursorKey()})
	if err != nil {
		return seedCursor{}, err
	}
	return rd.cursorOf(rows[cursorKey()]), nil
}

func (rd *ruleReader) cursorOf(r table.Row) seedCursor {
	c := seedCursor{changes: attributes.FromTable(r["changes"])}
	phase := seedPhase(table.TextOf(r["phase"]))
	if int(table.NumberOf(r["epoch"])) != rd.planner.Epoch || table.TextOf(r["incarnation"]) != rd.planner.Incarnation {
		if phase == phaseShow {
			c.level, c.phase = everyLevel, phaseShow
		}
		return c
	}
	c.level, c.phase, c.items = int(table.NumberOf(r["level"])), phase, table.NumberOf(r["items"])
	if last, ok := r["last"].(*ddb.AttributeValueMemberM); ok && rd.isScanPlace(phase, last.Value) {
		c.last = last.Value
	}
	return c
}

// isScanPlace reports whether a scan can go on behind a key. Behind another one
// DynamoDB refuses to look: then the scan begins anew.
func (rd *ruleReader) isScanPlace(phase seedPhase, last table.Row) bool {
	if phase == phaseSweep {
		return table.IsKey(last)
	}
	return rd.reader.IsItemKey(last)
}

// cursorItem is the cursor as it is stored by its next change.
func (e *Engine) cursorItem(c seedCursor) table.Row {
	r := cursorKey().Attributes()
	r["incarnation"], r["epoch"], r["level"] = table.Text(e.planner.Incarnation), table.Number(int64(e.planner.Epoch)), table.Number(int64(c.level))
	r["phase"], r["items"] = table.Text(string(c.phase)), table.Number(c.items)
	r["changes"] = attributes.ToTable(raised(c.changes))
	if len(c.last) > 0 {
		r["last"] = &ddb.AttributeValueMemberM{Value: c.last}
	}
	return r
}

// cursorIs is the condition that the stored cursor is as it was read.
func cursorIs(c *table.Expression, cursor seedCursor) string {
	return table.Whole(c.Same("changes", cursor.changes))
}

func (e *Engine) saveCursor(ctx context.Context, cursor *seedCursor) error {
	err := e.storeCursor(ctx, *cursor)
	cursor.changes = raised(cursor.changes)
	return err
}

// dropCursor ends a level: no scan is under way any more.
func (e *Engine) dropCursor(ctx context.Context, cursor seedCursor) error {
	return e.storeCursor(ctx, seedCursor{changes: cursor.changes})
}

func (e *Engine) storeCursor(ctx context.Context, cursor seedCursor) error {
	c := table.NewExpression()
	err := e.tables.PutState(ctx, "", "saving the seeding cursor", e.cursorItem(cursor), cursorIs(c, cursor), c)
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return errCursorMoved
	}
	return err
}
