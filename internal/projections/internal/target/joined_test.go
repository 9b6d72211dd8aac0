package target_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// TestConflictingWritesOfOneItemStayApart has one rule write the attribute by which the other knows the item.
func TestConflictingWritesOfOneItemStayApart(t *testing.T) {
	w := newWorld(t, 1, dynamosim.Options{})
	a := &plan.Binding{ID: "a", Stamp: "_dm_a", Rule: &rules.Rule{Name: "a"}}
	before, ended := w.sim.Usage(), make([]target.Outcome, 2)
	err := errors.Join(w.writer.Every(t.Context(), 2, func(ctx context.Context, to target.Sender, i int) (err error) {
		one := w.set(0, 0)
		if i == 1 {
			one = target.On(a, "writing", change.Key{Partition: "0"})
			one.Put("n", change.Number("7"))
			one.Condition = one.Format("attribute_not_exists(%n)", "_dm_a")
		}
		ended[i], _, err = to.Write(ctx, one)
		return err
	})...)
	if used := w.sim.Usage().Sub(before).Requests; err != nil || used["UpdateItem"] != 2 || ended[1] != target.Written {
		t.Errorf("outcomes %v, requests %v, %v", ended, used, err)
	}
}

// TestWritesOfSeveralRulesOnOneItemAreOne has rules a, b and c write an attribute each on every item, alone and among others.
func TestWritesOfSeveralRulesOnOneItemAreOne(t *testing.T) {
	names := []string{"a", "b", "c"}
	var bound []*plan.Binding
	for _, name := range names {
		bound = append(bound, &plan.Binding{ID: name, Stamp: "_dm_" + name, Rule: &rules.Rule{Name: name}})
	}
	huge := make([]byte, 400<<10)
	for name, c := range map[string]struct {
		items    int
		lost     string // the rule whose condition does not hold
		refused  string // the rule whose value is too large
		requests string
	}{
		"one item":                      {1, "", "", "map[UpdateItem:1]"},
		"one item, a rule has lost":     {1, "b", "", "map[UpdateItem:4]"},
		"one item, a rule is refused":   {1, "", "c", "map[UpdateItem:4]"},
		"eight items":                   {8, "", "", "map[BatchExecuteStatement:1]"},
		"eight items, a rule has lost":  {8, "a", "", "map[BatchExecuteStatement:1 UpdateItem:24]"},
		"eight items, one is too large": {8, "", "b", "map[BatchExecuteStatement:1 UpdateItem:32]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.items, dynamosim.Options{})
			var mu sync.Mutex
			var parked []string
			w.writer.ParkRefused = func(_ context.Context, b *plan.Binding, _ change.Key, _ error) error {
				mu.Lock()
				defer mu.Unlock()
				parked = append(parked, b.ID)
				return nil
			}
			before := w.sim.Usage()
			ended := make([]target.Outcome, c.items*len(names))
			err := errors.Join(w.writer.Every(t.Context(), len(ended), func(ctx context.Context, to target.Sender, i int) (err error) {
				item, b := i/len(names), bound[i%len(names)]
				one := target.On(b, "writing", change.Key{Partition: fmt.Sprint(item)})
				one.Put("of-"+b.ID, change.String(b.ID))
				if b.ID == c.refused {
					one.Put("of-"+b.ID, change.String(string(huge)))
				}
				one.TakeOff("without-" + b.ID)
				n := item
				if b.ID == c.lost {
					n = -1
				}
				one.Condition = one.Format("%n = %v OR %n = %v", "n", table.Number(int64(n)), "other", table.Text(b.ID))
				ended[i], _, err = to.Write(ctx, one)
				return err
			})...)
			if err != nil {
				t.Fatal(err)
			}
			if used := fmt.Sprint(w.sim.Usage().Sub(before).Requests); used != c.requests {
				t.Errorf("requests: %s, want %s", used, c.requests)
			}
			for i, got := range ended {
				want, id := target.Written, names[i%len(names)]
				switch id {
				case c.lost:
					want = target.RaceLost
				case c.refused:
					want = target.Refused
				}
				if there := w.value(t, i/len(names), "of-"+id) != nil; got != want || there != (want == target.Written) {
					t.Errorf("item %d, rule %s: outcome %d, want %d; written: %t", i/len(names), id, got, want, there)
				}
			}
			if c.refused == "" && len(parked) > 0 || c.refused != "" && len(parked) != c.items {
				t.Errorf("parked: %v", parked)
			}
		})
	}
}
