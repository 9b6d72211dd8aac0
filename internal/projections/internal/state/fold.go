package state

import (
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/tally"
)

// The rows of a hot rule (docs/adr/0036-hot-counters-count-by-position.md). Their partition keys name the rule, the
// generation and the incarnation of the state table: no process reads the rows that a stalled worker writes for a former state table.

// The words with which these rows' partition keys begin.
const (
	FoldedRows      = "fold"    // one for each group and lane, and the group's base
	LaneRows        = "lane"    // one for each shard
	CountExtentRows = "counted" // how far counts have read
)

// baseSort is the sort key of a group's base row: that of a lane begins with another word.
const (
	baseSort   = "base"
	lanePrefix = "lane/"
)

// generationOf begins a partition key.
func generationOf(word string, b *plan.Binding, generation int64) string {
	return word + "/" + b.ID + "/" + strconv.FormatInt(generation, 10) + "/" + b.Incarnation
}

// GenerationIn is the generation that a partition key of these rows names; 0 for none, and for one of another incarnation.
func GenerationIn(partition, incarnation string) int64 {
	fields := strings.SplitN(partition, "/", 5)
	if len(fields) < 4 || fields[3] != incarnation {
		return 0
	}
	return tally.ParseCount(fields[2])
}

// FoldedKey is the key of the row in which the records of a lane are added to a group.
func FoldedKey(g plan.GroupRef, generation int64, lane string) table.Key {
	return table.NewKey(foldedPartition(g, generation), lanePrefix+lane)
}

// BaseKey is the key of the row of what a group began with.
func BaseKey(g plan.GroupRef, generation int64) table.Key {
	return table.NewKey(foldedPartition(g, generation), baseSort)
}

func foldedPartition(g plan.GroupRef, generation int64) string {
	return generationOf(FoldedRows, g.Binding, generation) + "/" + escape(g.Group)
}

// FoldedOf is the partition key of all rows of a group.
func FoldedOf(g plan.GroupRef, generation int64) string { return BaseKey(g, generation).Partition }

// Fold is the update that adds the differences of records, from the first to the last of them, to a row. Its condition is that the row has
// none of them yet. An amount of 0 is added, too.
func Fold(c *table.Expression, g plan.GroupRef, difference tally.Amount, first, last string) (update, condition string) {
	update = AddAmount(c, difference, 1) + c.Format(" SET %n = %v, %n = %v", "hw", table.Text(last), "group", table.Text(g.Group))
	return update, c.Format("attribute_not_exists(%n) OR %n < %v", "hw", "hw", table.Text(first))
}

// RefuseFold is Fold of records whose sum DynamoDB refuses: the row is noted as torn, and none of them is added.
func RefuseFold(c *table.Expression, g plan.GroupRef, first, last string) (update, condition string) {
	update = c.Format("ADD %n %v", "ops", table.Number(1)) +
		c.Format(" SET %n = %v, %n = %v, %n = %v", "hw", table.Text(last), "group", table.Text(g.Group), refusedAttribute, table.Text(first))
	return update, c.Format("attribute_not_exists(%n) OR %n < %v", "hw", "hw", table.Text(first))
}

// MendBase is the update that adds a difference to what a group began with; refused: DynamoDB refuses the sum, so the row is noted as torn.
func MendBase(c *table.Expression, g plan.GroupRef, difference tally.Amount, refused bool) string {
	if refused {
		return c.Format("ADD %n %v", "ops", table.Number(1)) +
			c.Format(" SET %n = %v, %n = %v", "group", table.Text(g.Group), refusedAttribute, table.Text(baseSort))
	}
	return AddAmount(c, difference, 1) + c.Format(" SET %n = %v", "group", table.Text(g.Group))
}

// refusedAttribute is there if DynamoDB has refused to add some records to a row.
const refusedAttribute = "refused"

// AddAmount is the part of an update that adds an amount, and raises the count of operations.
func AddAmount(c *table.Expression, a tally.Amount, operations int64) string {
	add := c.Format("ADD %n %v, %n %v, %n %v", "value", Number(a.Value), "members", table.Number(a.Members), "ops", table.Number(operations))
	for _, per := range a.Parts.Values() {
		p := a.Parts[per]
		add += c.Format(", %n %v, %n %v", audit.PartValue+per, Number(p.Value), audit.PartMembers+per, table.Number(p.Members))
	}
	return add
}

