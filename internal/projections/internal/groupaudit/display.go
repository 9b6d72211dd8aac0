package groupaudit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// operationsMask leaves the operations of a count that a generation stands above.
const operationsMask = 1<<stamp.GenerationShift - 1

// OperationsShown returns how many operations of a group are in the stamp on a target; 0 without a stamp, or if it is of an earlier rules
// epoch or generation, and math.MaxInt64 if it is of a later one or cannot be read.
func OperationsShown(p *plan.Planner, g plan.GroupRef, key change.Key, img change.Image) int64 {
	context := stamp.Context(p.Incarnation, key, g.Group)
	s, ok := stamp.Read(img.Lookup(g.Stamp), context)
	count := s.Version.Count()
	order := cmp.Or(cmp.Compare(s.Version.RulesEpoch(), p.Epoch), cmp.Compare(count>>stamp.GenerationShift, g.Counted.Load()))
	switch {
	case !ok && strings.HasPrefix(img.Lookup(g.Stamp).Text(), context), ok && order > 0: // DynamoDB compares texts
		return math.MaxInt64
	case !ok, order < 0:
		return 0
	}
	return count & operationsMask
}

// WrongDisplays returns the targets that show something else than the group's rows hold, or that carry a stamp on which no worker can
// write. PutOff is set where a worker still has to roll the group up. The first item that is known by a unique value shows the group, the
// others show nothing. If no number holds the total, it returns nothing.
func WrongDisplays(ctx context.Context, h *host.Host, g plan.GroupRef) ([]lanes.WrongDisplay, error) {
	doing, due := "comparing the displays of "+g.Group, state.DueRollupKey(g)
	keys := groups.TotalKeys(g)
	rows, err := h.Tables.ReadState(ctx, doing, keys)
	if err != nil {
		return nil, err
	}
	targets := groups.AddUp(g, rows).Targets
	items, err := h.Tables.ReadItems(ctx, doing, targets)
	if err != nil {
		return nil, err
	}
	if rows, err = h.Tables.ReadState(ctx, doing, append(keys, due)); err != nil { // a worker writes rows before displays
		return nil, err
	}
	t := groups.AddUp(g, rows)
	if reader, ok := g.Rule.Form.(groups.Reader); ok {
		if err := reader.Read(ctx, h.Tables.Reader, g, &t); err != nil {
			return nil, err
		}
	}
	if t.Err != nil {
		return nil, nil
	}
	putOff := time.Time{}
	if d, known := state.ReadDueRollup(h.Planner, rows[due]); known {
		putOff = d.Due
	}
	var all []lanes.WrongDisplay
	for i, key := range t.Targets {
		img := table.Image(items[key])
		if img == nil {
			continue
		}
		if m, ok := h.Planner.Set.Identify(key, img); !ok || m.Entity != g.Rule.Target {
			continue
		}
		values := make([]change.Value, len(g.Rule.Writes))
		if i == 0 {
			values = formOf(g.Rule).Values(t)
		}
		d := lanes.WrongDisplay{Item: key, Attribute: strings.Join(g.Rule.Writes, ", "), Stamp: img.Lookup(g.Stamp).Text(),
			PutOff: putOff, Want: formOf(g.Rule).Shown(values), Have: Shown(g.Binding, img)}
		d.StampLater = target.IsLater(img.Lookup(g.Stamp), stamp.Stamp{Context: stamp.Context(h.Planner.Incarnation, key, g.Group),
			Version: groups.VersionOf(h.Planner, t)})
		switch {
		case d.Want != d.Have:
			all = append(all, d)
		case d.StampLater: // it is right, and would stay as it is
			d.Attribute, d.Want, d.Have = g.Stamp, fmt.Sprintf("a count of at most %d", (t.Operations+t.Changes)&operationsMask), d.Stamp
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, findParked(ctx, h, g, all)
}

// findParked finds those displays whose items are parked under the rule of a group.
func findParked(ctx context.Context, h *host.Host, g plan.GroupRef, all []lanes.WrongDisplay) error {
	parked := make([]table.Key, len(all))
	for i, d := range all {
		parked[i] = state.ParkedKey(audit.DisplayID(g.ID, d.Item))
	}
	rows, err := h.Tables.ReadState(ctx, "reading what is parked of the targets of "+g.Group, parked)
	for i := range all {
		all[i].Parked = rows[parked[i]] != nil
	}
	return err
}
