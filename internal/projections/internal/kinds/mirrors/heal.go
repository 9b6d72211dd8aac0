package mirrors

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var (
	_ host.Maker  = kind{}
	_ host.Keeper = kind{}
)

// maker makes the items of mirror rules.
type maker struct{ *host.Host }

// Apply implements host.Kind: it brings items that another program wrote or deleted back to what
// their sources ask for.
func (kind) Apply(ctx context.Context, r *host.Run, pl *plan.Changes) {
	m, asked := maker{r.Host}, plan.PartOf[heals](pl)
	right, err := m.alreadyRight(ctx, asked)
	if err != nil {
		for _, h := range asked.All() {
			r.Failed(h.First, err)
		}
		return
	}
	for id, h := range asked.All() {
		if right[id] {
			continue
		}
		allowed, err := m.MayHeal(ctx, id.Binding, id.Key, h.Correction)
		if err == nil && allowed {
			err = m.healTarget(ctx, r.Suffix, pl, id, h)
		}
		r.Ended(ctx, h.First, id.Binding, id.Key, err)
	}
}

// alreadyRight finds the mirror items that are as the ledger has them, so that
// nothing is to be done: every mirror item that the engine inserts or deletes
// comes by here. Of one with claims that can only be told once no source claims it.
func (m maker) alreadyRight(ctx context.Context, asked *heals) (map[plan.ItemRule]bool, error) {
	var keys []table.Key
	for id, h := range asked.All() {
		if id.Claimed() {
			keys = append(keys, state.ClaimsKey(id.Binding, id.Key))
		} else if source, ok := id.Rule.SourceKey(id.Key); ok {
			keys = append(keys, state.EntryKey(source))
		}
		if h.Freed || placeOf(id.Binding, id.Key, h.Last) == placeOccupied {
			keys = append(keys, parkedKey(id.Binding, id.Key))
		}
	}
	rows, err := m.Tables.ReadState(ctx, "reading the ledger entries of mirror items", keys)
	if err != nil {
		return nil, err
	}
	result := map[plan.ItemRule]bool{}
	for id, h := range asked.All() {
		source, ok := id.Rule.SourceKey(id.Key)
		if id.Claimed() {
			parked := rows[parkedKey(id.Binding, id.Key)] != nil
			found := state.ReadSet(rows[state.ClaimsKey(id.Binding, id.Key)], false)
			result[id] = found.Winner() == "" && !parked && m.isRight(id.Binding, nil, h, id.Key, false)
		} else if ok {
			ent, err := state.ReadEntry(m.Planner, rows[state.EntryKey(source)])
			if err != nil {
				return nil, err
			}
			var wanted *mirrorItem
			if ent != nil {
				if _, it, ok := itemIn(ent.Effects, id.Binding, id.Key); ok {
					wanted = &it
				}
			}
			result[id] = m.isRight(id.Binding, wanted, h, id.Key, isParked(rows, id.Binding, id.Key))
		}
	}
	return result, nil
}

// isRight reports whether an item at a mirror target is as the ledger's effect (nil:
// none) asks for it. parked says that the rule is parked on an occupied target.
func (m maker) isRight(b *plan.Binding, wanted *mirrorItem, h *Heal, target change.Key, parked bool) bool {
	if wanted == nil && parked { // another worker took the item back, and did not see that the rule was parked there
		return false
	}
	if h.Last == nil {
		return wanted == nil || wanted.expired && !h.Deleted
	}
	at := placeOf(b, target, h.Last)
	s, stamped := stamp.Read(h.Last.Lookup(b.Stamp), stamp.Context(m.Planner.Incarnation, target, ""))
	switch {
	case wanted == nil: // the application's own item stays, without our stamp
		return at != placeMade && !stamped
	case at == placeOccupied:
		return parked && !stamped && !h.Repark
	}
	return stamped && !parked && !wanted.expired && s.Digest == plan.DigestOf(b, h.Last) && wanted.hasContent(contentDigest(b.Rule, h.Last))
}

// healTarget brings one mirror item to what its source asks for.
func (m maker) healTarget(ctx context.Context, suffix int, pl *plan.Changes, id plan.ItemRule, h *Heal) error {
	if id.Claimed() {
		return m.deriveTarget(ctx, id.Binding, id.Key, h)
	}
	source, ok := id.Rule.SourceKey(id.Key)
	if !ok {
		return nil
	}
	var expired mirrorItem // as the entry had it in force at first
	return table.Contend(ctx, "healing "+id.Key.String(), func() (table.Round, error) {
		mv, err := m.Ledger.Read(ctx, source)
		if err != nil {
			return table.Lost, err
		}
		if h.Freed {
			mv.See(id.Key, h.Last) // the write clears what is parked there
		}
		k, held, _ := itemIn(mv.Old, id.Binding, id.Key)
		asked := false
		switch now, wanted := itemOf(mv.New[k]); {
		case !h.Expired:
			mv.RestoreAt(k, id.Key)
		case wanted && held.isSame(now) && (expired.digest == "" || expired.isSame(now)): // the item that expired is the one in force
			now.expired, asked, expired = true, true, now
			mv.Ask(k, now.effect())
		}
		var failure error
		m.Ledger.Apply(ctx, []*plan.Move{mv}, suffix, func(_ *plan.Move, err error) { failure = err })
		if failure != nil {
			return table.Lost, failure
		}
		pl.AddRollups(mv, h.First)
		// If another worker moved the entry, the move was planned anew and forgot the expiry. An item that is there again ends it.
		now, wanted := itemOf(mv.New[k])
		return table.FinishedIf(!asked || !wanted || now.expired || mv.Seen[id.Key] != nil || !now.isSame(expired)), nil
	})
}

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
