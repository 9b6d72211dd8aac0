package mirrors

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

func TestAnExpiredItemStaysAwayUntilItIsAskedForAnew(t *testing.T) {
	k, target, elsewhere := effects.Key{ID: "list"}, change.Key{Partition: "LIST#1", Sort: "ITEM#1"}, change.Key{Partition: "x"}
	asked := mirrorItem{target: target, digest: "dddddddd"}
	inForce, gone, other := asked, asked, asked
	gone.expired, other.digest = true, "eeeeeeee"
	for name, tt := range map[string]struct {
		held, asked mirrorItem
		know        func(*plan.Move)
		want        string
	}{
		"asked for again":                    {gone, asked, func(*plan.Move) {}, "~ddddLIST#1/ITEM#1"},
		"with other content":                 {gone, other, func(*plan.Move) {}, "=eeeeLIST#1/ITEM#1"},
		"in force":                           {inForce, asked, func(*plan.Move) {}, "=ddddLIST#1/ITEM#1"},
		"to be written again":                {gone, asked, func(mv *plan.Move) { mv.RestoreAt(k, target) }, "=ddddLIST#1/ITEM#1"},
		"another item to be written":         {gone, asked, func(mv *plan.Move) { mv.RestoreAt(k, elsewhere) }, "~ddddLIST#1/ITEM#1"},
		"expired now":                        {inForce, gone, func(mv *plan.Move) { mv.See(target, nil) }, "~ddddLIST#1/ITEM#1"},
		"expired now, and an item put there": {inForce, gone, func(mv *plan.Move) { mv.See(target, change.Item{}) }, "=ddddLIST#1/ITEM#1"},
		"an item put there":                  {gone, asked, func(mv *plan.Move) { mv.See(target, change.Item{}) }, "~ddddLIST#1/ITEM#1"},
	} {
		t.Run(name, func(t *testing.T) {
			mv := &plan.Move{New: effects.ByKey{k: tt.asked.effect()}}
			mv.Expect(&plan.Entry{Effects: effects.ByKey{k: tt.held.effect()}}, &plan.Bindings{})
			tt.know(mv)
			if got := mv.New[k].String(); got != tt.want {
				t.Errorf("%s comes into force, want %s", got, tt.want)
			}
		})
	}
}
