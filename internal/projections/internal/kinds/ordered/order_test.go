package ordered

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
)

// orders are values by which members are ordered: numbers in plain digits, and texts that are not empty.
func orders() *rapid.Generator[change.Value] {
	numbers := rapid.Custom(func(t *rapid.T) change.Value {
		text := rapid.StringMatching(`-?([0-9]|[1-9][0-9]{1,37}|[0-9]\.[0-9]{1,37})(E-?([0-9]|[1-8][0-9]))?`).Draw(t, "number")
		d, err := decimal.Parse(text)
		if err != nil {
			t.Skip(text, err)
		}
		return change.Number(d.String())
	})
	texts := rapid.StringOfN(rapid.RuneFrom([]rune("\x00\x01 !\"0Aa~\x7fé€\uffff😀")), 1, 8, -1)
	return rapid.OneOf(numbers, rapid.Map(texts, change.String))
}

// compareValues compares numbers before texts, and texts by their bytes.
func compareValues(v, w change.Value) int {
	switch {
	case v.Kind() != w.Kind() && v.Kind() == change.KindNumber:
		return -1
	case v.Kind() != w.Kind():
		return 1
	case v.Kind() == change.KindNumber:
		x, _ := new(big.Rat).SetString(v.Text())
		y, _ := new(big.Rat).SetString(w.Text())
		return x.Cmp(y)
	}
	return strings.Compare(v.Text(), w.Text())
}

// TestMemberRowsSortAsTheirOrders compares rows of members with any orders, and of two with one order by their keys.
func TestMemberRowsSortAsTheirOrders(t *testing.T) {
	parts := rapid.StringOfN(rapid.RuneFrom([]rune("\x00 !\"/%A~é😀")), 1, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		v, w := orders().Draw(t, "v"), orders().Draw(t, "w")
		if rapid.Bool().Draw(t, "equal") {
			w = v
		}
		x := change.Key{Partition: parts.Draw(t, "pk"), Sort: parts.Draw(t, "sk")}
		y := change.Key{Partition: parts.Draw(t, "other pk"), Sort: parts.Draw(t, "other sk")}
		want := compareValues(v, w)
		if short := !strings.HasPrefix(x.String(), "~") && !strings.HasPrefix(y.String(), "~"); want == 0 && short {
			want = strings.Compare(x.String(), y.String())
		} else if want == 0 {
			t.Skip("a digest decides")
		}
		one, other := state.MemberSort(orderOf(v), x, ""), state.MemberSort(orderOf(w), y, "")
		if got := strings.Compare(one, other); got != want {
			t.Fatalf("%q and %q compare as %d, want %d", one, other, got, want)
		}
		if source, ok := state.MemberSource(one, x.String()); !ok || source != x {
			t.Fatalf("%q is read as of %q, %t; want %q", one, source, ok, x)
		}
	})
}
