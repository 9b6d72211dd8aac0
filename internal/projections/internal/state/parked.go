package state

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ParkedPartition holds all that is parked. Sort key: <rule id>/<item key>, display:<rule id>/<target>, contested:<id>/<target>,
// values:<rule id>/<group>, or record/<position>.
const ParkedPartition = "parked"

// Parked is a row of what is parked.
type Parked struct {
	ID       string
	Rule     string     // its id; "" of a record that could not be read
	Item     change.Key // none of a record that could not be read, and of a contested unique value
	Code     string
	Reason   string
	Position change.Position // zero if no record caused it
	At       time.Time
	Raw      string   // of a record that could not be read
	Value    string   // of a contested unique value
	Parking  string   // tells a later parking from the one that a retry is about
	With     []string // items that were parked together with this one, itself among them; sorted
}

// Row encodes the record.
func (p Parked) Row() table.Row {
	r := ParkedKey(p.ID).Attributes()
	r["id"], r["code"], r["reason"] = table.Text(p.ID), table.Text(p.Code), table.Text(p.Reason)
	r["parking"], r["parkedAt"] = table.Text(p.Parking), table.Text(p.At.UTC().Format(time.RFC3339))
	for name, text := range map[string]string{"rule": p.Rule, "item": p.Item.String(), "value": p.Value} {
		if text != "" {
			r[name] = table.Text(text)
		}
	}
	if p.Rule == "" {
		r["raw"] = table.Text(p.Raw)
	}
	if len(p.With) > 0 {
		r["with"] = &ddb.AttributeValueMemberSS{Value: p.With}
	}
	if !p.Position.IsZero() {
		r["position"] = table.Text(p.Position.String())
	}
	return r
}

// ReadParked decodes a row of what is parked.
func ReadParked(r table.Row) Parked {
	p := Parked{
		ID: cmp.Or(table.TextOf(r["id"]), table.TextOf(r[table.SK])), Rule: table.TextOf(r["rule"]),
		Item: change.ParseKey(table.TextOf(r["item"])),
		Code: table.TextOf(r["code"]), Reason: table.TextOf(r["reason"]), Raw: table.TextOf(r["raw"]), Parking: table.TextOf(r["parking"]),
	}
	p.Position, _ = change.ParsePosition(table.TextOf(r["position"]))
	p.At, _ = time.Parse(time.RFC3339, table.TextOf(r["parkedAt"]))
	if with, ok := r["with"].(*ddb.AttributeValueMemberSS); ok {
		p.With = slices.Sorted(slices.Values(with.Value))
	}
	return p
}

// ParkedID is the id of an (item, rule) that is parked.
func ParkedID(ruleID string, item change.Key) string { return ruleID + "/" + item.String() }

// ParkedKey is the key of what is parked under an id.
func ParkedKey(id string) table.Key { return table.NewKey(ParkedPartition, id) }

// ParkedItemKey is the key of what is parked of an item under a rule or a locator.
func ParkedItemKey(ruleID string, item change.Key) table.Key {
	return ParkedKey(ParkedID(ruleID, item))
}

// HealsRows begins the partition keys of counts of corrections.
const HealsRows = "heals"

// HealsKey is the key of the row that counts the corrections of one rule on one item in a window of time.
func HealsKey(b *plan.Binding, item change.Key, window int64) table.Key {
	return table.NewKey(HealsRows+"/"+b.ID+"/"+item.String(), strconv.FormatInt(window, 10))
}
