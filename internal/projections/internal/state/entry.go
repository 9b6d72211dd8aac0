package state

import (
	"fmt"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TombstoneTTL is how long rows without effects or children stay. Streams keep records for 24 hours (DynamoDB developer guide):
// eight days leave a week for records that were set aside. From the ttl of a deletion mark and this time, takeoverEnd in
// kinds/deletions works out when the mark was put: another time takes effect for new marks alone.
const TombstoneTTL = 8 * 24 * time.Hour

// EntryKey is the key of an item's ledger entry.
func EntryKey(item change.Key) table.Key { return table.NewKey(EntryPrefix+item.String(), "e") }

// EntryItem is the item of a ledger entry; false if its key was cut and is not beside it.
func EntryItem(r table.Row) (change.Key, bool) {
	if key := table.TextOf(r["item"]); key != "" {
		return change.ParseKey(key), true
	}
	text := strings.TrimPrefix(table.TextOf(r[table.PK]), EntryPrefix)
	key := change.ParseKey(text)
	return key, EntryKey(key) == table.KeyOf(r) && !table.LooksCut(table.TextOf(r[table.PK]))
}

// ReadEntry decodes a ledger entry; nil for a row that is not there.
func ReadEntry(p *plan.Planner, r table.Row) (*plan.Entry, error) {
	ent, err := p.ReadEntry(attributes.ItemFromTable(r))
	if err != nil {
		return nil, TornError(r, err.Error())
	}
	return ent, nil
}

// TornError says that another program has written in a row. verify says what is to be made of it.
func TornError(r table.Row, what string) error {
	return fmt.Errorf("row %s of the state table cannot be read: it holds %s; run `dynamill verify --repair`",
		table.TextOf(r[table.PK]), what)
}

// EntryRow is what a move writes: its ledger entry under these rules. One without effects expires.
func EntryRow(mv *plan.Move, epoch int, expires time.Time) table.Row {
	key := EntryKey(mv.Key)
	r := key.Attributes()
	at, rederived := mv.At(epoch)
	after := mv.Next()
	r["a"] = table.Text(string(at))
	if key.Partition != EntryPrefix+mv.Key.String() {
		r["item"] = table.Text(mv.Key.String()) // the key was cut: a sweep needs it whole
	}
	if rederived > 0 {
		r["rederived"] = table.Number(rederived)
	}
	if len(after) > 0 {
		r["e"] = effectsValue(after)
	} else {
		r["ttl"] = table.Number(expires.Unix())
	}
	if len(mv.Due) > 0 {
		due := make([]string, len(mv.Due))
		for i, g := range mv.Due {
			due[i] = g.String()
		}
		r["due"] = &ddb.AttributeValueMemberSS{Value: due}
	}
	return r
}

// EntryUnmoved is the condition that a ledger entry is as a move takes it to be.
func EntryUnmoved(c *table.Expression, mv *plan.Move) (condition string) {
	if mv.Exact {
		condition = EntryIs(c, mv.Entry)
	} else {
		condition = effectsAre(c, mv.Old) +
			c.Format(" AND %n >= %v AND %n < %v", "a", table.Text(string(mv.To.EpochStart())), "a", table.Text(string(mv.To))) +
			c.Format(" AND attribute_not_exists(%n)", "due")
		if len(mv.Old) == 0 {
			condition = "attribute_not_exists(pk) OR (" + condition + ")"
		}
	}
	return condition
}

// effectsAre is the condition that exactly these effects are in force. DynamoDB has no empty set.
func effectsAre(c *table.Expression, fs effects.ByKey) string {
	if len(fs) == 0 {
		return c.Format("attribute_not_exists(%n)", "e")
	}
	return c.Format("%n = %v", "e", effectsValue(fs))
}

// effectsValue is effects, at least one, as a ledger entry holds them.
func effectsValue(fs effects.ByKey) ddb.AttributeValue {
	return &ddb.AttributeValueMemberSS{Value: fs.Texts()}
}

// EntryIs is the condition that a ledger entry is exactly e.
func EntryIs(c *table.Expression, e *plan.Entry) string {
	if e == nil {
		return "attribute_not_exists(pk)"
	}
	if e.Rederived == 0 {
		return c.Format("%n = %v AND attribute_not_exists(%n)", "a", table.Text(string(e.At)), "rederived")
	}
	return c.Format("%n = %v AND %n = %v", "a", table.Text(string(e.At)), "rederived", table.Number(e.Rederived))
}

// EntryPrefix begins the partition key of ledger entries.
const EntryPrefix = "i/"
