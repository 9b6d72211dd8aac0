package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Format numbers what rows and stamps look like. It rises with every change after which an engine would misread those of before.
const Format = 6

const (
	registryPartition = "registry" // sort: table, seeding, rule/<id>, file/<name>
	rulePrefix        = "rule/"
	tableSort         = "table"
)

// Attributes of Table.
const (
	LeasesAttribute         = "leases"         // Leases
	BesideFunctionAttribute = "besideFunction" // BesideFunction
)

// A rule's state in the registry. A rule whose meaning changes is another rule. Rows stay for good, and no id is used again.
const (
	Seeding  = "seeding" // its aggregates are not shown yet
	Live     = "live"
	Retiring = "retiring" // not in force any more; what it wrote stands until all that takes its place is shown
	Retired  = "retired"  // what it wrote is taken back wherever it is found
)

// TableKey is the key of the row that says which table the registry belongs to.
func TableKey() table.Key { return table.Key{Partition: registryPartition, Sort: tableSort} }

// RuleKey is the key of a registered rule.
func RuleKey(id string) table.Key {
	return table.Key{Partition: registryPartition, Sort: rulePrefix + id}
}

// FileKey is the key of a rule file that the registry keeps.
func FileKey(name string) table.Key {
	return table.Key{Partition: registryPartition, Sort: "file/" + name}
}

// RulesCondition is the condition of a query that finds the registered rules.
func RulesCondition(c *table.Expression) string {
	return c.Format("%n = %v AND begins_with(%n, %v)", table.PK, table.Text(registryPartition), table.SK, table.Text(rulePrefix))
}

// RuleID is the id of a registered rule, by its row.
func RuleID(r table.Row) string { return strings.TrimPrefix(table.TextOf(r[table.SK]), rulePrefix) }

// Table is the registry's row of the user's table.
type Table struct {
	Name, ID    string // the user's table, as it was when the registry was founded
	Incarnation string // of the state table
	Epoch       int    // of the rules
	// Live is raised when rules go live or retire, and when a count notes how far it has read: every engine then reads the registry again.
	Live    int64
	Created time.Time
	Leases  string // the lease table of the processes that follow the stream; "" if none ever did
	// BesideFunction says that these processes apply hot rules only. A Lambda function applies the others; its checkpoints are not known.
	BesideFunction bool
}

// ReadTable reads the registry's row of the table; nil for a row that is not there.
func ReadTable(r table.Row) *Table {
	if r == nil {
		return nil
	}
	t := &Table{
		Name: table.TextOf(r["table"]), ID: table.TextOf(r["tableId"]), Incarnation: table.TextOf(r["incarnation"]),
		Epoch: int(table.NumberOf(r["epoch"])), Live: table.NumberOf(r["live"]), Leases: table.TextOf(r[LeasesAttribute]),
	}
	beside := attributes.FromTable(r[BesideFunctionAttribute])
	t.BesideFunction = beside.Kind() == change.KindBool && beside.Bool()
	t.Created, _ = time.Parse(time.RFC3339, table.TextOf(r["created"]))
	return t
}

// Row is the row of a registry that is founded: no rule was ever live, and no process follows the stream.
func (t Table) Row() table.Row {
	r := TableKey().Attributes()
	r["table"], r["tableId"] = table.Text(t.Name), table.Text(t.ID)
	r["incarnation"], r["epoch"] = table.Text(t.Incarnation), table.Number(int64(t.Epoch))
	r["created"] = table.Text(t.Created.UTC().Format(time.RFC3339))
	r["format"] = table.Number(Format)
	return r
}

// Is reports whether the registry is of this incarnation and has these rules in force.
func (t *Table) Is(incarnation string, epoch int) bool {
	return t != nil && t.Incarnation == incarnation && t.Epoch == epoch
}

// Rule is a registered rule.
type Rule struct {
	Name, Fingerprint string
	State             string
	Epoch             int    // of the rules, in which it was registered
	File              string // the name of the rule file that registered it; "" if that is not kept
	Locator           string // by which it finds its targets; "" if by their key, or by the entity's own locator
	WriteShardsMax    int
	Cleaned           bool // of a former rule: what it wrote is taken back

	// Of a hot rule: its newest generation, named by the rules epoch in which that began; the newest one of which a count
	// has looked at all shards; and the one that is displayed. 0: none. Stream is the one whose shards that count has looked at: its ARN.
	Generation, Begun, Counted int
	Stream                     string
	Located                    bool // of such a rule that finds its targets by a locator: those of items that were there before are made
}

// InForce reports whether a registered rule is in force.
func (r Rule) InForce() bool { return r.State == Seeding || r.State == Live }

// The attributes of a hot rule.
const (
	GenerationAttribute = "generation"
	BegunAttribute      = "begun"
	CountedAttribute    = "counted"
	StreamAttribute     = "stream"
	LocatedAttribute    = "located"
)

