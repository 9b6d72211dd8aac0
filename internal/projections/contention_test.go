package projections

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

func TestARederiveThatCrashedIsMadeGoodByRunningItAgain(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	e := w.seeded()
	w.drain(e, 0)
	w.putMember("admin")
	from := len(w.records()) // its record is lost
	f := &faulty{Client: w.sim, around: passAll}
	crashing := w.engine(f)
	crashed := false
	f.around = func(op string, pass func() error) error {
		if crashed {
			return errCrash
		}
		err := pass()
		if op == "TransactWriteItems" { // the entry is written, nothing is rolled up
			crashed = true
			return errCrash
		}
		return err
	}
	if err := crashing.Rederive(w.ctx, []change.Key{member1}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if err := e.Rederive(w.ctx, []change.Key{member1}); err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("1"))
	w.expectNoDrift()
}

func TestAnItemNamedTwiceIsRederivedOnce(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.putGroup()
	w.putMember("admin")
	from := len(w.records())
	if err := e.Rederive(w.ctx, []change.Key{group1, member1, member1}); err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expect(group1, "memberCount", change.Number("1"))
	w.expectParked(e)
	w.expectNoDrift()
}

// TestTwoSeedersShareOneCursor freezes a seeder before it saves its place. Another one goes on
// and brings the rules to life; the first must not turn the cursor back to deriving.
func TestTwoSeedersShareOneCursor(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
rules:
  member-count: { count: Membership, as: Group.memberCount }
`)
	pad := s(strings.Repeat("x", 300*1024)) // so that a scan has several pages
	for i := range 8 {
		w.put(change.Item{"pk": s(fmt.Sprintf("GROUP#g%d", i)), "sk": s("METADATA"), "pad": pad})
		w.put(change.Item{"pk": s("USER#u1"), "sk": s(fmt.Sprintf("GROUP#g%d", i)), "pad": pad})
	}
	from := len(w.records())
	fa, fb := &faulty{Client: w.sim, around: passAll}, &faulty{Client: w.sim, around: passAll}
	a, b := w.engine(fa), w.engine(fb)
	fb.around = func(op string, pass func() error) error {
		if op == "Scan" && b.planner.ByID(idOf("member-count")).Live.Load() {
			return errCrash // live, but not shown
		}
		return pass()
	}
	frozen := false
	fa.around = func(op string, pass func() error) error {
		if op != "PutItem" || frozen {
			return pass()
		}
		frozen = true
		if err := b.Seed(w.ctx, nil); !errors.Is(err, errCrash) {
			t.Errorf("the other seeder: %v, want a crash", err)
		}
		_ = pass() // wakes up, tries to save its place, and dies
		return errCrash
	}
	if err := a.Seed(w.ctx, nil); !errors.Is(err, errCrash) {
		t.Fatalf("the frozen seeder: %v, want a crash", err)
	}
	w.drain(w.seeded(), from)
	w.expect(group1, "memberCount", change.Number("1"))
	w.expectNoDrift()
}

// TestWhoParksLateLeavesNothingBehindThatAGoodRecordCleared wakes a process that is about to
// park a child after the child became good and the stream was drained.
func TestWhoParksLateLeavesNothingBehindThatAGoodRecordCleared(t *testing.T) {
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
	e := w.seeded()
	from := w.drain(e, 0)
	w.put(comment("c1", change.Item{"userId": s("a#b")}))
	f := &faulty{Client: w.sim, around: passAll}
	late := w.engine(f)
	slept := false
	f.around = func(op string, pass func() error) error {
		if op == "TransactWriteItems" && !slept {
			slept = true
			w.put(comment("c1", change.Item{"userId": s("u1")}))
			w.drain(e, from)
		}
		return pass()
	}
	if _, err := late.Process(w.ctx, w.records()[from:]); err != nil || !slept {
		t.Fatalf("asleep before parking: %v, %v", slept, err)
	}
	w.expectParked(e)
	w.expect(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"}, "userName", s("Ann"))
}

// TestOurOwnDeletionOfAContestedMirrorItemIsNoCorrection lets a source with claims come and go more often than the bound
// allows corrections.
func TestOurOwnDeletionOfAContestedMirrorItemIsNoCorrection(t *testing.T) {
	w := newWorld(t, shopRules)
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, shopRules), HealsMax: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	from := 0
	for range 6 {
		w.put(change.Item{"PK": s("USER#u1"), "SK": s("POST#p1"), "EntityType": s("Post"), "title": s("A")})
		from = w.drain(e, from)
		w.delete(change.Key{Partition: "USER#u1", Sort: "POST#p1"})
		from = w.drain(e, from)
	}
	w.expectParked(e)
	w.expectNoDrift()
}

// TestSeedingClearsTheDueMarksOfAggregatesThatAreNotSeededYet seeds an item that feeds a mirror with claims and a count.
func TestSeedingClearsTheDueMarksOfAggregatesThatAreNotSeededYet(t *testing.T) {
	w := newWorld(t, shopRules)
	w.put(change.Item{"PK": s("USER#u1"), "SK": s("POST#p1"), "EntityType": s("Post"), "title": s("A"), "slug": s("s1")})
	w.seeded()
	for _, row := range w.scan("app-dynamill") {
		if due := row.Lookup("due"); due.Kind() != change.KindAbsent {
			t.Errorf("%s is due: %v", row["pk"].Text(), due)
		}
	}
}

// TestAnOlderSourceThatWinsAgainIsNoFight hands a contested mirror item back to an older source.
func TestAnOlderSourceThatWinsAgainIsNoFight(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	w.put(change.Item{"pk": s("DOC#d2"), "kind": s("doc"), "code": s("c1"), "title": s("B")})
	from := w.drain(e, 0)
	for range 3 {
		w.put(change.Item{"pk": s("DOC#d1"), "kind": s("doc"), "code": s("c1"), "title": s("A")})
		from = w.drain(e, from)
		w.put(change.Item{"pk": s("DOC#d1"), "kind": s("doc"), "title": s("A")})
		from = w.drain(e, from)
	}
	w.expect(change.Key{Partition: "CODE#c1"}, "title", s("B"))
	w.expectNoDrift()
	for _, row := range w.scan("app-dynamill") {
		if strings.HasPrefix(row["pk"].Text(), "heals/") {
			t.Errorf("%s counts %s corrections, and nobody but the engine wrote there", row["pk"].Text(), row["corrections"].Text())
		}
	}
}
