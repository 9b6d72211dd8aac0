package state

import (
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// DueRollup is a roll-up that a worker has put off, because it had written the display a moment ago. Whichever worker comes by does it.
type DueRollup struct {
	Group   plan.GroupRef
	Due     time.Time // by the clock of the worker that put it off
	Until   time.Time // a worker holds it until then
	IsBegun bool      // a worker has begun it, and may have read the group's rows already

	putOffID, holder change.Value // drawn by each worker that put it off, or took it; absent: none did
}

// DueRollupKey is the key of the row of a group's roll-up.
func DueRollupKey(g plan.GroupRef) table.Key {
	return table.NewKey(TasksPartition, audit.RollupPrefix+g.ID+"/"+g.Group)
}

// ReadDueRollup reads the row of a roll-up that was put off. It reports false for one of rules that this engine does not know: they are
// newer; or for one in which another program has written whose it is.
func ReadDueRollup(p *plan.Planner, r table.Row) (d DueRollup, known bool) {
	name, ok := strings.CutPrefix(table.TextOf(r[table.SK]), audit.RollupPrefix)
	if !ok {
		return DueRollup{}, false
	}
	id, group, _ := strings.Cut(name, "/")
	if g := table.TextOf(r["group"]); g != "" { // the key may be cut
		group = g
	}
	b := p.AnyByID(id)
	if b == nil {
		return DueRollup{}, false
	}
	item := attributes.ItemFromTable(r)
	d = DueRollup{Group: plan.GroupRef{Binding: b, Group: group}, putOffID: item["asked"], holder: item["holder"],
		Due: time.UnixMilli(table.NumberOf(r["due"])), Until: time.Unix(table.NumberOf(r["until"]), 0)}
	d.IsBegun = d.holder.Kind() != change.KindAbsent
	return d, DueRollupKey(d.Group) == table.KeyOf(r)
}

// IsHeld reports whether a worker works on the roll-up at this time.
func (d DueRollup) IsHeld(now time.Time) bool {
	return d.IsBegun && d.Until.After(now) && d.Until.Before(now.Add(heldMax))
}

// PutOffRollup is the update that puts a roll-up off until it is due. It needs no condition.
func PutOffRollup(c *table.Expression, g plan.GroupRef, due time.Time) string {
	return c.Format("SET %n = %v, %n = %v, %n = %v, %n = %v", "rule", table.Text(g.ID), "group", table.Text(g.Group),
		"asked", table.Text(NewID()), "due", table.Number(due.UnixMilli()))
}

// TakeRollup is the update by which a worker takes a roll-up, with the condition that none has put it off, taken or released it since it
// was read. The roll-up is the worker's then.
func TakeRollup(c *table.Expression, d *DueRollup, now time.Time) (update, condition string) {
	condition = table.Whole(c.Same("asked", d.putOffID) + c.Same("holder", d.holder))
	d.holder = change.String(NewID())
	return c.Format("SET %n = %v, %n = %v", "holder", attributes.ToTable(d.holder), "until", table.Number(now.Add(TaskTerm).Unix())), condition
}

// RollupNotPutOffAgain is the condition that no worker has put a roll-up off again since it was taken.
func RollupNotPutOffAgain(c *table.Expression, d DueRollup) string {
	return table.Whole(c.Same("asked", d.putOffID))
}

// RollupHeldByThisWorker is the condition that the worker that took the roll-up still holds it.
func RollupHeldByThisWorker(c *table.Expression, d DueRollup) string {
	return table.Whole(c.Same("holder", d.holder))
}

// ReleaseRollup is the update by which a worker gives up a roll-up that it took.
func ReleaseRollup(c *table.Expression) string {
	return "REMOVE " + c.List([]string{"holder", "until"})
}
