package projections

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// TestNoCountIsShownBeforeAllItemsAreCounted keeps promise 10: while rules are
// seeded, whatever is written, memberCount never falls below what it truly was.
func TestNoCountIsShownBeforeAllItemsAreCounted(t *testing.T) {
	group := change.Key{Partition: "GROUP#g1", Sort: "METADATA"}
	w := newWorld(t, socialRules)
	const members = 250
	w.put(change.Item{"pk": s(group.Partition), "sk": s(group.Sort), "memberCount": change.Number("250"), "adminCount": change.Number("250")})
	for i := range members {
		w.put(change.Item{"pk": s(fmt.Sprintf("USER#%04d", i)), "sk": s("GROUP#g1"), "role": s("admin")})
	}
	from := len(w.records()) // all older than the stream
	var calls atomic.Int64
	var e *Engine
	check := func() {
		for _, name := range []string{"memberCount", "adminCount"} {
			shown, err := decimal.Parse(w.get(group).Lookup(name).Text())
			if err != nil || shown.Cmp(decimal.New(members)) < 0 {
				t.Errorf("after %d calls %s shows %q", calls.Load(), name, w.get(group).Lookup(name).Text())
			}
		}
	}
	client := &faulty{Client: w.sim}
	client.around = func(_ string, pass func() error) error {
		err := pass()
		calls.Add(1)
		check()
		return err
	}
	e = w.engine(client)
	joined := 0
	err := e.Seed(w.ctx, func(p SeedProgress) {
		joined++ // a member joins after every page, and the stream is followed beside
		w.put(change.Item{"pk": s(fmt.Sprintf("USER#new%d", joined)), "sk": s("GROUP#g1"), "role": s("admin")})
		all := w.records()
		if _, err := e.Process(w.ctx, all[from:]); err != nil {
			t.Fatal(err)
		}
		from = len(all)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expect(group, "memberCount", change.Number(fmt.Sprint(members+joined)))
	w.expect(group, "adminCount", change.Number(fmt.Sprint(members+joined)))
	w.expectNoDrift()
}

func TestSeedingGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t, socialRules)
	for i := range 40 {
		w.put(change.Item{"pk": s(fmt.Sprintf("USER#%02d", i)), "sk": s("GROUP#g1"), "role": s("admin")})
	}
	w.put(change.Item{"pk": s("GROUP#g1"), "sk": s("METADATA")})
	from := len(w.records())
	for crashAt := 1; ; crashAt++ {
		var calls atomic.Int64
		client := &faulty{Client: w.sim, around: func(_ string, pass func() error) error { return pass() }}
		e := w.engine(client)
		if len(e.Describe().NewRules) == 0 {
			break
		}
		client.around = func(_ string, pass func() error) error {
			if calls.Add(1) > int64(crashAt) {
				return errCrash
			}
			return pass()
		}
		if err := e.Seed(w.ctx, nil); err == nil {
			break
		}
	}
	e := w.engine(nil)
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expectNoDrift()
}

// TestAShowScanThatAChangeOfTheRulesCutOffIsDoneAgain dies with everything live and nothing shown; the next process knows more.
func TestAShowScanThatAChangeOfTheRulesCutOffIsDoneAgain(t *testing.T) {
	for name, more := range map[string]string{
		"more write shards": strings.Replace(socialRules, "write_shards: 3", "write_shards: 4", 1),
		"another rule":      socialRules + "  copied-count:   { copy: memberCount as size, from: Group, to: Membership }\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			w.putGroup()
			w.putMember("admin")
			f := &faulty{Client: w.sim, around: passAll}
			dying := w.engine(f)
			f.around = func(op string, pass func() error) error {
				if op == "Scan" && dying.planner.ByID(idOf("member-count")).Live.Load() {
					return errCrash
				}
				return pass()
			}
			if err := dying.Seed(w.ctx, nil); !errors.Is(err, errCrash) {
				t.Fatalf("seeding: %v, want a crash", err)
			}
			w.expect(group1, "memberCount", change.Value{})
			from := len(w.records()) // read by another process meanwhile: no record tells of the group any more
			w.file, w.set = more, loadRules(t, more)
			w.drain(w.seeded(), from)
			w.expect(group1, "memberCount", change.Number("1"))
		})
	}
}
