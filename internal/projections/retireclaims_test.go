package projections

import (
	"errors"
	"fmt"
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

// TestAMirrorItemWithoutItsStamp has another program take the stamp off a mirror item, or spoil it, and the rule change or go before the
// record of that is applied, or soon after.
func TestAMirrorItemWithoutItsStamp(t *testing.T) {
	mirrored, other := change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}, change.Key{Partition: "GROUP#g1", Sort: "USER#u2"}
	stamps := map[string]func(w *world) change.Value{
		"none":             func(*world) change.Value { return change.Value{} },
		"that of another":  func(w *world) change.Value { return w.get(other)[stampOf("member-list")] },
		"what is no stamp": func(*world) change.Value { return s("x") },
	}
	for name, c := range map[string]struct {
		rule  string // "" if it goes
		stays bool
	}{
		"the rule goes":                              {"", false},
		"the rule does not ask for the item":         {`member-list: { mirror: Membership, as: Member, where: role == "none" }`, false},
		"the rule asks for the item with less":       {"member-list: { mirror: Membership, as: Member, attributes: [role] }", true},
		"the rule names the same in another order":   {"member-list: { mirror: Membership, as: Member, attributes: [joinedAt, role] }", true},
		"the rule makes items that cannot have keys": {"member-list: { mirror: Group, as: Member, by: { userId: groupId } }", false},
	} {
		for _, applied := range []bool{false, true} {
			for stamped, stamp := range stamps {
				t.Run(fmt.Sprintf("%s, stamp: %s, applied: %t", name, stamped, applied), func(t *testing.T) {
					w := newWorld(t, socialRules)
					w.social()
					from := w.drain(w.seeded(), 0)
					w.update(mirrored, change.Item{stampOf("member-list"): stamp(w), "notes": s("the application's own")})
					e := w.changing(withRule(t, socialRules, "member-list", c.rule), nil)
					if applied {
						from = w.drain(e, from)
					}
					w.replay(e)
					w.drain(e, from)
					left := w.get(mirrored)
					if c.stays != (left != nil) || c.stays && left["notes"].Text() == "" {
						t.Errorf("left is %v", left)
					}
					w.expectTrue()
				})
			}
		}
	}
}

// TestAttributesInAnotherOrderAreTheSame has a rule name its attributes in another order, which is no change, and then go.
func TestAttributesInAnotherOrderAreTheSame(t *testing.T) {
	w := newWorld(t, socialRules)
	w.social()
	from := w.drain(w.seeded(), 0)
	reordered := withRule(t, socialRules, "comment-author", "comment-author: { copy: [avatar as userAvatar, name as userName], from: User, "+
		`to: Comment, by: userId, if_missing: { userName: "[deleted]" } }`)
	w.use(reordered)
	e := w.seeded()
	if changed := e.Describe().NewRules; len(changed) > 0 {
		t.Errorf("new are %v", changed)
	}
	from = w.drain(e, from)
	w.expectTrue()
	e = w.changing(withRule(t, reordered, "comment-author", ""), nil)
	w.replay(e)
	w.drain(e, from)
	w.expectNone("userAvatar", stampOf("comment-author"))
	w.expectTrue()
}
