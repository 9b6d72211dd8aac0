package projections

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

const teamRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list: { mirror: Membership, as: Member, attributes: [role] }
  points:      { sum: points, of: Membership, as: Group.points }
`

// roles have one digest as far as a ledger entry holds it.
var roles = [2]string{"r2356", "r2627"}

func TestMirrorFollowsContentThatTheEntryCannotTell(t *testing.T) {
	member := change.Key{Partition: "GROUP#g", Sort: "USER#u"}
	membership := func(role, points string) change.Item {
		return change.Item{"pk": s("USER#u"), "sk": s("GROUP#g"), "role": s(role), "points": change.Number(points)}
	}
	entry := func(w *world) change.Value { return w.row("i/USER#u/GROUP#g", "e")["e"] }
	begin := func(t *testing.T) (w *world, e *Engine, from int) {
		w = newWorld(t, teamRules)
		e = w.seeded()
		w.put(membership(roles[0], "1"))
		from = w.drain(e, 0)
		w.expect(member, "role", s(roles[0]))
		return w, e, from
	}
	t.Run("its record", func(t *testing.T) {
		w, e, from := begin(t)
		before := entry(w)
		w.put(membership(roles[1], "1"))
		w.drain(e, from)
		w.expect(member, "role", s(roles[1]))
		if !entry(w).Equal(before) {
			t.Fatal("the entry tells the roles apart: choose others")
		}
	})
	t.Run("rederiving, if its record is lost", func(t *testing.T) {
		w, e, _ := begin(t)
		w.put(membership(roles[1], "1"))
		if err := e.Rederive(w.ctx, []change.Key{{Partition: "USER#u", Sort: "GROUP#g"}}); err != nil {
			t.Fatal(err)
		}
		w.expect(member, "role", s(roles[1]))
	})
}

func TestLostContentIsCorrectedByARecordOfAnotherEffect(t *testing.T) {
	w := newWorld(t, teamRules)
	e := w.seeded()
	membership := change.Item{"pk": s("USER#u"), "sk": s("GROUP#g"), "role": s("member"), "points": change.Number("1")}
	w.put(membership)
	w.drain(e, 0)
	membership["role"] = s("admin")
	w.put(membership) // its record is lost
	from := len(w.records())
	membership["points"] = change.Number("2")
	w.put(membership)
	w.drain(e, from)
	w.expect(change.Key{Partition: "GROUP#g", Sort: "USER#u"}, "role", s("admin"))
}
