package projections

import (
	"errors"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TestASecondChangeBeforeTheFirstIsCarriedOut has a rule with two attributes change to one of them and go,
// before anything of the first change is cleaned.
func TestASecondChangeBeforeTheFirstIsCarriedOut(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	from := w.drain(w.seeded(), 0)
	e := w.changing(withRule(t, socialRules, "comment-author",
		`comment-author: { copy: nick as userName, from: User, to: Comment, by: userId }`), nil)
	pass, _, err := e.NextPass(w.ctx)
	if err = errors.Join(err, w.work(e, pass)); err != nil { // and is stopped before anything retires
		t.Fatal(err)
	}
	e = w.changing(withRule(t, withRule(t, socialRules, "comment-author", ""), "member-name", ""), nil)
	w.replay(e)
	w.drain(e, from)
	w.expectNone("userName", "userAvatar", "_dm_comment-author", "_dm_comment-author-2")
	w.expectTrue()
}

// TestAnAttributeIsNotLeftToARuleThatCannotReadTheItem has the next rule park the child, and go, too.
func TestAnAttributeIsNotLeftToARuleThatCannotReadTheItem(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	w.update(comment1, change.Item{"otherId": s("a#b")})
	from := w.drain(w.seeded(), 0)
	e := w.changing(withRule(t, socialRules, "comment-author",
		`comment-author: { copy: [name as userName, avatar as userAvatar], from: User, to: Comment, by: { userId: otherId } }`), nil)
	w.replay(e)
	from = w.drain(e, from)
	w.expect(comment1, "userName", change.Value{})
	e = w.changing(withRule(t, withRule(t, socialRules, "comment-author", ""), "member-name", ""), nil)
	w.replay(e)
	w.drain(e, from)
	w.expectNone("userName", "userAvatar")
	w.expectTrue()
}

// TestTheApplicationsAttributeBesideAClaimedOneStays overwrites one of two attributes while the rule changes to the other.
func TestTheApplicationsAttributeBesideAClaimedOneStays(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	from := w.drain(w.seeded(), 0)
	e := w.changing(withRule(t, socialRules, "comment-author",
		`comment-author: { copy: nick as userName, from: User, to: Comment, by: userId }`), nil)
	w.update(comment1, change.Item{"userAvatar": s("the application's own")})
	from = w.drain(e, from)
	w.replay(e)
	w.drain(e, from)
	w.expect(comment1, "userAvatar", s("the application's own"))
	w.expect(comment1, "userName", s("Nick u1"))
}

// TestAChangeIsCarriedOutOnlyAgainstTheRulesThatWereCompared has another process change the rules after the comparison.
func TestAChangeIsCarriedOutOnlyAgainstTheRulesThatWereCompared(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	w.seeded()
	next := loadRules(t, withRule(t, socialRules, "comment-author", ""))
	found, err := Compare(w.ctx, w.sim, "app-dynamill", next)
	if err != nil {
		t.Fatal(err)
	}
	w.changing(withRule(t, socialRules, "comment-author", `comment-author: { copy: nick as userName, from: User, to: Comment, by: userId }`),
		nil)
	cfg := Config{Client: w.sim, Table: "app", Rules: next}
	if _, err := OpenChanging(w.ctx, cfg, found.Epoch); !errors.As(err, new(*RulesChangedError)) {
		t.Fatalf("agreed to another change: %v", err)
	}
	if found, err = Compare(w.ctx, w.sim, "app-dynamill", next); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenChanging(w.ctx, cfg, found.Epoch); err != nil {
		t.Error(err)
	}
}

// TestWhoOnlyAttachesRenamesNothing has an attached process know a rule by another name.
func TestWhoOnlyAttachesRenamesNothing(t *testing.T) {
	w := newWorld(t, listRules)
	w.seeded()
	renamed := withRule(t, listRules, "n", `members: { count: Member, as: Group.n }`)
	if _, err := OpenAttached(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, renamed)}); err != nil {
		t.Fatal(err)
	}
	name := func() string {
		for _, row := range w.scan("app-dynamill") {
			if row["pk"].Text() == "registry" && row["sk"].Text() == "rule/"+idOf("n") {
				return row["name"].Text()
			}
		}
		return ""
	}
	if got := name(); got != "n" {
		t.Errorf("attaching renamed a rule to %q", got)
	}
	w.use(renamed)
	w.engine(nil)
	if got := name(); got != "members" {
		t.Errorf("the rule is still called %q", got)
	}
}

// TestWhoOnlyAttachesSpreadsNothing has an attached process know a rule with more write shards than are in force.
func TestWhoOnlyAttachesSpreadsNothing(t *testing.T) {
	w := newWorld(t, listRules)
	running := w.seeded()
	spread := withRule(t, listRules, "n", `n: { count: Member, as: Group.n, write_shards: 4 }`)
	_, err := OpenAttached(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, spread)})
	if setup := new(table.SetupError); !errors.As(err, &setup) || !strings.Contains(setup.Problem, "write_shards of rule n are not in force") {
		t.Errorf("attaching with more write shards: %v", err)
	}
	if err := running.registry.Under(w.ctx, func() error { return nil }); err != nil {
		t.Errorf("who follows the stream is told: %v", err)
	}
}

// TestAMirrorItemWithoutItsStampGoesWithItsRule has another program take the stamp off a mirror item, and the rule go before the record of
// that is applied, or soon after.
func TestAMirrorItemWithoutItsStampGoesWithItsRule(t *testing.T) {
	for name, applied := range map[string]bool{"before the record": false, "after the record": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			w.social()
			from := w.drain(w.seeded(), 0)
			mirrored := change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}
			w.update(mirrored, change.Item{stampOf("member-list"): {}})
			e := w.changing(withRule(t, socialRules, "member-list", ""), nil)
			if applied {
				from = w.drain(e, from)
			}
			w.replay(e)
			w.drain(e, from)
			if left := w.get(mirrored); left != nil {
				t.Errorf("left is %v", left)
			}
			w.expectTrue()
		})
	}
}
