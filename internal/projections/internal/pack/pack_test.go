package pack

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// fixed has a difference for every move.
type fixed map[*plan.Move]struct {
	sums []plan.Sum
	rest []plan.Action
}

func (f fixed) difference(mv *plan.Move) ([]plan.Sum, []plan.Action) { return f[mv].sums, f[mv].rest }

func TestPacksHoldEveryMoveOnceWithinTheLimitsOfATransaction(t *testing.T) {
	groups := make([]*plan.Binding, 3)
	for i := range groups {
		groups[i] = &plan.Binding{ID: fmt.Sprint("rule", i)}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := fixed{}
		var moves []*plan.Move
		want, members := map[plan.GroupRef]decimal.Decimal{}, map[plan.GroupRef]int64{}
		for i := range rapid.IntRange(0, 300).Draw(t, "moves") {
			mv := &plan.Move{Key: change.Key{Partition: fmt.Sprint(i)}, Alone: rapid.IntRange(0, 20).Draw(t, "alone") == 0}
			d := f[mv]
			g := plan.GroupRef{Binding: groups[rapid.IntRange(0, 2).Draw(t, "rule")], Group: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "group"))}
			d.sums = []plan.Sum{{Group: g, Delta: decimal.New(int64(rapid.IntRange(-5, 5).Draw(t, "amount"))),
				Members: int64(rapid.IntRange(-1, 1).Draw(t, "members"))}}
			want[g], _ = want[g].Add(d.sums[0].Delta)
			members[g] += d.sums[0].Members
			if target := rapid.IntRange(0, 40).Draw(t, "target"); target < 20 {
				d.rest = []plan.Action{{Item: fmt.Sprint(target), Bytes: rapid.IntRange(0, 400_000).Draw(t, "bytes")}}
			}
			f[mv], moves = d, append(moves, mv)
		}
		seen := map[*plan.Move]bool{}
		got := map[plan.GroupRef]decimal.Decimal{}
		for _, pk := range spread(moves, f.difference) {
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
			groups := map[plan.GroupRef]bool{}
			for _, s := range pk.Sums {
				if groups[s.Group] {
					t.Fatal("an accumulator appears twice")
				}
				groups[s.Group] = true
				got[s.Group], _ = got[s.Group].Add(s.Delta)
				members[s.Group] -= s.Members
			}
			if n := len(pk.Moves) + len(pk.Sums) + len(items); n > plan.TransactActionsMax || bytes > plan.TransactBytesMax && len(pk.Moves) > 1 {
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
	g := plan.GroupRef{Binding: &plan.Binding{ID: "r"}, Group: "g"}
	huge, err := decimal.Parse("12345678901234567890123456789012345678")
	if err != nil {
		t.Fatal(err)
	}
	tenth, err := decimal.Parse("0.1")
	if err != nil {
		t.Fatal(err)
	}
	a, b := &plan.Move{}, &plan.Move{}
	f := fixed{}
	for mv, delta := range map[*plan.Move]decimal.Decimal{a: huge, b: tenth} {
		d := f[mv]
		d.sums = []plan.Sum{{Group: g, Delta: delta, Members: 1}}
		f[mv] = d
	}
	if packs := spread([]*plan.Move{a, b}, f.difference); len(packs) != 2 {
		t.Errorf("%d packs, want the two contributions apart", len(packs))
	}
}
