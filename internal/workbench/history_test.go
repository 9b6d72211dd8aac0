package workbench_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/examples"
	"github.com/dynamill/dynamill/internal/oracle"
	"github.com/dynamill/dynamill/internal/workbench"
	"github.com/dynamill/dynamill/rules"
)

const (
	histories = 15 // for each design
	rounds    = 12 // drains in a history
)

// TestAnyHistoryEndsAsComputedFromScratch plays random histories: an
// application that writes, overwrites, spoils and deletes items, derived ones
// too, a process that dies at any of its writes, a stream of several shards,
// and checkpoints that get lost (promises 1, 2 and 4). The seed is in the name
// of the failing test.
func TestAnyHistoryEndsAsComputedFromScratch(t *testing.T) {
	designs := []design{shopDesign(t)}
	for _, name := range examples.Names() {
		designs = append(designs, exampleDesign(t, name))
	}
	for _, d := range designs {
		for seed := range uint64(histories) {
			t.Run(fmt.Sprintf("%s/%d", d.name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newHistory(t, d, seed).play(t) })
			})
		}
	}
}

// design is a rule set, and the items that the application writes under it.
type design struct {
	name string
	set  *rules.Set
	pool []change.Item
}

func exampleDesign(t *testing.T, name string) design {
	ex, err := examples.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	d := design{name, ex.Set, ex.Items}
	for _, step := range ex.Steps {
		for _, w := range step.Writes {
			if w.Verb == examples.Put {
				d.pool = append(d.pool, w.Item)
			}
		}
	}
	return d
}

// shopRules have what the examples do not: sums, items that several sources
// give, items of one unique value, and rules that feed each other.
const shopRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Customer: { key: { pk: "CUSTOMER#${customerId}", sk: "PROFILE" } }
  Order:    { key: { pk: "CUSTOMER#${customerId}", sk: "ORDER#${orderId}" }, unique: orderId }
  Line:     { key: { pk: "ORDER#${orderId}", sk: "LINE#${productId}" } }
  ById:     { key: { pk: "ORDER#${orderId}", sk: "ORDER" } }
  Sale:     { key: { pk: "PRODUCT#${productId}", sk: "SALE#${orderId}" } }
  Product:  { key: { pk: "PRODUCT#${productId}", sk: "PRODUCT" } }
rules:
  order-total:    { sum: price * quantity, of: Line, as: Order.total, by: orderId }
  order-lines:    { count: Line, as: Order.lines, by: orderId, write_shards: 3 }
  by-id:          { mirror: Order, as: ById, attributes: [customerId, status, total] }
  by-id-name:     { copy: name as customerName, from: Customer, to: ById, by: customerId }
  sale-list:      { mirror: Line, as: Sale, attributes: [quantity] }
  sold:           { sum: quantity, of: Sale, as: Product.sold }
  customer-total: { sum: total, of: Order, as: Customer.total, where: status != "void" }
  vip:            { copy: total as bought, from: Customer, to: Order }
