package projections

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// loseState deletes the state table, and has a process with a rule file begin from nothing.
func (w *world) loseState(ruleFile string) *Engine {
	w.t.Helper()
	if _, err := w.sim.DeleteTable(w.ctx, &dynamodb.DeleteTableInput{TableName: new("app-dynamill")}); err != nil {
		w.t.Fatal(err)
	}
	return w.engineWith(ruleFile)
}

// registryRow is the sort key of what a request writes first, or alone.
func registryRow(in any) string {
	switch in := in.(type) {
	case *dynamodb.TransactWriteItemsInput:
		if first := in.TransactItems[0].Update; first != nil {
			return table.TextOf(first.Key[table.SK])
		}
	case *dynamodb.PutItemInput:
		return table.TextOf(in.Item[table.SK])
	}
	return ""
}

// whenWriting has something happen before a client writes a row of the registry for the first time.
func (w *world) whenWriting(sort string, happens func()) *faulty {
	f := &faulty{Client: w.sim, around: passAll}
	f.before = func(_ string, in any) {
		if now := happens; now != nil && registryRow(in) == sort {
			happens = nil
			now()
		}
	}
	return f
}

// states are the states of all registered rules, by id.
func (w *world) states() map[string]string {
	w.t.Helper()
	states := map[string]string{}
	for _, row := range w.scan("app-dynamill") {
		if id, ok := strings.CutPrefix(row["sk"].Text(), "rule/"); ok && row["pk"].Text() == "registry" {
			states[id] = row.Lookup("state").Text()
		}
	}
	return states
}

// TestNothingGoesLiveInAStateTableThatCameAnew has the state table be lost right before a seeder brings
// its rules to life.
func TestNothingGoesLiveInAStateTableThatCameAnew(t *testing.T) {
	w := newWorld(t, listRules)
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("GROUP#g"), "role": s("x")})
	w.engine(nil) // registers
	e := w.engine(w.whenWriting("table", func() { w.loseState(listRules) }))
	if err := e.Seed(w.ctx, nil); !errors.Is(err, registry.ErrEpochMoved) {
		t.Errorf("seeding in a state table that is another one: %v", err)
	}
	for id, state := range w.states() {
		if state != "seeding" {
			t.Errorf("rule %s is %s, and nothing was derived", id, state)
		}
	}
}

// TestNoRuleRetiresInAStateTableThatCameAnew has the state table be lost right before a changed rule is registered.
func TestNoRuleRetiresInAStateTableThatCameAnew(t *testing.T) {
	w := newWorld(t, listRules)
	w.seeded()
	fewer := withRule(t, listRules, "n", "")
	f := w.whenWriting("table", func() {
		w.loseState(withRule(t, fewer, "list", `others: { mirror: Membership, as: Member, attributes: [role, weight] }`))
	})
	if _, err := w.tryChanging(fewer, f); err != nil {
		t.Fatal(err)
	}
	for id, state := range w.states() {
		if state == "" || id == "n" {
			t.Errorf("rule %s is %q", id, state)
		}
	}
	w.engine(nil)
}

// TestNoPlaceOfALostStateTableIsGoneOnFrom has the state table be lost right before a seeder saves its first place.
func TestNoPlaceOfALostStateTableIsGoneOnFrom(t *testing.T) {
	const members = seedPageMax + 100
	file := withRule(t, listRules, "n", `n: { count: Membership, as: Group.n }`)
	w := newWorld(t, file)
	w.put(change.Item{"pk": s("GROUP#g"), "sk": s("METADATA")})
	for i := range members {
		w.put(change.Item{"pk": s(fmt.Sprintf("USER#u%d", i)), "sk": s("GROUP#g"), "role": s("x")})
	}
	from := len(w.records())
	var now *Engine
	e := w.engine(w.whenWriting("seeding", func() { now = w.loseState(file) }))
	if err := e.Seed(w.ctx, nil); !errors.Is(err, registry.ErrEpochMoved) {
		t.Errorf("seeding in a state table that is another one: %v", err)
	}
	if err := now.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(now, from)
	w.expect(change.Key{Partition: "GROUP#g", Sort: "METADATA"}, "n", change.Number(strconv.Itoa(members)))
	w.expectNoDrift()
}

// TestWhatAWorkerOfALostStateTableWritesLateIsOutgrown has a worker go on that knows a higher rules epoch of a
// state table that was lost, and looks at the new one only after it has applied its records.
func TestWhatAWorkerOfALostStateTableWritesLateIsOutgrown(t *testing.T) {
	for name, seeds := range map[string]bool{"before the rules are seeded": false, "after that": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			w.social()
			from := w.drain(w.seeded(), 0)
			fewer := withRule(t, socialRules, "comment-score", "")
			older := w.changing(fewer, nil)
			w.replay(older)
			from = w.drain(older, from)
			e := w.loseState(fewer)
			if seeds {
				w.replay(e)
				from = w.drain(e, from)
			}
			w.put(change.Item{"pk": s("USER#new"), "sk": s("GROUP#g0"), "role": s("admin")})
			w.update(change.Key{Partition: "USER#u1", Sort: "PROFILE"}, change.Item{"name": s("Changed")})
			w.late(older, w.records()[from:])
			_, failure := e.Process(w.ctx, w.records()[from:])
			if failure = errors.Join(failure, e.Seed(w.ctx, nil)); !errors.Is(failure, registry.ErrEpochMoved) {
				t.Fatalf("who finds an entry of a higher epoch: %v", failure)
			}
			e = w.seeded() // started again
			from = w.drain(e, from)
			w.update(change.Key{Partition: "USER#new", Sort: "GROUP#g0"}, change.Item{"role": s("banned")})
			w.update(change.Key{Partition: "USER#u1", Sort: "PROFILE"}, change.Item{"name": s("Changed again")})
			w.drain(e, from)
			w.expectTrue()
		})
	}
}

// TestParentsThatAWorkerOfALostStateTableRaisedAreWrittenAgain has that worker know a copy rule under a higher
// epoch than the new state table gives it.
func TestParentsThatAWorkerOfALostStateTableRaisedAreWrittenAgain(t *testing.T) {
	w := newWorld(t, socialRules)
	w.file = withRule(t, socialRules, "comment-author", "")
	w.rename("Ann")
	for i := range children {
		w.put(comment(fmt.Sprintf("c%02d", i), change.Item{"userId": s("u1")}))
	}
	open := func() *Engine {
		e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 5})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	w.seeded()
	older := open()
	w.replay(older)
	from := w.drain(older, 0)
	w.loseState(socialRules)
	e := open()
	w.replay(e)
	from = w.drain(e, from)
	w.rename("Bob")
	w.late(older, w.records()[from:])
	w.use(socialRules)
	for _, name := range []string{"Carol", "Dora"} {
		w.rename(name)
		from = w.drain(e, from)
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		from = w.drain(e, from)
		if got := w.named(name); got != children {
			t.Errorf("%d of %d comments name %s", got, children, name)
		}
	}
	w.expectTrue()
}
