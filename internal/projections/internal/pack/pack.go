package pack

import (
	"cmp"
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// entryBytes is what a ledger entry is taken to weigh.
const entryBytes = 1 << 10

// Pack is one transaction in the making: moves of different items, with each aggregate's contributions added up.
type Pack struct {
	Moves     []*plan.Move
	Sums      []plan.Sum
	Number    int             // among those that are made together: each adds under a write suffix of its own; 0 of a move that goes alone
	exclusive map[string]bool // targets, locators and parked records that one of the moves writes
	bytes     int
}

// Of spreads moves over as few transactions as it can, at least one if there is a
// move. Moves that touch the same aggregates are put side by side.
func Of(p *plan.Planner, moves []*plan.Move) []*Pack {
	return spread(moves, func(mv *plan.Move) ([]plan.Sum, []plan.Action) { return Difference(p, mv) })
}

// parts is what a move adds to aggregates, and what it does beside.
type parts struct {
	mv         *plan.Move
	sums       []plan.Sum
	rest       []plan.Action
	firstGroup string // the first of the aggregates
}

func spread(moves []*plan.Move, difference func(*plan.Move) ([]plan.Sum, []plan.Action)) []*Pack {
	all := make([]parts, len(moves))
	for i, mv := range moves {
		sums, rest := difference(mv)
		all[i] = parts{mv, sums, rest, ""}
		if len(sums) > 0 {
			all[i].firstGroup = sums[0].Group.String()
		}
	}
	slices.SortStableFunc(all, func(a, b parts) int { return cmp.Compare(a.firstGroup, b.firstGroup) })
	var packs []*Pack
	var open *Pack
	for i, p := range all {
		alone := p.mv.Alone || p.mv.Step != nil || slices.ContainsFunc(p.rest, func(a plan.Action) bool { return a.Reads })
		cuts := i > 0 && p.firstGroup != all[i-1].firstGroup && open != nil && open.cuts(all[i:])
		if alone || cuts || open == nil || !open.take(p.mv, p.sums, p.rest) {
			if open = (&Pack{exclusive: map[string]bool{}}); !open.take(p.mv, p.sums, p.rest) {
				panic("a move that fits no transaction was not divided: " + p.mv.Key.String())
			}
			if !alone {
				open.Number = len(packs)
			}
			packs = append(packs, open)
		}
		if alone {
			open = nil
		}
	}
	return packs
}

// cuts reports whether the run of moves that begins with all[0] and shares its first aggregate would be split between this pack and the
// next, although an empty pack holds it.
func (pk *Pack) cuts(all []parts) bool {
	run := slices.IndexFunc(all, func(p parts) bool { return p.firstGroup != all[0].firstGroup })
	if run < 0 {
		run = len(all)
	}
	return run < plan.TransactActionsMax && len(pk.Moves)+len(pk.Sums)+len(pk.exclusive)+run+1 > plan.TransactActionsMax
}

// Waves divides packs into those that may be sent together: no two write one item. Others keep their order, sums aside.
func Waves(packs []*Pack) (waves [][]*Pack) {
	for _, pk := range packs {
		i := len(waves)
		for i > 0 && !slices.ContainsFunc(waves[i-1], pk.follows) {
			i--
		}
		for i < len(waves) && slices.ContainsFunc(waves[i], pk.adds) {
			i++
		}
		if i == len(waves) {
			waves = append(waves, nil)
		}
		waves[i] = append(waves[i], pk)
	}
	return waves
}

// follows reports whether both packs write one item, accumulators aside.
func (pk *Pack) follows(other *Pack) bool {
	for item := range pk.exclusive {
		if other.exclusive[item] {
			return true
		}
	}
	return false
}

// adds reports whether both packs add to one accumulator.
func (pk *Pack) adds(other *Pack) bool {
	return slices.ContainsFunc(pk.Sums, func(s plan.Sum) bool {
		return (pk.Number-other.Number)%s.Group.Rule.Suffixes() == 0 &&
			slices.ContainsFunc(other.Sums, func(o plan.Sum) bool { return o.Group == s.Group })
	})
}

// take adds a move, unless the transaction would grow too large, write one item twice, or hold a sum that no number can. An empty pack
// takes each move that Fits, and each step of Divide.
func (pk *Pack) take(mv *plan.Move, sums []plan.Sum, rest []plan.Action) bool {
	merged, ok := merge(pk.Sums, sums)
	if !ok {
		return false
	}
	bytes := pk.bytes + entryBytes
	for _, a := range rest {
		if pk.exclusive[a.Item] {
			return false
		}
		bytes += a.Bytes
	}
	actions := len(pk.Moves) + 1 + len(merged) + len(pk.exclusive) + len(rest)
	if len(pk.Moves) > 0 && (actions > plan.TransactActionsMax || bytes > plan.TransactBytesMax) {
		return false
	}
	for _, a := range rest {
		pk.exclusive[a.Item] = true
	}
	pk.Moves, pk.Sums, pk.bytes = append(pk.Moves, mv), merged, bytes
	return true
}

// merge adds sums to those of a transaction, each aggregate once; false if no number holds a result.
func merge(to, sums []plan.Sum) (merged []plan.Sum, ok bool) {
	merged = slices.Clone(to)
	for _, s := range sums {
		i := slices.IndexFunc(merged, func(m plan.Sum) bool { return m.Group == s.Group })
		if i < 0 {
			merged = append(merged, s)
			continue
		}
		if merged[i], ok = merged[i].Add(s); !ok {
			return nil, false
		}
	}
	return merged, true
}