`

func shopDesign(t *testing.T) design {
	set, err := rules.Load("shop.yaml", []byte(shopRules))
	if err != nil {
		t.Fatal(err)
	}
	d := design{name: "shop", set: set}
	for _, customer := range []string{"1", "2"} {
		d.pool = append(d.pool, change.Item{"pk": change.String("CUSTOMER#" + customer), "sk": change.String("PROFILE"), "name": change.String("Name " + customer)})
		for _, order := range []string{"a", "b"} {
			d.pool = append(d.pool, change.Item{"pk": change.String("CUSTOMER#" + customer), "sk": change.String("ORDER#" + order), "status": change.String("open")})
		}
	}
	for _, order := range []string{"a", "b"} {
		for product, price := range map[string]string{"x": "0.1", "y": "12.75"} {
			d.pool = append(d.pool, change.Item{
				"pk": change.String("ORDER#" + order), "sk": change.String("LINE#" + product),
				"price": change.Number(price), "quantity": change.Number("3"),
			})
		}
	}
	for _, product := range []string{"x", "y"} {
		d.pool = append(d.pool, change.Item{"pk": change.String("PRODUCT#" + product), "sk": change.String("PRODUCT")})
	}
	slices.SortFunc(d.pool, func(a, b change.Item) int { return strings.Compare(shown(a), shown(b)) })
	return d
}

type history struct {
	*rand.Rand
	design
	bench  *workbench.Bench
	values map[string][]change.Value // that the application's attributes have, by name
	said   []string
}

func newHistory(t *testing.T, d design, seed uint64) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 1)), design: d, values: map[string][]change.Value{}}
	bench, err := workbench.New(t.Context(), d.set, workbench.Options{Seed: seed, Shards: 1 + h.IntN(3), Scatter: h.IntN(2) == 0})
	if err != nil {
		t.Fatal(err)
	}
	h.bench = bench
	for _, item := range h.pool {
		for attribute, v := range item {
			h.values[attribute] = append(h.values[attribute], v)
		}
	}
	for attribute := range h.values {
		h.values[attribute] = append(h.values[attribute], change.Value{}, change.Null(), change.List([]change.Value{change.Number("1")}))
	}
	return h
}

func (h *history) play(t *testing.T) {
	for range rounds {
		for range 1 + h.IntN(4) {
			if err := h.write(t); err != nil {
				t.Fatalf("%v, after:\n%s", err, strings.Join(h.said, "\n"))
			}
		}
		if h.IntN(2) == 0 {
			n := h.IntN(6)
			h.say("dies after %d writes", n)
			h.bench.CrashAfter(n)
		}
		if h.IntN(6) == 0 {
			h.say("checkpoints are lost")
			if err := h.bench.Forget(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		err := h.bench.Drain(t.Context())
		for range 3 {
			if !errors.Is(err, workbench.ErrCrashed) {
				break
			}
			err = h.bench.Drain(t.Context())
		}
		if err != nil {
			t.Fatalf("%v, after:\n%s", err, strings.Join(h.said, "\n"))
		}
		h.say("drained")
		if drift := oracle.Drift(h.set, h.items(t)); len(drift) > 0 {
			t.Fatalf("%v, after:\n%s", drift, strings.Join(h.said, "\n"))
		}
	}
}

// write does one thing that an application might do.
func (h *history) write(t *testing.T) error {
	item := maps.Clone(h.pool[h.IntN(len(h.pool))])
	switch h.IntN(10) {
	case 0, 1, 2:
		h.say("put %v", item)
		return h.bench.Put(t.Context(), item)
	case 3, 4:
		h.change(item, h.names(item, true))
		h.say("put, changed, %v", item)
		return h.bench.Put(t.Context(), item)
	case 5, 6:
		h.say("delete %v", h.key(item))
		return h.bench.Delete(t.Context(), item)
	}
	items := h.items(t)
	if len(items) == 0 {
		return nil
	}
	item = maps.Clone(items[h.IntN(len(items))])
	switch h.IntN(3) {
	case 0:
		h.say("delete by hand %v", h.key(item))
		return h.bench.Delete(t.Context(), item)
	case 1:
		for _, name := range h.names(item, false) {
			delete(item, name)
		}
		h.say("put whole, without what is derived, %v", item)
		return h.bench.Put(t.Context(), item)
	}
	h.change(item, h.names(item, false))
	h.say("spoil %v", item)
	return h.bench.Put(t.Context(), item)
}

// names returns the names of the attributes that are the application's own, or those that are not.
func (h *history) names(item change.Item, own bool) []string {
	m, ok := h.set.Identify(h.key(item), item)
	if !ok {
		return nil
	}
	derived := map[string]bool{}
	for _, rule := range slices.Concat(m.Entity.Displays, m.Entity.Mirrors, m.Entity.Children) {
		for _, name := range rule.Writes {
			derived[name] = name != h.set.Table.TypeAttribute
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		fixed := name == h.set.Table.PartitionKey || name == h.set.Table.SortKey || name == h.set.Table.TypeAttribute
		stamp := strings.HasPrefix(name, "_dm_")
		if !fixed && (derived[name] || stamp) != own {
			names = append(names, name)
		}
	}
	return names
}

// change gives one of the attributes another value, or none.
func (h *history) change(item change.Item, names []string) {
	if len(names) == 0 {
		return
	}
	name := names[h.IntN(len(names))]
	delete(item, name)
	if others := h.values[name]; len(others) > 0 {
		if v := others[h.IntN(len(others))]; v.Kind() != change.KindAbsent {
			item[name] = v
		}
	}
}

func (h *history) key(item change.Item) change.Key {
	return change.Key{Partition: item[h.set.Table.PartitionKey].Text(), Sort: item[h.set.Table.SortKey].Text()}
}

func (h *history) items(t *testing.T) []change.Item {
	items, err := h.bench.Items(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func (h *history) say(format string, args ...any) {
	for i, arg := range args {
		if item, ok := arg.(change.Item); ok {
			args[i] = shown(item)
		}
	}
	h.said = append(h.said, fmt.Sprintf(format, args...))
}

// shown is an item as a person reads it.
func shown(item change.Item) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		v := item[name]
		text := v.Text()
		if text == "" {
			text = v.Kind().String()
		}
		parts = append(parts, name+"="+text)
	}
	return strings.Join(parts, " ")
}
