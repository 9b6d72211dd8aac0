package dynamosim

import (
	"cmp"
	"slices"
	"sort"
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
	stream        *stream // nil if it never had one
	protected     bool

	collections map[string]*collection
	deleted     map[string]values.Item // what was deleted last under each key, if Options.Stale is given
	order       []*collection          // by hash, then partition key: the order of scans
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
		t.order = slices.Insert(t.order, t.position(c.hash, c.id), c)
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
		at := t.position(c.hash, c.id)
		t.order = slices.Delete(t.order, at, at+1)
		delete(t.collections, c.id)
	}
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

// position returns where in the order a collection is, or would be.
func (t *table) position(hash uint64, id string) int {
	return sort.Search(len(t.order), func(i int) bool {
		c := t.order[i]
		return cmp.Or(cmp.Compare(c.hash, hash), strings.Compare(c.id, id)) >= 0
	})
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
	for _, c := range t.order {
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
