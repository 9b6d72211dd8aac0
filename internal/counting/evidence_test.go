package counting

import (
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/tally"
)

// TestAGroupKeepsFewOfTheRecordsThatAreAdded has many records of two groups. Those of the one are added already but for the last, those of
// the other are not.
func TestAGroupKeepsFewOfTheRecordsThatAreAdded(t *testing.T) {
	const records = 3*entriesKept + 1
	e, err := newEvidence(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	one := tally.Amount{Value: decimal.New(1), Members: 1}
	position := func(i int) string { return lanes.Pad(fmt.Sprint(1000 + i)) }
	for i := range records {
		key := change.Key{Partition: fmt.Sprint(i)}
		if err := e.addRecord(key, nil, "shard", position(i), map[string]tally.Amount{"added": one, "open": one}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.seal(); err != nil {
		t.Fatal(err)
	}
	opened := map[string]lanes.Shard{"shard": {Lane: "lane"}}
	rows := map[string]lanes.Group{"added": {HighWater: map[string]string{"lane": position(records - 2)}}}
	most, left := map[string]int{}, map[string]int{}
	err = e.each(func(g *group) error {
		for _, e := range g.entries {
			if !e.isDone(opened, rows[g.name]) {
				left[g.name]++
			}
		}
		return nil
	}, func(g *group) error {
		most[g.name] = max(most[g.name], len(g.entries))
		kept := g.entries[:0]
		for _, e := range g.entries {
			if !e.isDone(opened, rows[g.name]) {
				kept = append(kept, e)
			}
		}
		g.entries = kept
		return nil
	})
	if err != nil || left["added"] != 1 || left["open"] != records {
		t.Errorf("left are %v, %v", left, err)
	}
	if most["added"] != entriesKept || most["open"] != 3*entriesKept {
		t.Errorf("in memory are up to %v", most)
	}
}
