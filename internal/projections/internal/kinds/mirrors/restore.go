package mirrors

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// inForceMirror is a mirror item that a move's ledger entry has in force and the item still asks for.
type inForceMirror struct {
	difference
	it mirrorItem
}

// Restore implements host.Maker.
func (kind) Restore(ctx context.Context, h *host.Host, moves []*plan.Move) error {
	m := maker{h}
	var check []inForceMirror
	var targets []change.Key
	var rows []table.Key
	for _, mv := range moves {
		for _, k := range mv.New.Keys() {
			it, ok := itemOf(mv.New[k])
			if !ok || mv.Old[k].String() != it.String() {
				continue
			}
			b := m.Planner.ByID(k.ID)
			check, targets = append(check, inForceMirror{difference{m.Planner, mv, b, k}, it}), append(targets, it.target)
			if b.Claimed() {
				rows = append(rows, state.ClaimsKey(b, it.target))
			}
			if len(b.Rule.Target.Equals) > 0 {
				rows = append(rows, parkedKey(b, it.target))
			}
		}
	}
	items, stateRows, err := m.Tables.ReadBoth(ctx, "reading mirror items in force", targets, rows)
	if err != nil {
		return err
	}
	for _, ch := range check {
		img := table.Image(items[ch.it.target])
		if !m.stands(ch, img, stateRows) {
			ch.mv.See(ch.it.target, img)
			ch.mv.RestoreAt(ch.k, ch.it.target)
		}
	}
	return nil
}

// stands reports whether a mirror item is as its source's ledger entry has it. One
// that another source has won is that source's to look at.
func (m maker) stands(ch inForceMirror, img change.Image, rows map[table.Key]table.Row) bool {
	it := ch.it
	if ch.b.Claimed() {
		claims := rows[state.ClaimsKey(ch.b, it.target)]
		sources := table.TextsOf(claims["sources"])
		if !slices.Contains(sources, ch.mv.Key.String()) {
			return false
		}
		if slices.Min(sources) != ch.mv.Key.String() {
			return true
		}
		it.expired = table.TextOf(claims["expired"]) == it.digest && img == nil
	}
	return m.isRight(ch.b, &it, &Heal{Last: img, Repark: ch.mv.Repark}, it.target, isParked(rows, ch.b, it.target))
}
