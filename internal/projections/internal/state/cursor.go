package state

import (
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// CursorKey is the key of the row that keeps the seeding cursor.
func CursorKey() table.Key { return table.Key{Partition: registryPartition, Sort: "seeding"} }

// ReadCursor reads a cursor. Of one of another epoch, or of a lost state table's seeder, only its changes count, and that a scan was under
// way which shows what is live: those rules stay live, and no other scan would show them.
func ReadCursor(rd *table.Reader, p *plan.Planner, r table.Row) Cursor {
	c := Cursor{Changes: attributes.FromTable(r["changes"])}
	phase := Phase(table.TextOf(r["phase"]))
	if int(table.NumberOf(r["epoch"])) != p.Epoch || table.TextOf(r["incarnation"]) != p.Incarnation {
		if phase == PhaseShow {
			c.Level, c.Phase = EveryLevel, PhaseShow
		}
		return c
	}
	c.Level, c.Phase, c.Items = int(table.NumberOf(r["level"])), phase, table.NumberOf(r["items"])
	isKey := rd.IsItemKey
	if phase == PhaseSweep {
		isKey = table.IsKey
	}
	if last, ok := r["last"].(*ddb.AttributeValueMemberM); ok && isKey(last.Value) { // otherwise the scan begins anew
		c.Last = last.Value
	}
	return c
}

// Phase is what a scan does.
type Phase string

// The phases.
const (
	PhaseDerive Phase = "derive" // rederives every item
	PhaseCount  Phase = "tally"  // finds what the groups of hot rules began with; only a process that reads the stream can
	PhaseShow   Phase = "show"   // rolls up every target
	PhaseRetire Phase = "retire" // no scan: former rules retire
	PhaseClean  Phase = "clean"  // takes off what rules wrote that are no more
	PhaseSweep  Phase = "sweep"  // over the state table: what such rules left there, and items that vanished

	PhaseRederive Phase = "rederive" // never the cursor's: brings every item to what it asks for
)

// Cursor is seeding's place, kept in the registry after every page.
type Cursor struct {
	Level   int   // of the rules that the scan is for, or EveryLevel
	Phase   Phase // "" while no scan is under way
	Items   int64
	Last    table.Row    // the scan goes on behind this key; empty at the beginning
	Changes change.Value // as stored: each write raises it, on condition that it is as it was read
}

// Raised is the count of changes after the next one.
func Raised(changes change.Value) change.Value {
	n, _ := plan.ReadCount(changes) // of a row that another program has written, the count begins anew
	return change.Number(strconv.FormatInt(n+1, 10))
}

// EveryLevel stands for all levels, where a change of the rules, and of their levels, cut off a scan that shows what is live.
const EveryLevel = -1

// IsFor reports whether the cursor's scan is for a rule.
func (c Cursor) IsFor(r *rules.Rule) bool { return c.Level == r.Level || c.Level == EveryLevel }

// Row is the cursor as it is stored by its next change.
func (c Cursor) Row(p *plan.Planner) table.Row {
	r := CursorKey().Attributes()
	r["incarnation"], r["epoch"], r["level"] = table.Text(p.Incarnation), table.Number(int64(p.Epoch)), table.Number(int64(c.Level))
	r["phase"], r["items"] = table.Text(string(c.Phase)), table.Number(c.Items)
	r["changes"] = attributes.ToTable(Raised(c.Changes))
	if len(c.Last) > 0 {
		r["last"] = &ddb.AttributeValueMemberM{Value: c.Last}
	}
	return r
}

// Note is the cursor as it is stored where nothing moves it.
func (c Cursor) Note(p *plan.Planner) table.Row {
	r := c.Row(p)
	delete(r, "changes")
	if c.Changes.Kind() != change.KindAbsent {
		r["changes"] = attributes.ToTable(c.Changes)
	}
	return r
}

// CursorIs is the condition that the stored cursor is as it was read.
func CursorIs(c *table.Expression, cursor Cursor) string {
	return table.Whole(c.Same("changes", cursor.Changes))
}
