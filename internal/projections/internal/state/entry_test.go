package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TestAnEntryTellsItsItem tries keys around the longest that an entry's own key holds whole. A sweep passes over an entry that does not
// tell its item.
func TestAnEntryTellsItsItem(t *testing.T) {
	longest := table.PartitionBytesMax - len(state.EntryPrefix)
	for length := longest - 3; length <= table.PartitionBytesMax; length++ {
		for _, letters := range []string{"x", "é", "😀"} {
			text := strings.Repeat(letters, length/len(letters))
			item := change.Key{Partition: text + strings.Repeat("y", length-len(text))}
			row := state.EntryRow(&plan.Move{Key: item}, 0, time.Time{})
			if got, ok := state.EntryItem(row); !ok || got != item {
				t.Errorf("the entry of a key of %d bytes of %s tells %v, of %d bytes", length, letters, ok, len(got.Partition))
			}
			_, whole := row["item"]
			delete(row, "item")
			if got, ok := state.EntryItem(row); whole && ok {
				t.Errorf("an entry that has lost the key of its item, of %d bytes of %s, tells one of %d bytes", length, letters, len(got.Partition))
			}
		}
	}
}
