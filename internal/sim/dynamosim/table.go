package dynamosim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// table is one table and its items.
type table struct {
	name, arn, id string
	created       time.Time
	definition    types.TableDescription // what CreateTable was given, as DescribeTable returns it
	partition     keyAttribute
	sort          keyAttribute // name is "" if the table has none
	indexes       []index
	ttlAttribute  string
	expiresFrom   keyValue // no item expires earlier, in seconds since 1970; zero: unknown
	stream        *stream  // nil if it never had one
	protected     bool

	collections map[string]*collection
	deleted     map[string]values.Item // what was deleted last under each key, if Options.Stale is given
	sorted      []*collection          // in the order of scans; inOrder brings it up to date
	added       []*collection          // are not among the sorted yet
	emptied     bool                   // some of the sorted or added have no item left
}

// index is the key of a secondary index.
type index struct {
	name            string
	partition, sort keyAttribute
}

type keyAttribute struct {
	name string
	kind string // S, N or B
}

// collection is the items of one partition key, ordered by sort key.
type collection struct {
	hash uint64
	id   string
	rows []*row
}

// row is one item. What it holds is never changed, only replaced.
type row struct {
	key    key
	item   values.Item
	size   int
	before values.Item // the item before its last change; nil if there was none
}

// key is an item's primary key.
type key struct{ partition, sort keyValue }

type keyValue struct {
	text   string // normalized; bytes for B
	number decimal.Decimal
	isN    bool
}

func (v keyValue) compare(w keyValue) int {
	if v.isN && w.isN {
		return v.number.Cmp(w.number)
	}
	return strings.Compare(v.text, w.text)
}

func makeKeyValue(av types.AttributeValue) keyValue {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return keyValue{text: v.Value}
	case *types.AttributeValueMemberN:
		n, _ := decimal.Parse(v.Value)
		return keyValue{text: v.Value, number: n, isN: true}
	case *types.AttributeValueMemberB:
		return keyValue{text: string(v.Value)}
	}
	return keyValue{}
}

// lookup returns the item's row; nil if there is none.
func (t *table) lookup(k key) *row {
	c := t.collections[k.partition.text]
	if c == nil {
		return nil
	}
	if i, found := c.find(k.sort); found {
		return c.rows[i]
	}
	return nil
}

func (c *collection) find(sort keyValue) (int, bool) {
	return slices.BinarySearchFunc(c.rows, sort, func(r *row, v keyValue) int { return r.key.sort.compare(v) })
}

// store puts, replaces or (item nil) removes an item.
func (s *Sim) store(t *table, k key, item values.Item) {
	c := t.collections[k.partition.text]
	if c == nil {
		if item == nil {
			return
		}
		c = &collection{hash: s.hash(k.partition.text), id: k.partition.text}
		t.collections[c.id] = c
		t.added = append(t.added, c)
	}
	if at, ok := t.expiry(item); ok && at.compare(t.expiresFrom) < 0 {
		t.expiresFrom = at
	}
	i, found := c.find(k.sort)
	switch {
	case item == nil && found:
		if s.options.Stale != nil {
			t.deleted[k.id()] = c.rows[i].item
		}
		c.rows = slices.Delete(c.rows, i, i+1)
	case item == nil:
	case found:
		c.rows[i] = &row{k, item, values.Size(item), c.rows[i].item}
	default:
		c.rows = slices.Insert(c.rows, i, &row{k, item, values.Size(item), nil})
		delete(t.deleted, k.id())
	}
	if len(c.rows) == 0 {
		t.emptied = true
		delete(t.collections, c.id)
	}
}

// expiry is an item's time to live, in seconds since 1970; false if it has none.
func (t *table) expiry(item values.Item) (keyValue, bool) {
	if t.ttlAttribute == "" {
		return keyValue{}, false
	}
	at, ok := item[t.ttlAttribute].(*types.AttributeValueMemberN)
	if !ok {
		return keyValue{}, false
	}
	return makeKeyValue(at), true
}

// stale decides whether a read sees the past.
func (s *Sim) stale(op string, consistent *bool) bool {
	return (consistent == nil || !*consistent) && s.options.Stale != nil && s.options.Stale(op)
}

// past returns the row as it was before its last change; nil if there was no item.
func (r *row) past() *row {
	if r.before == nil {
		return nil
	}
	return &row{key: r.key, item: r.before, size: values.Size(r.before)}
}

// see returns the item's row for a read, as it is or as it was; nil if there is none.
func (t *table) see(k key, stale bool) *row {
	r := t.lookup(k)
	switch {
	case !stale:
		return r
	case r != nil:
		return r.past()
	case t.deleted[k.id()] != nil:
		return &row{key: k, item: t.deleted[k.id()], size: values.Size(t.deleted[k.id()])}
	}
	return nil
}

// inOrder returns the collections by hash, then partition key. Its cost is in proportion to the table if collections came or went
// since the last call, so that a table may be filled without a search for each place.
func (t *table) inOrder() []*collection {
	if t.emptied {
		t.sorted, t.added = slices.DeleteFunc(t.sorted, (*collection).empty), slices.DeleteFunc(t.added, (*collection).empty)
		t.emptied = false
	}
	slices.SortFunc(t.added, (*collection).compare)
	at := len(t.sorted) // up to here, the sorted are not yet where they belong
	t.sorted = append(t.sorted, t.added...)
	for free := len(t.sorted); len(t.added) > 0; free-- {
		last := t.added[len(t.added)-1]
		if at > 0 && t.sorted[at-1].compare(last) > 0 {
			at--
			t.sorted[free-1] = t.sorted[at]
		} else {
			t.sorted[free-1], t.added = last, t.added[:len(t.added)-1]
		}
	}
	return t.sorted
}

func (c *collection) compare(d *collection) int {
	return cmp.Or(cmp.Compare(c.hash, d.hash), strings.Compare(c.id, d.id))
}

func (c *collection) empty() bool { return len(c.rows) == 0 }

// from returns the collections that a scan reads if it begins with this partition key.
func (t *table) from(hash uint64, id string) []*collection {
	order := t.inOrder()
	at, _ := slices.BinarySearchFunc(order, &collection{hash: hash, id: id}, (*collection).compare)
	return order[at:]
}

// keyOf returns the item's key attributes alone.
func (t *table) keyOf(item values.Item) values.Item {
	k := values.Item{t.partition.name: values.CloneValue(item[t.partition.name])}
	if t.sort.name != "" {
		k[t.sort.name] = values.CloneValue(item[t.sort.name])
	}
	return k
}

func (t *table) isKey(name string) bool { return name == t.partition.name || name == t.sort.name }

func (t *table) count() (items, bytes int64) {
	for _, c := range t.inOrder() {
		for _, r := range c.rows {
			items++
			bytes += int64(r.size)
		}
	}
	return items, bytes
}

// table returns a table by its name or ARN.
func (s *Sim) table(name *string) (*table, error) {
	if name == nil || *name == "" {
		return nil, invalid("TableName: must not be null or empty")
	}
	short := *name
	if i := strings.LastIndex(short, ":table/"); i >= 0 {
		short = short[i+len(":table/"):]
	}
	if t := s.tables[short]; t != nil {
		return t, nil
	}
	return nil, noTable(short)
}
