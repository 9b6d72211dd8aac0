package state

import (
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// HealsRows begins the partition keys of counts of corrections.
const HealsRows = "heals"

// HealsKey is the key of the row that counts the corrections of one rule on one item in a window of time.
func HealsKey(b *plan.Binding, item change.Key, window int64) table.Key {
	return table.NewKey(HealsRows+"/"+b.ID+"/"+item.String(), strconv.FormatInt(window, 10))
}
