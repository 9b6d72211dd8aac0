package ordered

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

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
