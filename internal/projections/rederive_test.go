package projections

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

// TestRederivingAParentWritesItToItsChildren loses the records of a rename and of a deletion.
func TestRederivingAParentWritesItToItsChildren(t *testing.T) {
	user := change.Key{Partition: "USER#u1", Sort: "PROFILE"}
	c1 := change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"}
	mirrored := change.Key{Partition: "GROUP#g1", Sort: "USER#u1"}
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.putGroup()
	w.putMember("admin")
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
	w.put(comment("c1", change.Item{"userId": s("u1")}))
	w.drain(e, 0)
	for _, step := range []struct {
		lost func()
		want string
		gone bool
	}{
		{func() { w.update(user, change.Item{"name": s("Bob")}) }, "Bob", false},
		{func() { w.update(group1, change.Item{"name": s("Ops")}) }, "Bob", false},
		{func() { w.delete(user) }, "[deleted]", true},
	} {
		step.lost()
		from := len(w.records())
		if err := e.Rederive(w.ctx, []change.Key{user, group1}); err != nil {
			t.Fatal(err)
		}
		w.drain(e, from)
		w.expect(c1, "userName", s(step.want))
		if step.gone {
			w.expect(mirrored, "userName", change.Value{})
		} else {
			w.expect(mirrored, "userName", s(step.want))
		}
		w.expectNoDrift()
	}
}
