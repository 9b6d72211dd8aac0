package mirrors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestEveryTypeIsMirroredUnharmed(t *testing.T) {
	s := kindtest.LoadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  A: { key: { pk: "A#${id}", sk: "A" } }
  B: { key: { pk: "B#${id}", sk: "B" } }
rules:
  m: { mirror: A, as: B, attributes: [s, n, b, bool, "null", l, m, ss, ns, bs, empty, absent, id] }
`)
	item := kindtest.EveryType()
	got, ok, err := mirrors.Of(kindtest.Rule(t, s, "m")).Item(kindtest.Identify(t, s, "A#1", "A", item), item)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	want := rules.MadeItem{Key: change.Key{Partition: "B#1", Sort: "B"}, Attributes: kindtest.EveryType()}
	want.Attributes["id"] = change.String("1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mirrored (-want +got):\n%s", diff)
	}
}

func TestMirrorsCarryConstantsAndTheirEntitysMarks(t *testing.T) {
	s := kindtest.Load(t, "everything.yaml")
	r := kindtest.Rule(t, s, "desk-list")
	seat := change.Item{"EntityType": change.String("Seat"), "active": change.Bool(true), "level": change.Number("2"), "since": change.Null()}
	got, ok, err := mirrors.Of(r).Item(kindtest.Identify(t, s, "ORG#o", "SEAT#u", seat), seat)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	want := rules.MadeItem{Key: change.Key{Partition: "USER#u", Sort: "DESK#o"}, Attributes: map[string]change.Value{
		"seatedAt": change.Null(), "orgId": change.String("o"), "kind": change.String("desk"), "rank": change.Number("1.5"),
		"open": change.Bool(true), "gone": change.Null(), "EntityType": change.String("Desk")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if source, ok := r.SourceKey(got.Key); !ok || source != (change.Key{Partition: "ORG#o", Sort: "SEAT#u"}) {
		t.Errorf("its source is %v, %t", source, ok)
	}
	if _, ok := r.SourceKey(change.Key{Partition: "USER#u", Sort: "OTHER#o"}); ok {
		t.Error("another entity's item has a source")
	}
	seat["role"] = change.String("guest")
	if _, ok, err := mirrors.Of(r).Item(kindtest.Identify(t, s, "ORG#o", "SEAT#u", seat), seat); ok || err != nil {
		t.Errorf("a guest is mirrored (%v)", err)
	}
}
