package lanes_test

import (
	"cmp"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/internal/lanes"
)

func TestPositionsSortAsNumbers(t *testing.T) {
	digits := rapid.Map(rapid.StringMatching(`[1-9][0-9]{0,39}|0`), strings.Clone)
	rapid.Check(t, func(t *rapid.T) {
		a, b := digits.Draw(t, "a"), digits.Draw(t, "b")
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		if got := cmp.Compare(lanes.Pad(a), lanes.Pad(b)); got != x.Cmp(y) {
			t.Fatalf("%s and %s compare as %d", a, b, got)
		}
		if lanes.Unpad(lanes.Pad(a)) != a {
			t.Fatalf("%s comes back as %s", a, lanes.Unpad(lanes.Pad(a)))
		}
		if lanes.Pad("") >= lanes.Pad(a) || lanes.Unpad(lanes.Pad("")) != "" {
			t.Fatalf("nothing is not before %s", a)
		}
	})
}
