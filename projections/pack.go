package projections

import (
	"cmp"
	"slices"

	"github.com/dynamill/dynamill/internal/decimal"
)

const (
	// transactActionsMax is the most actions of one transaction (DynamoDB API, TransactWriteItems).
	transactActionsMax = 100
	// transactBytesMax leaves room below the 4 MB that a transaction may carry.
	transactBytesMax = 3 << 20
	// entryBytes is what a ledger entry is taken to weigh.
	entryBytes = 1 << 10
)

// sum is the difference that moves make to one aggregate.
type sum struct {
	group groupRef
	delta decimal.Decimal
}

// pack is one transaction in the making: moves of different items, with the
// contributions to each aggregate added up, so that every accumulator appears once.
type pack struct {
	moves     []*move
	sums      []sum
	exclusive map[string]bool // targets, locators and parked records that one of the moves writes
	bytes     int
}

// packMoves spreads moves over as few transactions as it can. Moves that touch
// the same aggregates are put side by side.
func packMoves(moves []*move, d differ) []*pack {
	type parts struct {
		mv   *move
		sums []sum
		rest []action
		near string
	}
	all := make([]parts, len(moves))
	for i, mv := range moves {
		sums, rest := d.difference(mv)
		all[i] = parts{mv, sums, rest, ""}
		if len(sums) > 0 {
			all[i].near = dueText(sums[0].group)
		}
	}
	slices.SortStableFunc(all, func(a, b parts) int { return cmp.Compare(a.near, b.near) })
	var packs []*pack
	var open *pack
	for _, p := range all {
		if p.mv.alone || open == nil || !open.take(p.mv, p.sums, p.rest) {
			open = &pack{exclusive: map[string]bool{}}
			open.take(p.mv, p.sums, p.rest)
			packs = append(packs, open)
		}
		if p.mv.alone {
			open = nil
		}
	}
	return packs
}

// take adds a move, unless the transaction would grow too large, write one
// item twice, or hold a sum that no number can hold. An empty pack takes anything.
func (pk *pack) take(mv *move, sums []sum, rest []action) bool {
	merged := slices.Clone(pk.sums)
	for _, s := range sums {
		i := slices.IndexFunc(merged, func(m sum) bool { return m.group == s.group })
		if i < 0 {
			merged = append(merged, s)
			continue
		}
		delta, err := merged[i].delta.Add(s.delta)
		if err != nil {
			return false
		}
		merged[i].delta = delta
	}
	bytes := pk.bytes + entryBytes
	for _, a := range rest {
		if pk.exclusive[a.item] {
			return false
		}
		bytes += a.bytes
	}
	actions := len(pk.moves) + 1 + len(merged) + len(pk.exclusive) + len(rest)
	if len(pk.moves) > 0 && (actions > transactActionsMax || bytes > transactBytesMax) {
		return false
	}
	for _, a := range rest {
		pk.exclusive[a.item] = true
	}
	pk.moves, pk.sums, pk.bytes = append(pk.moves, mv), merged, bytes
	return true
}
