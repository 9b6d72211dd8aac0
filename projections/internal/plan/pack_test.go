package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// fixed is a differ with an answer for every move.
type fixed map[*Move]struct {
	sums []Sum
	rest []Action
}

func (f fixed) Difference(mv *Move) ([]Sum, []Action) { return f[mv].sums, f[mv].rest }

func TestPacksHoldEveryMoveOnceWithinTheLimitsOfATransaction(t *testing.T) {
	groups := make([]*Binding, 3)
	for i := range groups {
		groups[i] = &Binding{ID: fmt.Sprint("rule", i)}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := fixed{}
		var moves []*Move
		want, members := map[GroupRef]decimal.Decimal{}, map[GroupRef]int64{}
		for i := range rapid.IntRange(0, 300).Draw(t, "moves") {
			mv := &Move{Key: change.Key{Partition: fmt.Sprint(i)}, Alone: rapid.IntRange(0, 20).Draw(t, "alone") == 0}
			d := f[mv]
			g := GroupRef{groups[rapid.IntRange(0, 2).Draw(t, "rule")], fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "group"))}
			d.sums = []Sum{{g, decimal.New(int64(rapid.IntRange(-5, 5).Draw(t, "amount"))), int64(rapid.IntRange(-1, 1).Draw(t, "members"))}}
			want[g], _ = want[g].Add(d.sums[0].Delta)
			members[g] += d.sums[0].Members
			if target := rapid.IntRange(0, 40).Draw(t, "target"); target < 20 {
				d.rest = []Action{{Item: fmt.Sprint(target), Bytes: rapid.IntRange(0, 400_000).Draw(t, "bytes")}}
			}
			f[mv], moves = d, append(moves, mv)
		}
		seen := map[*Move]bool{}
		got := map[GroupRef]decimal.Decimal{}
		for _, pk := range packMoves(moves, f) {
			items := map[string]bool{}
			bytes := 0
			for _, mv := range pk.Moves {
				if seen[mv] {
					t.Fatal("a move is in two packs")
				}
				seen[mv] = true
				if mv.Alone && len(pk.Moves) > 1 {
					t.Fatal("a move that must be alone has company")
				}
				for _, a := range f[mv].rest {
					if items[a.Item] {
						t.Fatal("a transaction writes an item twice")
					}
					items[a.Item] = true
					bytes += a.Bytes
				}
			}
			groups := map[GroupRef]bool{}
			for _, s := range pk.Sums {
				if groups[s.Group] {
					t.Fatal("an accumulator appears twice")
				}
				groups[s.Group] = true
				got[s.Group], _ = got[s.Group].Add(s.Delta)
				members[s.Group] -= s.Members
			}
			if n := len(pk.Moves) + len(pk.Sums) + len(items); n > TransactActionsMax || bytes > transactBytesMax && len(pk.Moves) > 1 {
				t.Fatalf("a transaction of %d actions and %d bytes", n, bytes)
			}
		}
		if len(seen) != len(moves) {
			t.Fatalf("%d of %d moves are packed", len(seen), len(moves))
		}
		for g, total := range want {
			if got[g].Cmp(total) != 0 {
				t.Fatalf("group %s adds up to %s, want %s", g.Group, got[g], total)
			}
			if members[g] != 0 {
				t.Fatalf("group %s lacks %d members", g.Group, members[g])
			}
		}
	})
}

func TestASumThatNoNumberHoldsIsNotMerged(t *testing.T) {
	g := GroupRef{&Binding{ID: "r"}, "g"}
	huge, err := decimal.Parse("12345678901234567890123456789012345678")
	if err != nil {
		t.Fatal(err)
	}
	tenth, err := decimal.Parse("0.1")
	if err != nil {
		t.Fatal(err)
	}
	a, b := &Move{}, &Move{}
	f := fixed{}
	for mv, delta := range map[*Move]decimal.Decimal{a: huge, b: tenth} {
		d := f[mv]
		d.sums = []Sum{{g, delta, 1}}
		f[mv] = d
	}
	if packs := packMoves([]*Move{a, b}, f); len(packs) != 2 {
		t.Errorf("%d packs, want the two contributions apart", len(packs))
	}
}