// Folded is a row of a group.
type Folded struct {
	Lane      string // "" of the base
	HighWater string // padded sequence number of the last record added
	Amount    tally.Amount
	Torn      bool // DynamoDB refused to add records, or another program has written what is no number
}

// IsBase reports whether the row holds what the group began with.
func (f Folded) IsBase() bool { return f.Lane == "" }

// ReadFolded reads a row of a group.
func ReadFolded(r table.Row) Folded {
	lane, _ := strings.CutPrefix(table.TextOf(r[table.SK]), lanePrefix)
	if lane == baseSort {
		lane = ""
	}
	amount, err := ReadAccumulator(r)
	parts, whole := audit.ReadParts(attributes.ItemFromTable(r))
	if len(parts) > 0 {
		amount.Parts = parts
	}
	torn := r != nil && (err != nil || !whole || r[refusedAttribute] != nil)
	return Folded{Lane: lane, HighWater: table.TextOf(r["hw"]), Amount: amount, Torn: torn}
}

// FoldedGroup is the group that a row names; "" for none.
func FoldedGroup(r table.Row) string { return table.TextOf(r["group"]) }

// LaneKey is the key of the row of a generation's shard.
func LaneKey(b *plan.Binding, generation int64, shard string) table.Key {
	return table.NewKey(LanesOf(b, generation), shard)
}

// LanesOf is the partition key of the rows of all shards of a generation.
func LanesOf(b *plan.Binding, generation int64) string { return generationOf(LaneRows, b, generation) }

// LaneRow is the row of a shard that has none yet.
func LaneRow(b *plan.Binding, generation int64, s lanes.Shard) table.Row {
	r := LaneKey(b, generation, s.Shard).Attributes()
	r["shard"], r["lane"], r["from"] = table.Text(s.Shard), table.Text(s.Lane), table.Text(s.From)
	return r
}

// ReadLane reads the row of a shard; false for one that is not there, or that another program has written.
func ReadLane(r table.Row) (lanes.Shard, bool) {
	s := lanes.Shard{Shard: table.TextOf(r["shard"]), Lane: table.TextOf(r["lane"]), From: table.TextOf(r["from"])}
	return s, s.Lane != "" && s.Shard != ""
}

// Inherit is the update by which a child goes on with the lane of its parent, by the parent's row, if no other child does.
func Inherit(c *table.Expression, child string) (update, condition string) {
	condition = c.Format("attribute_exists(pk) AND attribute_not_exists(%n)", heirAttribute)
	return c.Format("SET %n = %v", heirAttribute, table.Text(child)), condition
}

const heirAttribute = "heir"

// Heir is the shard that goes on with the lane of a shard; "" if none does yet.
func Heir(r table.Row) string { return table.TextOf(r[heirAttribute]) }

// CountExtentPart is some of the positions up to which a count has read.
func CountExtentPart(b *plan.Binding, generation int64, m lanes.CountExtent, part int, shards []string) table.Row {
	r := table.NewKey(CountExtentsOf(b, generation), m.ID+"/"+strconv.Itoa(part)).Attributes()
	read := map[string]change.Value{}
	for _, shard := range shards {
		read[shard] = change.String(m.Read[shard])
	}
	r["until"], r["read"] = table.Number(m.Until.UnixMilli()), attributes.ToTable(change.Map(read))
	return r
}

// CountExtentsOf is the partition key of the rows that say how far the counts of a generation have read.
func CountExtentsOf(b *plan.Binding, generation int64) string {
	return generationOf(CountExtentRows, b, generation)
}

// ReadCountExtent adds what a row says to the count extents of a generation, by the name of the count.
func ReadCountExtent(extents map[string]*lanes.CountExtent, r table.Row) {
	id, _, _ := strings.Cut(table.TextOf(r[table.SK]), "/")
	m := extents[id]
	if m == nil {
		m = &lanes.CountExtent{ID: id, Read: map[string]string{}}
		extents[id] = m
	}
	if until := time.UnixMilli(table.NumberOf(r["until"])); until.After(m.Until) {
		m.Until = until
	}
	for shard, position := range attributes.FromTable(r["read"]).Map() {
		m.Read[shard] = position.Text()
	}
}
