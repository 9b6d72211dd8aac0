package oracle

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// Exception is something that may be in a state table although the items do
// not ask for it. Audit lets it pass where the caller says so.
type Exception string

// What docs/state-table.md says to stay until an operator retries it or something
// else comes by. A parking beside the ledger is not to be told from the items;
// where what an item causes was refused or could not be taken back, the item's
// ledger entry tells what is in force.
const (
	RejectedWrites Exception = "write.rejected"
	ContestedHeals Exception = "heal.contested"

	// DanglingReferences: a worker that wakes up late, or a scan that seeds an item
	// just being deleted, puts a reference again that is gone already. It does no
	// harm, and the parent's next fan-out prunes it.
	DanglingReferences Exception = "dangling reference"

	// ExpiringPositions: a child came to a parent, or the parent came back without
	// anything to copy, after the position was given its ttl.
	ExpiringPositions Exception = "expiring position"

	// SeededDueMarks: an item lost a contribution, or was healed, while a rule was seeded, or a
	// worker that seeds what another has seeded already crashed between the entry, which it
	// changed in nothing but the mark, and the roll-up. Records that come by before the rule
	// is live carry the mark on. Of a tombstone the mark expires; the next record,
	// rederivation or sweep of an item clears it.
	SeededDueMarks Exception = "due mark"
)

// Audit says where the state table differs from what the items of the table
// ask for. items and state must be the whole of both tables, at a moment when
// every record is applied, every rule seeded and nothing in flight, and nothing
// that was parked has been discarded. set must know the table's key types
// (CheckKeys). It judges by docs/state-table.md, in the order of state keys.
//
// Not compared are sums that no DynamoDB number holds, or that one holds only if
// their amounts come in the right order, and what nothing in the
// two tables shows: texts for people, random names, and counts of changes.
func Audit(set *rules.Set, items, state []change.Item, now time.Time, except ...Exception) []Difference {
	a := &audit{
		set: set, now: now, except: map[Exception]bool{}, rows: map[change.Key]change.Item{}, names: map[*rules.Rule]string{},
		loaded:   map[string]*rules.Set{},
		locators: map[string]string{}, ids: map[string]*rules.Rule{}, effects: map[change.Key]map[string]string{}, parkings: map[string]parking{},
		unsure: map[string]bool{},
	}
	for _, e := range except {
		a.except[e] = true
	}
	for _, r := range state {
		a.rows[change.Key{Partition: r["pk"].Text(), Sort: r["sk"].Text()}] = r
	}
	a.keys = sortedKeys(a.rows)
	a.items = newTable(set, items)
	a.registry()
	a.files()
	a.former()
	a.forms()
	a.work()
	a.entries()
	a.sums()
	a.folds()
	a.members()
	a.sets()
	a.copies()
	a.parked()
	slices.SortFunc(a.found, compareDifferences)
	return a.found
}

type audit struct {
	set    *rules.Set
	now    time.Time
	except map[Exception]bool
	items  *table
	rows   map[change.Key]change.Item // the state table, by pk and sk
	keys   []change.Key               // of rows, sorted
	epoch  int64                      // the registry's rules epoch
	names  map[*rules.Rule]string     // rule ids
	loaded map[string]*rules.Set      // kept rule files, by their text; nil if the file cannot be used
	ids    map[string]*rules.Rule

	locators map[string]string // by entity: what names its locators

	effects  map[change.Key]map[string]string // what each item causes, by rule id or "@" and entity
	parkings map[string]parking               // what must be parked, by id
	unsure   map[string]bool                  // ids of items of a tree that may be parked or not: one on their way to the root is full

	found []Difference
}

// differs notes a difference in one attribute of a row, or, without one, in the whole of it.
func (a *audit) differs(rule string, key change.Key, attribute string, want, got change.Value) {
	a.found = append(a.found, Difference{Rule: a.ruleName(rule), State: true, Key: key, Attribute: attribute, Want: want, Got: got})
}

// ruleName is the name in the rule file of the rule with this id; "" if there is none.
func (a *audit) ruleName(id string) string {
	if rule := a.ids[id]; rule != nil {
		return rule.Name
	}
	return ""
}

// under ranges over the rows whose partition key begins with prefix.
func (a *audit) under(prefix string) []change.Key {
	return slices.DeleteFunc(slices.Clone(a.keys), func(k change.Key) bool { return !strings.HasPrefix(k.Partition, prefix) })
}

// wanted is one row that must be there.
type wanted struct {
	rule string // its id
	row  change.Item
}

// compare holds the rows under a prefix to those that must be there, attribute
// by attribute. A row that nothing wants must be one that may stay.
func (a *audit) compare(prefix string, want map[change.Key]wanted, mayStay func(id string, row change.Item) bool) {
	for key, w := range want {
		row, ok := a.rows[key]
		if !ok {
			a.differs(w.rule, key, "", change.Map(w.row), change.Value{})
			continue
		}
		for name, v := range w.row {
			if !v.Equal(row[name]) {
				a.differs(w.rule, key, name, v, row[name])
			}
		}
	}
	for _, key := range a.under(prefix) {
		id := idIn(key.Partition)
		if _, ok := want[key]; !ok && !mayStay(id, a.rows[key]) {
			a.differs(id, key, "", change.Value{}, change.Map(a.rows[key]))
		}
	}
}

// idIn is the rule id, or entity, in a state table's partition key.
func idIn(partition string) string {
	_, rest, _ := strings.Cut(partition, "/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// The longest keys that DynamoDB allows, in bytes.
const (
	partitionMax = 2048
	sortMax      = 1024
)

// stateKey is the key of a row. What is too long is cut and ends in its hash.
func stateKey(partition, sort string) change.Key {
	return change.Key{Partition: cut(partition, partitionMax), Sort: cut(sort, sortMax)}
}

func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	end := "~" + hex.EncodeToString(hash[:])
	head := text[:bytes-len(end)]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return head + end
}

// inner writes a name as one part of a longer key.
func inner(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "%", "%25"), "/", "%2F")
}
