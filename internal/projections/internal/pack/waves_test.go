package pack

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

// TestPacksOfOneWaveWriteDifferentItems draws packs, and holds that Waves keeps each of them, keeps the order of those
// that write one item, and sends neither these nor two that add to one accumulator at the same time.
func TestPacksOfOneWaveWriteDifferentItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var packs []*Pack
		for i := range rapid.IntRange(0, 12).Draw(t, "packs") {
			pk := &Pack{Number: i + 1, exclusive: map[string]bool{}}
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				pk.exclusive[fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "item"))] = true
			}
			pk.Sums = addingTo(rapid.SliceOfN(rapid.IntRange(0, 9), 0, 2).Draw(t, "groups")...)
			packs = append(packs, pk)
		}
		wave := map[*Pack]int{}
		for i, w := range Waves(packs) {
			for _, pk := range w {
				wave[pk] = i
			}
		}
		if len(wave) != len(packs) {
			t.Fatalf("%d packs of %d are in a wave", len(wave), len(packs))
		}
		for i, a := range packs {
			for _, b := range packs[i+1:] {
				for item := range a.exclusive {
					if b.exclusive[item] && wave[a] >= wave[b] {
						t.Fatalf("packs %d and %d write item %s in waves %d and %d", a.Number, b.Number, item, wave[a], wave[b])
					}
				}
				for _, s := range a.Sums {
					if slices.ContainsFunc(b.Sums, func(o plan.Sum) bool { return o.Group == s.Group }) && wave[a] == wave[b] {
						t.Fatalf("packs %d and %d add to group %s in one wave", a.Number, b.Number, s.Group.Group)
					}
				}
			}
		}
	})
}

// single is the form of a rule with one write suffix.
type single struct {
	rules.Form
	rules.Adder
}

func (single) Suffixes() int { return 1 }

var counted = &plan.Binding{ID: "count", Rule: &rules.Rule{Form: single{}}}

func addingTo(groups ...int) (sums []plan.Sum) {
	for _, g := range groups {
		sums = append(sums, plan.Sum{Group: plan.GroupRef{Binding: counted, Group: fmt.Sprintf("%03d", g)}})
	}
	return sums
}

// Each group but the last is in two packs: so a hot counter is among others.
func TestPacksThatShareCountersWithTheirNeighboursTakeTwoWaves(t *testing.T) {
	var packs []*Pack
	for i := range 12 {
		packs = append(packs, &Pack{Number: i, Sums: addingTo(i, i+1)})
	}
	if waves := Waves(packs); len(waves) != 2 || len(waves[0]) != 6 || len(waves[1]) != 6 {
		t.Errorf("%d waves", len(waves))
	}
}

func TestACounterIsInOnePackIfOneHoldsIt(t *testing.T) {
	f := fixed{}
	var moves []*plan.Move
	for i := range 1000 {
		mv := &plan.Move{Key: change.Key{Partition: fmt.Sprint(i)}}
		d := f[mv]
		d.sums = addingTo(i % 40) // 25 moves each: three counters make a pack of 78 actions
		f[mv], moves = d, append(moves, mv)
	}
	packs := spread(moves, f.difference)
	if waves := Waves(packs); len(packs) != 14 || len(waves) != 1 {
		t.Errorf("%d packs in %d waves, want 14 in one", len(packs), len(waves))
	}
	moves = moves[:0]
	for range 150 { // one counter with more moves than a pack holds
		mv := &plan.Move{}
		d := f[mv]
		d.sums = addingTo(7)
		f[mv], moves = d, append(moves, mv)
	}
	if packs := spread(moves, f.difference); len(packs) != 2 || len(packs[0].Moves) != plan.TransactActionsMax-1 {
		t.Errorf("%d packs, want a full one and the rest", len(packs))
	}
}
