package projections

import (
	"errors"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

var (
	group1  = change.Key{Partition: "GROUP#g1", Sort: "METADATA"}
	member1 = change.Key{Partition: "USER#u1", Sort: "GROUP#g1"}
)

// withoutMemberCount is socialRules before the rule member-count was added.
var withoutMemberCount = strings.Replace(socialRules,
	"  member-count:   { count: Membership, as: Group.memberCount, where: role != \"banned\", write_shards: 3 }\n", "", 1)

// engineWith opens an engine with another rule file.
func (w *world) engineWith(ruleFile string) *Engine {
	w.t.Helper()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(w.t, ruleFile)})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func passAll(_ string, pass func() error) error { return pass() }

// putMember inserts what makes one membership of one group.
func (w *world) putMember(role string) {
	w.t.Helper()
	w.put(change.Item{"pk": s(member1.Partition), "sk": s(member1.Sort), "role": s(role)})
}

func (w *world) putGroup() {
	w.t.Helper()
	w.put(change.Item{"pk": s(group1.Partition), "sk": s(group1.Sort)})
}

func TestAnEngineOfOlderRulesTakesNoEffectOfNewerRulesAway(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	w.putMember("admin")
	old := w.engineWith(withoutMemberCount)
	if err := old.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	from := w.drain(old, 0)
	e := w.seeded()
	from = w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("1"))

	w.delete(change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}) // which makes an engine write the mirror item again
	if _, err := old.Process(w.ctx, w.records()[from:]); !errors.Is(err, registry.ErrEpochMoved) {
		t.Errorf("processing with older rules: %v, want ErrEpochMoved", err)
	}
	from = w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("1"))
	w.update(member1, change.Item{"role": s("member")})
	w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("1"))
	w.expectNoDrift()
}

func TestSeedingWithOlderRulesTakesNoEffectOfNewerRulesAway(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	w.putMember("admin")
	old := w.engineWith(withoutMemberCount)
	e := w.seeded()
	from := w.drain(e, 0)
	w.expect(group1, "memberCount", change.Number("1"))

	if err := old.Seed(w.ctx, nil); !errors.Is(err, registry.ErrEpochMoved) {
		t.Errorf("seeding with older rules: %v, want ErrEpochMoved", err)
	}
	from = w.drain(e, from)
	w.update(member1, change.Item{"role": s("member")})
	w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("1"))
	w.expectNoDrift()
}

// TestGoingLiveThatOneCallSawIsNotHiddenFromAnother has two calls of one engine under way, of
// two shards, while another process brings the rules to life.
func TestGoingLiveThatOneCallSawIsNotHiddenFromAnother(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	f := &faulty{Client: w.sim, around: passAll}
	b := w.engine(f) // knows the rules as not live
	a := w.seeded()
	from := w.drain(a, 0)
	w.putMember("member")
	w.put(change.Item{"pk": s("POST#p9"), "sk": s("METADATA")})
	all := w.records()
	met := false
	f.around = func(op string, pass func() error) error {
		if op == "GetItem" && !met { // the first call has left out its roll-ups, and is about to look at the registry
			met = true
			if _, err := b.Process(w.ctx, all[from+1:from+2]); err != nil {
				t.Error(err)
			}
		}
		return pass()
	}
	if done, err := b.Process(w.ctx, all[from:from+1]); err != nil || done != 1 || !met {
		t.Fatalf("%d records done, calls met: %v, %v", done, met, err)
	}
	w.drain(b, from+2)
	w.expect(group1, "memberCount", change.Number("1"))
	w.expectNoDrift()
}

func TestRederivingShowsRulesThatAnotherProcessBroughtToLife(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	a, b := w.engine(nil), w.engine(nil)
	if err := a.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(a, 0)
	w.putMember("member")
	from := len(w.records()) // its record is lost
	if err := b.Rederive(w.ctx, []change.Key{member1}); err != nil {
		t.Fatal(err)
	}
	w.drain(a, from)
	w.expect(group1, "memberCount", change.Number("1"))
	w.expectNoDrift()
}

func TestTheShowPassOfAnEngineThatWasNotToldShowsAllTheSame(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	w.putMember("member")
	from := len(w.records())
	f := &faulty{Client: w.sim, around: passAll}
	a, b := w.engine(f), w.engine(nil) // both start before anything is live
	f.around = func(op string, pass func() error) error {
		if op == "Scan" && a.planner.ByID(idOf("member-count")).Live.Load() {
			return errCrash // live, but not shown
		}
		return pass()
	}
	if err := a.Seed(w.ctx, nil); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if err := b.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(w.seeded(), from)
	w.expect(group1, "memberCount", change.Number("1"))
}

// TestARecordOfBeforeTheRulesWereAddedUndoesNothing delivers, under newer rules, single records of which the later ones were
// applied under older rules: their positions are still earlier.
func TestARecordOfBeforeTheRulesWereAddedUndoesNothing(t *testing.T) {
	w := newWorld(t, socialRules)
	w.file = strings.Replace(socialRules, "  comment-count:  { count: Comment, as: Post.commentCount }\n", "", 1)
	w.putGroup()
	w.put(change.Item{"pk": s("USER#u2"), "sk": s("GROUP#g1"), "role": s("admin")})
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
	w.put(comment("c1", change.Item{"userId": s("u1")}))
	older := w.seeded()
	w.putMember("admin")
	w.put(comment("c2", change.Item{"userId": s("u1")}))
	w.drain(older, 0)
	w.update(change.Key{Partition: "USER#u1", Sort: "PROFILE"}, change.Item{"name": s("Bob")})
	w.update(group1, change.Item{"name": s("Ops")})
	w.put(comment("c2", change.Item{"userId": s("u3")}))
	w.delete(member1)
	from := w.drain(older, 0)

	w.file = socialRules
	newer := w.seeded()
	from = w.drain(newer, from)
	w.expectNoDrift()
	for i := range w.records()[:from] {
		if _, err := newer.Process(w.ctx, w.records()[i:i+1]); err != nil {
			t.Fatal(err)
		}
		for _, d := range oracle.Drift(w.set, w.items()) {
			t.Errorf("after record %d of %s again: %s", i, w.records()[i].Key, d)
		}
	}
	w.drain(newer, from)
	w.expectNoDrift()
}
