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
	mv *plan.Move
	b  *plan.Binding
	f  plan.Effect
}

// Restore implements host.Maker.
func (kind) Restore(ctx context.Context, h *host.Host, moves []*plan.Move) error {
	m := maker{h}
	var check []inForceMirror
	var targets []change.Key
	var rows []table.Key
	for _, mv := range moves {
		for _, id := range mv.New.IDs() {
			f := mv.New[id]
			if f.Kind != plan.Mirrored || mv.Old[id].String() != f.String() {
				continue
			}
			b := m.Planner.ByID(id)
			check, targets = append(check, inForceMirror{mv, b, f}), append(targets, f.Target)
			if b.Claimed() {
				rows = append(rows, state.ClaimsKey(b, f.Target))
			}
			if len(b.Rule.Target.Equals) > 0 {
				rows = append(rows, parkedKey(b, f.Target))
			}
		}
	}
	if len(check) == 0 {
		return nil
	}
	items, standing, err := m.Tables.ReadBoth(ctx, "reading mirror items in force", targets, rows)
	if err != nil {
		return err
	}
	for _, ch := range check {
		img := table.Image(items[ch.f.Target])
		if !m.stands(ch, img, standing) {
			ch.mv.See(ch.f.Target, img)
			ch.mv.RestoreAt(ch.b.ID, ch.f.Target)
		}
	}
	return nil
}

// stands reports whether a mirror item is as its source's ledger entry has it. One
// that another source has won is that source's to look at.
func (m maker) stands(ch inForceMirror, img change.Image, rows map[table.Key]table.Row) bool {
	f := ch.f
	if ch.b.Claimed() {
		claims := rows[state.ClaimsKey(ch.b, f.Target)]
		sources := table.TextsOf(claims["sources"])
		if !slices.Contains(sources, ch.mv.Key.String()) {
			return false
		}
		if slices.Min(sources) != ch.mv.Key.String() {
			return true
		}
		f.Expired = table.TextOf(claims["expired"]) == f.Digest && img == nil
	}
	return m.isRight(ch.b, f, &Heal{Last: img, Repark: ch.mv.Repark}, ch.f.Target, isParked(rows, ch.b, ch.f.Target))
}
