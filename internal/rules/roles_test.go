package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules"
)

func load(t testing.TB, file string) *rules.Set {
	t.Helper()
	src, err := os.ReadFile("testdata/good/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return loadText(t, string(src))
}

var (
	loadText, rule          = kindtest.LoadText, kindtest.Rule
	identify, wantItemError = kindtest.Identify, kindtest.WantItemError
)

func TestItemsAreIdentifiedByTheirKeysAlone(t *testing.T) {
	s := load(t, "blog.yaml")
	for _, tt := range []struct{ partition, sort, entity string }{
		{"USER#u1", "PROFILE", "User"},
		{"POST#p1", "METADATA", "Post"},
		{"POST#p1", "COMMENT#2024#c1", "Comment"},
		{"GROUP#g1", "METADATA", "Group"},
		{"USER#u1", "GROUP#g1", "Membership"},
		{"GROUP#g1", "USER#u1", "Member"},
		{"USER#", "PROFILE", ""},
		{"USER#u#1", "PROFILE", ""},
		{"USER#u1", "PROFILE2", ""},
		{"POST#p1", "COMMENT#2024", ""},
		{"POST#p1", "COMMENT#2024#c1#x", ""},
		{"POST#p1", "", ""},
		{"user#u1", "PROFILE", ""},
		{"", "", ""},
	} {
		key := change.Key{Partition: tt.partition, Sort: tt.sort}
		m, ok := s.Identify(key, nil)
		got := ""
		if ok {
			got = m.Entity.Name
			if m.Key() != key {
				t.Errorf("%v renders back as %v", key, m.Key())
			}
		}
		if got != tt.entity {
			t.Errorf("%v: got %q, want %q", key, got, tt.entity)
		}
	}
	m := identify(t, s, "POST#p1", "COMMENT#2024#c1", nil)
	if v := m.Entity.Value("commentId", m, nil); !v.Equal(change.String("c1")) {
		t.Errorf("commentId = %v", v)
	}
	if v := m.Entity.Value("userId", m, nil); v.Kind() != change.KindAbsent {
		t.Errorf("a comment's key has userId %v", v)
	}
}

func TestEntitiesOfOneShapeAreToldApartByTypeAndMatch(t *testing.T) {
	s := load(t, "number-keys.yaml")
	key := change.Key{Partition: "7", Sort: "20240101"}
	for kind, want := range map[string]string{"day": "Day", "booking": "Booking", "other": ""} {
		m, ok := s.Identify(key, change.Item{"kind": change.String(kind)})
		if ok != (want != "") || ok && m.Entity.Name != want {
			t.Errorf("kind %s: got %v, want %q", kind, m.Entity, want)
		}
	}
	if _, ok := s.Identify(key, nil); ok {
		t.Error("an item without attributes has a kind")
	}
	if _, ok := load(t, "shop.yaml").Identify(change.Key{Partition: "USER#u", Sort: "PROFILE"}, change.Item{}); ok {
		t.Error("an item without EntityType is a User")
	}
}

func TestIdentifyAllocatesNothing(t *testing.T) {
	s := load(t, "everything.yaml")
	key := change.Key{Partition: "ORG#o", Sort: "SEAT#u"}
	var item change.Image = change.Item{"EntityType": change.String("Seat"), "active": change.Bool(true), "level": change.Number("2")}
	missed := change.Key{Partition: "NOBODY#o", Sort: "SEAT#u"}
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := s.Identify(key, item); !ok {
			t.Fatal("not identified")
		}
		s.Identify(missed, item)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAValueThatSmugglesAHashIsRefused(t *testing.T) {
	s := loadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}", sk: "M#${n}" } }
  Dashed:     { key: { pk: "D#${a}-${b}", sk: "D" } }
  Twice:      { key: { pk: "T#${x}", sk: "T#${x}#${y}" } }
rules:
  members: { count: Membership, as: Group.members, by: groupId }
  dashed:  { count: Membership, as: Dashed.n, by: [a, b] }
  twice:   { mirror: Membership, as: Twice, by: [x, y] }
`)
	contribution := func(name string, item change.Item) error {
		_, ok, err := rule(t, s, name).Form.(rules.Adder).Contribution(identify(t, s, "USER#u", "M#1", item), item)
		if ok {
			t.Errorf("%s: %v contributes", name, item)
		}
		return err
	}
	wantItemError(t, contribution("members", change.Item{"groupId": change.String("g1#COUNT")}), "key.smuggled",
		`Membership.groupId is "g1#COUNT": a key variable must not contain #`)
	wantItemError(t, contribution("dashed", change.Item{"a": change.String("x-y"), "b": change.String("z")}), "key.smuggled", "Membership.a",
		"D#${a}-${b}")
	wantItemError(t, contribution("members", change.Item{"groupId": change.List(nil)}), "value.type", "Membership.groupId", "type L")
	wantItemError(t, contribution("members", change.Item{"groupId": change.Binary([]byte("x"))}), "value.type", "type B")
	wantItemError(t, contribution("members", change.Item{"groupId": change.String(strings.Repeat("g", 3000))}), "key.too_long", "2048")
	item := change.Item{"x": change.String("1"), "y": change.String("2#3")}
	_, _, err := rule(t, s, "twice").Form.(rules.Maker).Item(identify(t, s, "USER#u", "M#1", item), item)
	wantItemError(t, err, "key.smuggled", "Membership.y")
}

func TestAnItemIsKnownByItsUniqueValue(t *testing.T) {
	s := load(t, "everything.yaml")
	user := change.Item{"EntityType": change.String("user"), "email": change.String("a@b.c")}
	m := identify(t, s, "USER#u", "PROFILE", user)
	if v, ok, err := m.Entity.UniqueValue(m, user); v != "a@b.c" || !ok || err != nil {
		t.Errorf("got %q, %t, %v", v, ok, err)
	}
	user["email"] = change.Set(change.KindStringSet, []string{"a"})
	_, _, err := m.Entity.UniqueValue(m, user)
	wantItemError(t, err, "value.type", "User.email", "SS")
	user["email"] = change.String(strings.Repeat("e", 2049))
	_, _, err = m.Entity.UniqueValue(m, user)
	wantItemError(t, err, "key.too_long", "2049")
	org := change.Item{"EntityType": change.String("Org")}
	m = identify(t, s, "ORG#o", "ORG", org)
	if _, ok, err := m.Entity.UniqueValue(m, org); ok || err != nil || m.Entity.UniqueInKey() {
		t.Errorf("an org has no unique id, got %t, %v", ok, err)
	}
}

func TestChildrenFindTheirParentsAndParentsTheirCollections(t *testing.T) {
	s := load(t, "everything.yaml")
	orgName, owner := rule(t, s, "org-name"), rule(t, s, "owner")
	seat := change.Item{"EntityType": change.String("Seat"), "active": change.Bool(true), "level": change.Number("2")}
	parent, ok, err := orgName.JoinedKey(identify(t, s, "ORG#o", "SEAT#u", seat), seat)
	if !ok || err != nil || parent != (change.Key{Partition: "ORG#o", Sort: "ORG"}) {
		t.Errorf("parent %v, %t, %v", parent, ok, err)
	}
	partition, prefix, ok := orgName.Join.CollectionOf(parent)
	if partition != "ORG#o" || prefix != "SEAT#" || !ok {
		t.Errorf("collection %q %q %t", partition, prefix, ok)
	}
	if _, _, ok := orgName.Join.CollectionOf(change.Key{Partition: "USER#u", Sort: "PROFILE"}); ok {
		t.Error("a user has an org's collection")
	}
	if owner.Collection || !orgName.Collection {
		t.Error("files joined by an attribute are a collection, or seats joined by their key are none")
	}
	file := change.Item{"EntityType": change.String("File"), "owner": change.String("u1")}
	parent, ok, err = owner.JoinedKey(identify(t, s, "ORG#o", "FILE#a#b#c", file), file)
	if !ok || err != nil || parent != (change.Key{Partition: "USER#u1", Sort: "PROFILE"}) {
		t.Errorf("parent %v, %t, %v", parent, ok, err)
	}
	delete(file, "owner")
	if _, ok, err = owner.JoinedKey(identify(t, s, "ORG#o", "FILE#a", file), file); ok || err != nil {
		t.Errorf("a file without an owner has a parent (%v)", err)
	}
}
