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
	histories = 40 // for each example
	rounds    = 12 // drains in a history
)

// TestAnyHistoryEndsAsComputedFromScratch plays random histories over the
// examples' items: an application that writes, overwrites, spoils and deletes
// items, derived ones too, and a process that dies at any of its writes
// (promises 1, 2 and 4). The seed is the name of the failing test.
func TestAnyHistoryEndsAsComputedFromScratch(t *testing.T) {
	for _, name := range examples.Names() {
		for seed := range uint64(histories) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newHistory(t, name, seed).play(t) })
			})
		}
	}
}

type history struct {
	*rand.Rand
	set    *rules.Set
	bench  *workbench.Bench
	pool   []change.Item             // what the application writes
	values map[string][]change.Value // that its attributes have, by name
	said   []string
}

func newHistory(t *testing.T, name string, seed uint64) *history {
	ex, err := examples.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	bench, err := workbench.New(t.Context(), ex.Set)
	if err != nil {
		t.Fatal(err)
	}
	h := &history{Rand: rand.New(rand.NewPCG(seed, 1)), set: ex.Set, bench: bench, pool: ex.Items, values: map[string][]change.Value{}}
	for _, step := range ex.Steps {
		for _, w := range step.Writes {
			if w.Verb == examples.Put {
				h.pool = append(h.pool, w.Item)
			}
		}
	}
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
	h.said = append(h.said, fmt.Sprintf(format, args...))
}
