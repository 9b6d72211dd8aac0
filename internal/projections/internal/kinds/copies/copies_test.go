package copies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
)

func TestEveryTypeIsCopiedUnharmed(t *testing.T) {
	s := kindtest.LoadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  A: { key: { pk: "A#${id}", sk: "A" } }
  C: { key: { pk: "C#${id}", sk: "C" } }
rules:
  c: { copy: [s, n, b, bool, "null", l, m, ss, ns, bs, empty, absent], from: A, to: C, if_missing: { absent: 0 } }
`)
	item := kindtest.EveryType()
	r := kindtest.Rule(t, s, "c")
	values := copies.Of(r).Given(item)
	for i, c := range r.Attributes[:len(r.Attributes)-1] {
		if !values[i].Equal(item[c.From]) {
			t.Errorf("%s is copied as %v", c.From, values[i])
		}
	}
	if last := values[len(values)-1]; !last.Equal(change.Number("0")) {
		t.Errorf("if_missing gives %v", last)
	}
	for i, v := range copies.Of(r).Given(nil) {
		if (v.Kind() == change.KindAbsent) != (r.Attributes[i].As != "absent") {
			t.Errorf("without a parent, %s is %v", r.Attributes[i].As, v)
		}
	}
}

func TestACopyMayTakeAVariableOfTheParentsKey(t *testing.T) {
	s := kindtest.LoadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  User: { key: { pk: "USER#${userId}", sk: "U#${n}" } }
  Note: { key: { pk: "USER#${userId}", sk: "NOTE#${n}" } }
rules:
  n: { copy: [n as number, userId], from: User, to: Note }
`)
	r := kindtest.Rule(t, s, "n")
	for name, tt := range map[string]struct {
		parent change.Item
		want   []change.Value
	}{
		"from the key": {change.Item{"pk": change.String("USER#u"), "sk": change.String("U#7")},
			[]change.Value{change.String("7"), change.String("u")}},
		"the attribute is first": {change.Item{"pk": change.String("USER#u"), "sk": change.String("U#7"), "n": change.Null()},
			[]change.Value{change.Null(), change.String("u")}},
		"from a foreign key": {change.Item{"pk": change.String("X"), "sk": change.String("U#7")}, []change.Value{{}, {}}},
	} {
		if diff := cmp.Diff(tt.want, copies.Of(r).Given(tt.parent)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
