package tally_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/tally"
)

// anyAmount draws an amount of a rule without `per`, or of one with it.
func anyAmount() *rapid.Generator[tally.Amount] {
	return rapid.Custom(func(t *rapid.T) tally.Amount {
		number := rapid.Map(rapid.Int64Range(-5, 5), decimal.New)
		a := tally.Amount{Value: number.Draw(t, "value"), Members: rapid.Int64Range(-2, 2).Draw(t, "members")}
		for _, per := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b/c", "%"}), 0, 3, rapid.ID).Draw(t, "per") {
			if a.Parts == nil {
				a.Parts = tally.Parts{}
			}
			a.Parts[per] = tally.Share{Value: number.Draw(t, "part"), Members: rapid.Int64Range(-2, 2).Draw(t, "part's members")}
		}
		return a
	})
}

func TestWhatIsAddedCanBeTakenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyAmount().Draw(t, "a"), anyAmount().Draw(t, "b")
		if sum := a.Add(b); !sum.Lacks(b).Equals(a) || !sum.Add(b.Negative()).Equals(a) {
			t.Fatalf("%s and %s are %s, of which %s is left", a, b, sum, sum.Lacks(b))
		}
		if rest := a.Lacks(a); !rest.IsEmpty() {
			t.Fatalf("%s less itself is %s", a, rest)
		}
		if a.IsEmpty() != a.Equals(tally.Amount{}) {
			t.Fatalf("%s is empty: %t", a, a.IsEmpty())
		}
	})
}

func TestAmountsReadBackAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyAmount().Draw(t, "amount")
		if got := tally.Parse(a.String()); !got.Equals(a) {
			t.Fatalf("%s reads back as %s", a, got)
		}
	})
}

func TestAnAmountThatNoNumberHoldsStaysBeyond(t *testing.T) {
	most, err := decimal.Parse("9e125")
	if err != nil {
		t.Fatal(err)
	}
	a := tally.Amount{Value: most, Members: 1}
	sum := a.Add(a)
	if !sum.Overflow || sum.IsEmpty() || !tally.Parse(sum.String()).Overflow || !sum.Add(tally.Amount{}).Overflow {
		t.Errorf("twice %s is %s", a, sum)
	}
	parts := tally.Amount{Parts: tally.Parts{"x": {Value: most, Members: 1}}}
	if sum := parts.Add(parts); !sum.Overflow {
		t.Errorf("twice %s is %s", parts, sum)
	}
}