// ReadRule reads a registered rule.
func ReadRule(r table.Row) Rule {
	return Rule{
		Name: table.TextOf(r["name"]), Fingerprint: table.TextOf(r["fingerprint"]), State: table.TextOf(r["state"]),
		Epoch: int(table.NumberOf(r["epoch"])), File: table.TextOf(r["file"]), Locator: table.TextOf(r["locator"]),
		WriteShardsMax: int(table.NumberOf(r["writeShardsMax"])), Cleaned: r["cleaned"] != nil,
		Generation: int(table.NumberOf(r[GenerationAttribute])), Begun: int(table.NumberOf(r[BegunAttribute])),
		Counted: int(table.NumberOf(r[CountedAttribute])), Stream: table.TextOf(r[StreamAttribute]),
		Located: r[LocatedAttribute] != nil,
	}
}

// Row is the row of a rule that is new.
func (r Rule) Row(id string) table.Row {
	row := RuleKey(id).Attributes()
	row["name"], row["fingerprint"], row["state"] = table.Text(r.Name), table.Text(r.Fingerprint), table.Text(r.State)
	row["epoch"], row["file"] = table.Number(int64(r.Epoch)), table.Text(r.File)
	if r.WriteShardsMax > 0 {
		row["writeShardsMax"] = table.Number(int64(r.WriteShardsMax))
	}
	if r.Generation > 0 {
		row[GenerationAttribute] = table.Number(int64(r.Generation))
	}
	if r.Located {
		row[LocatedAttribute] = table.Number(1)
	}
	if r.Locator != "" {
		row["locator"] = table.Text(r.Locator)
	}
	return row
}

// FileRow keeps the text of a rule file.
func FileRow(name, text string) table.Row {
	r := FileKey(name).Attributes()
	r["text"] = table.Text(text)
	return r
}

// FileText is the text of a rule file that is kept.
func FileText(r table.Row) string { return table.TextOf(r["text"]) }

// CheckRegistry refuses a registry of another format, or a torn one: nothing else tells which rules were in force.
func CheckRegistry(stateTable string, own table.Row, known map[string]table.Row) error {
	it := attributes.ItemFromTable(own)
	_, live := plan.ReadCount(it["live"])
	switch {
	case !isWhole(it["format"], Format, Format):
		return otherFormat(stateTable, it)
	case !isWhole(it["epoch"], 0, stamp.EpochMax):
		return tornRegistry(stateTable, tableSort, "epoch", it)
	case it["incarnation"].Kind() != change.KindString || it["incarnation"].Text() == "":
		return tornRegistry(stateTable, tableSort, "incarnation", it)
	case !live:
		return tornRegistry(stateTable, tableSort, "live", it)
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		it, row := attributes.ItemFromTable(known[id]), rulePrefix+id
		switch {
		case !slices.Contains([]string{Seeding, Live, Retiring, Retired}, it["state"].Text()):
			return tornRegistry(stateTable, row, "state", it)
		case !isWhole(it["epoch"], 0, stamp.EpochMax):
			return tornRegistry(stateTable, row, "epoch", it)
		case it["writeShardsMax"].Kind() != change.KindAbsent && !isWhole(it["writeShardsMax"], 0, rules.SuffixesMax):
			return tornRegistry(stateTable, row, "writeShardsMax", it)
		}
		for _, name := range []string{GenerationAttribute, BegunAttribute, CountedAttribute} {
			if it[name].Kind() != change.KindAbsent && !isWhole(it[name], 1, stamp.EpochMax) {
				return tornRegistry(stateTable, row, name, it)
			}
		}
	}
	return nil
}

func otherFormat(stateTable string, own change.Item) error {
	return &table.SetupError{
		Problem: fmt.Sprintf("the format of state table %s (of table %s) is %s, and this version of dynamill reads format %d only: another "+
			"version made the state table", stateTable, textOrMissing(own["table"]), textOrMissing(own["format"]), Format),
		Remedy: "continue with that version; or start over (docs/state-table.md): delete the state table and its lease table, and the next " +
			"`dynamill run` derives everything anew",
	}
}

func tornRegistry(stateTable, row, attribute string, it change.Item) error {
	return &table.SetupError{
		Problem: fmt.Sprintf("row registry %s of state table %s cannot be read: its %s is %s", row, stateTable, attribute,
			textOrMissing(it[attribute])),
		Remedy: "restore the row from a backup, or start over (docs/state-table.md)",
	}
}

func textOrMissing(v change.Value) string { return cmp.Or(audit.Text(v), "missing") }

// isWhole reports whether a value is a whole number between two others.
func isWhole(v change.Value, low, high int64) bool {
	n, ok := plan.ReadCount(v)
	return ok && v.Kind() == change.KindNumber && n >= low && n <= high
}
