package target_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// TestAConditionOnATextAcceptsTheValuesOfThatText: a number is known by its shortest text alone.
func TestAConditionOnATextAcceptsTheValuesOfThatText(t *testing.T) {
	for text, want := range map[string][]change.Value{
		"a": {change.String("a")}, "1": {change.String("1"), change.Number("1")}, "01": {change.String("01")}, "1.0": {change.String("1.0")},
		"-2.5": {change.String("-2.5"), change.Number("-2.5")}, "true": {change.String("true"), change.Bool(true)},
	} {
		c := table.NewExpression()
		target.HoldsText(c, "slug", text)
		got := make([]change.Value, len(c.Values))
		for i := range got {
			got[i] = attributes.FromTable(c.Values[":v"+strconv.Itoa(i)])
		}
		if !slices.EqualFunc(got, want, change.Value.Equal) {
			t.Errorf("text %q: accepts %v, want %v", text, got, want)
		}
	}
}
