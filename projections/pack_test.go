package projections

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// fixed is a differ with an answer for every move.
type fixed map[*move]struct {
	sums []sum
	rest []action
}

func (f fixed) difference(mv *move) ([]sum, []action) { return f[mv].sums, f[mv].rest }

func TestPacksHoldEveryMoveOnceWithinTheLimitsOfATransaction(t *testing.T) {
	groups := make([]*binding, 3)
	for i := range groups {
		groups[i] = &binding{id: fmt.Sprint("rule", i)}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := fixed{}
		var moves []*move
		want := map[groupRef]decimal.Decimal{}
		for i := range rapid.IntRange(0, 300).Draw(t, "moves") {
			mv := &move{key: change.Key{Partition: fmt.Sprint(i)}, alone: rapid.IntRange(0, 20).Draw(t, "alone") == 0}
			d := f[mv]
			g := groupRef{groups[rapid.IntRange(0, 2).Draw(t, "rule")], fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "group"))}
			d.sums = []sum{{g, decimal.New(int64(rapid.IntRange(-5, 5).Draw(t, "amount")))}}
			want[g], _ = want[g].Add(d.sums[0].delta)
			if target := rapid.IntRange(0, 40).Draw(t, "target"); target < 20 {
				d.rest = []action{{item: fmt.Sprint(target), bytes: rapid.IntRange(0, 400_000).Draw(t, "bytes")}}
			}
			f[mv], moves = d, append(moves, mv)
		}
		seen := map[*move]bool{}
		got := map[groupRef]decimal.Decimal{}
		for _, pk := range packMoves(moves, f) {
			items := map[string]bool{}
			bytes := 0
			for _, mv := range pk.moves {
				if seen[mv] {
					t.Fatal("a move is in two packs")
				}
				seen[mv] = true
				if mv.alone && len(pk.moves) > 1 {
					t.Fatal("a move that must be alone has company")
				}
				for _, a := range f[mv].rest {
					if items[a.item] {
						t.Fatal("a transaction writes an item twice")
					}
					items[a.item] = true
					bytes += a.bytes
				}
			}
			groups := map[groupRef]bool{}
			for _, s := range pk.sums {
				if groups[s.group] {
					t.Fatal("an accumulator appears twice")
				}
				groups[s.group] = true
				got[s.group], _ = got[s.group].Add(s.delta)
			}
			if n := len(pk.moves) + len(pk.sums) + len(items); n > transactActionsMax || bytes > transactBytesMax && len(pk.moves) > 1 {
				t.Fatalf("a transaction of %d actions and %d bytes", n, bytes)
			}
		}
		if len(seen) != len(moves) {
			t.Fatalf("%d of %d moves are packed", len(seen), len(moves))
		}
		for g, total := range want {
			if got[g].Cmp(total) != 0 {
				t.Fatalf("group %s adds up to %s, want %s", g.group, got[g], total)
			}
		}
	})
}

func TestASumThatNoNumberHoldsIsNotMerged(t *testing.T) {
	g := groupRef{&binding{id: "r"}, "g"}
	huge, err := decimal.Parse("12345678901234567890123456789012345678")
	if err != nil {
		t.Fatal(err)
	}
	tenth, err := decimal.Parse("0.1")
	if err != nil {
		t.Fatal(err)
	}
	a, b := &move{}, &move{}
	f := fixed{}
	for mv, delta := range map[*move]decimal.Decimal{a: huge, b: tenth} {
		d := f[mv]
		d.sums = []sum{{g, delta}}
		f[mv] = d
	}
	if packs := packMoves([]*move{a, b}, f); len(packs) != 2 {
		t.Errorf("%d packs, want the two contributions apart", len(packs))
	}
}
