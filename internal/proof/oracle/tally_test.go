package oracle

import (
	"math/big"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/decimal"
)

// TestMeansAreRoundedHalfToEven compares means with what a person finds on paper.
func TestMeansAreRoundedHalfToEven(t *testing.T) {
	zeros := strings.Repeat("0", 129)
	for _, row := range []struct {
		sum     string
		members int64
		want    string
	}{
		{"0", 3, "0"}, {"10", 4, "2.5"}, {"-10", 4, "-2.5"}, {"300", 3, "100"}, {"1e125", 1, "1" + strings.Repeat("0", 125)},
		{"2", 3, "0." + strings.Repeat("6", 37) + "7"}, {"-1", 3, "-0." + strings.Repeat("3", 38)},
		{"2" + strings.Repeat("0", 36) + "1", 2, "1" + strings.Repeat("0", 37)},
		{"2" + strings.Repeat("0", 36) + "3", 2, "1" + strings.Repeat("0", 36) + "2"},
		{"1e-130", 2, "0"}, {"3e-130", 4, "0." + zeros + "1"}, {"3e-130", 2, "0." + zeros + "15"}, {"1e-130", 3, "0"},
	} {
		sum, err := decimal.Parse(row.sum)
		if err != nil {
			t.Fatal(err)
		}
		if got := theMean(sum, row.members).Text(); got != row.want {
			t.Errorf("%s over %d is %s, want %s", row.sum, row.members, got, row.want)
		}
	}
	if got := nearest(big.NewRat(1, 7)); got != "0.14285714285714285714285714285714285714" {
		t.Errorf("a seventh is %s", got)
	}
}
