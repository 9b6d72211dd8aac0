package ordered

import (
	"cmp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// drawNumber draws a number of up to 38 digits, as DynamoDB writes it.
func drawNumber(t *rapid.T, name string) decimal.Decimal {
	text := rapid.StringMatching(`-?[0-9]{1,38}(E(-?[0-9]{1,2}))?`).Draw(t, name)
	d, err := decimal.Parse(text)
	if err != nil {
		return decimal.New(rapid.Int64().Draw(t, name+" in its place"))
	}
	return d
}

// TestOrdersSortAsTheirValues compares the rows of two members with their values, and with their sources where the values are equal.
func TestOrdersSortAsTheirValues(t *testing.T) {
	text := rapid.StringMatching("[ !\"#~a\x00\x01é😀0-9-]{1,6}")
	rapid.Check(t, func(t *rapid.T) {
		var values [2]change.Value
		var numbers [2]decimal.Decimal
		for i := range values {
			if rapid.Bool().Draw(t, "a number") {
				numbers[i] = drawNumber(t, "number")
				values[i] = change.Number(numbers[i].String())
			} else {
				values[i] = change.String(text.Draw(t, "text"))
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "equal") == 0 {
			values[1], numbers[1] = values[0], numbers[0]
		}
		want := cmp.Compare(values[0].Text(), values[1].Text())
		switch isNumber := [2]bool{values[0].Kind() == change.KindNumber, values[1].Kind() == change.KindNumber}; {
		case isNumber[0] && isNumber[1]:
			want = numbers[0].Cmp(numbers[1])
		case isNumber[0]:
			want = -1
		case isNumber[1]:
			want = 1
		}
		var keys [2]change.Key
		var sorts [2]string
		for i := range keys {
			keys[i] = change.Key{Partition: strings.Trim(text.Draw(t, "source"), "~") + "x"}
			sorts[i] = state.MemberSort(orderOf(values[i]), keys[i], "")
			if !isOrder(sorts[i]) || len(sorts[i]) > 1024 {
				t.Fatalf("%q is the key of %q", sorts[i], values[i].Text())
			}
		}
		if want == 0 {
			want = cmp.Compare(keys[0].String(), keys[1].String())
		}
		if got := strings.Compare(sorts[0], sorts[1]); got != want {
			t.Fatalf("%q of %s %q and %q of %s %q compare as %d, want %d", sorts[0], values[0].Text(), keys[0], sorts[1], values[1].Text(), keys[1],
				got, want)
		}
	})
}

// TestKeysOfMemberRowsTellTheirSources reads back what any key becomes in the key of a member row.
func TestKeysOfMemberRowsTellTheirSources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.StringN(1, 20, -1), rapid.StringN(400, 500, -1), rapid.Just("~a"))
		key := change.Key{Partition: part.Draw(t, "partition"), Sort: part.Draw(t, "sort")}
		sort := state.MemberSort(orderOf(change.String(part.Draw(t, "order"))), key, rapid.StringN(0, 10, -1).Draw(t, "element"))
		row := state.MemberRow(table.Key{Partition: "member/x/g", Sort: sort}, key, nil)
		if got, ok := state.MemberSource(sort, table.TextOf(row["item"])); !ok || got != key {
			t.Fatalf("%q tells %v (%t), want %v", sort, got, ok, key)
		}
	})
}

func TestEqualNumbersHaveOneOrder(t *testing.T) {
	for value, want := range map[string]string{
		"0": "n0", "12.5": "n1502125", "-12.5": "n-497874:", "0.001": "n14981", "1000": "n15041", "-0.001": "n-5018:",
	} {
		if got := orderOf(change.Number(value)); got != want {
			t.Errorf("%s has the order %q, want %q", value, got, want)
		}
	}
}
