package projections

import (
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// TestRenameCostsOneWriteForEachChild renames a user whose children lie elsewhere, and are known by what their keys say or by an attribute.
func TestRenameCostsOneWriteForEachChild(t *testing.T) {
	for name, match := range map[string]string{"by the key alone": "", "by an attribute, too": ", match: { kind: like }"} {
		t.Run(name, func(t *testing.T) {
			const children = 100
			w := newWorld(t, fmt.Sprintf(`version: 1
table: { keys: [pk, sk] }
entities:
  User: { key: { pk: "USER#${userId}", sk: PROFILE } }
  Like: { key: { pk: "POST#${postId}", sk: "LIKE#${likeId}" }%s }
rules:
  names: { copy: name as userName, from: User, to: Like, by: userId }
`, match))
			e := w.seeded()
			rename := func(name string) {
				w.put(change.Item{"pk": s("USER#u"), "sk": s("PROFILE"), "name": s(name)})
			}
			rename("Ann")
			for i := range children {
				w.put(change.Item{"pk": s("POST#p"), "sk": s(fmt.Sprint("LIKE#", i)), "userId": s("u"), "kind": s("like")})
			}
			n := w.drain(e, 0)
			rename("Eve")
			before := w.sim.Usage()
			w.drain(e, n)
			if units := w.sim.Usage().Sub(before).WriteUnits; units != children+1 { // and the parent's position
				t.Errorf("a rename costs %.0f write units, want %d", units, children+1)
			}
			w.expectNoDrift()
		})
	}
}
