package rules_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

func load(t testing.TB, file string) *rules.Set {
	t.Helper()
	src, err := os.ReadFile("testdata/good/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return loadText(t, string(src))
}

func loadText(t testing.TB, src string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(src))
	if err != nil {
		t.Fatalf("loading:\n%v", err)
	}
	return set
}

func rule(t testing.TB, s *rules.Set, name string) *rules.Rule {
	t.Helper()
	for _, r := range s.Rules {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no rule %s", name)
	return nil
}

func identify(t testing.TB, s *rules.Set, partition, sort string, item change.Item) *rules.Match {
	t.Helper()
	m, ok := s.Identify(change.Key{Partition: partition, Sort: sort}, item)
	if !ok {
		t.Fatalf("%s / %s is of no entity", partition, sort)
	}
	return &m
}

func wantItemError(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	var bad *rules.ItemError
	if !errors.As(err, &bad) {
		t.Fatalf("got %v, want an *ItemError", err)
	}
	if bad.Code != code {
		t.Errorf("code %s, want %s (%s)", bad.Code, code, bad.Reason)
	}
	for _, w := range words {
		if !strings.Contains(bad.Reason, w) {
			t.Errorf("reason %q does not say %q", bad.Reason, w)
		}
	}
}

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
	if v, ok := m.Var("commentId"); v != "c1" || !ok {
		t.Errorf("commentId = %q, %t", v, ok)
	}
	if v, ok := m.Var("userId"); ok {
		t.Errorf("a comment's key has userId %q", v)
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

func TestContributions(t *testing.T) {
	blog, shop, numbers := load(t, "blog.yaml"), load(t, "shop.yaml"), load(t, "number-keys.yaml")
	line := func(more change.Item) change.Item {
		item := change.Item{"EntityType": change.String("LineItem"), "price": change.Number("0.1"), "quantity": change.Number("3")}
		for k, v := range more {
			item[k] = v
		}
		return item
	}
	booking := func(day change.Value) change.Item {
		return change.Item{"kind": change.String("booking"), "amount": change.Number("5"), "day": day}
	}
	for name, tt := range map[string]struct {
		set             *rules.Set
		rule            string
		partition, sort string
		item            change.Item
		group, amount   string // "" for no contribution
	}{
		"one item counts one":                     {blog, "comment-count", "POST#p", "COMMENT#1#c", nil, "POST#p/METADATA", "1"},
		"a member counts":                         {blog, "member-count", "USER#u", "GROUP#g", change.Item{"role": change.String("admin")}, "GROUP#g/METADATA", "1"},
		"a member without a role counts":          {blog, "member-count", "USER#u", "GROUP#g", change.Item{}, "GROUP#g/METADATA", "1"},
		"a banned member does not":                {blog, "member-count", "USER#u", "GROUP#g", change.Item{"role": change.String("banned")}, "", ""},
		"a line adds price times quantity":        {shop, "order-total", "ORDER#o", "ITEM#p", line(nil), "o", "0.3"},
		"a line without a price adds nothing":     {shop, "order-total", "ORDER#o", "ITEM#p", line(change.Item{"price": change.Null()}), "", ""},
		"a post counts for its author":            {shop, "post-count", "USER#a", "POST#1#p", change.Item{"EntityType": change.String("Post")}, "USER#a/PROFILE", "1"},
		"a join attribute may be a number":        {numbers, "day-total", "7", "1", booking(change.Number("20")), "7/20", "5"},
		"a join attribute may be a text":          {numbers, "day-total", "7", "1", booking(change.String("20")), "7/20", "5"},
		"a missing join attribute means nothing":  {numbers, "day-total", "7", "1", booking(change.Value{}), "", ""},
		"a null join attribute means nothing":     {numbers, "day-total", "7", "1", booking(change.Null()), "", ""},
		"an empty join attribute means nothing":   {numbers, "day-total", "7", "1", booking(change.String("")), "", ""},
		"a boolean join attribute reads as words": {numbers, "day-total", "7", "1", booking(change.Bool(true)), "7/true", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rule(t, tt.set, tt.rule)
			got, ok, err := r.Contribution(identify(t, tt.set, tt.partition, tt.sort, tt.item), tt.item)
			if err != nil {
				t.Fatal(err)
			}
			if ok != (tt.group != "") || ok && (got.Group != tt.group || got.Amount.String() != tt.amount) {
				t.Errorf("got %q %s, %t; want %q %s", got.Group, got.Amount, ok, tt.group, tt.amount)
			}
		})
	}
}

func TestTheTargetDisplaysTheGroupThatItsSourcesAddTo(t *testing.T) {
	s := load(t, "shop.yaml")
	order := change.Item{"EntityType": change.String("Order")}
	group, ok, err := rule(t, s, "order-total").GroupOf(identify(t, s, "CUSTOMER#c", "ORDER#o", order), order)
	if group != "o" || !ok || err != nil {
		t.Errorf("by unique: %q, %t, %v", group, ok, err)
	}
	blog := load(t, "blog.yaml")
	r := rule(t, blog, "comment-count")
	group, ok, err = r.GroupOf(identify(t, blog, "POST#a/b", "METADATA", nil), nil)
	if !ok || err != nil || change.ParseKey(group) != (change.Key{Partition: "POST#a/b", Sort: "METADATA"}) {
		t.Errorf("by key: %q, %t, %v", group, ok, err)
	}
	all := load(t, "everything.yaml")
	user := change.Item{"EntityType": change.String("user"), "email": change.String("")}
	if _, ok, err := rule(t, all, "login-count").GroupOf(identify(t, all, "USER#u", "PROFILE", user), user); ok || err != nil {
		t.Errorf("a user with an empty email displays a group: %v", err)
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
		_, ok, err := rule(t, s, name).Contribution(identify(t, s, "USER#u", "M#1", item), item)
		if ok {
			t.Errorf("%s: %v contributes", name, item)
		}
		return err
	}
	wantItemError(t, contribution("members", change.Item{"groupId": change.String("g1#COUNT")}), "key.smuggled",
		`Membership.groupId is "g1#COUNT": a key variable must not contain #`)
	wantItemError(t, contribution("dashed", change.Item{"a": change.String("x-y"), "b": change.String("z")}), "key.smuggled", "Membership.a", "D#${a}-${b}")
	wantItemError(t, contribution("members", change.Item{"groupId": change.List(nil)}), "value.type", "Membership.groupId", "type L")
	wantItemError(t, contribution("members", change.Item{"groupId": change.Binary([]byte("x"))}), "value.type", "type B")
	wantItemError(t, contribution("members", change.Item{"groupId": change.String(strings.Repeat("g", 3000))}), "key.too_long", "2048")
	item := change.Item{"x": change.String("1"), "y": change.String("2#3")}
	_, _, err := rule(t, s, "twice").MirrorItem(identify(t, s, "USER#u", "M#1", item), item)
	wantItemError(t, err, "key.smuggled", "Membership.y")
}

func TestWrongTypesAndOverflowsAreTheItemsErrors(t *testing.T) {
	s := load(t, "shop.yaml")
	r := rule(t, s, "order-total")
	for _, tt := range []struct {
		price change.Value
		code  string
	}{
		{change.String("cheap"), "value.type"},
		{change.List(nil), "value.type"},
		{change.Number("9e125"), "number.overflow"},
	} {
		item := change.Item{"EntityType": change.String("LineItem"), "price": tt.price, "quantity": change.Number("12345678901234567890123456789012345678")}
		_, _, err := r.Contribution(identify(t, s, "ORDER#o", "ITEM#p", item), item)
		wantItemError(t, err, tt.code, "sum of LineItem")
	}
}

// allKinds has one attribute of every DynamoDB type.
func allKinds() change.Item {
	return change.Item{
		"s": change.String("text"), "n": change.Number("12345678901234567890123456789012345678"), "b": change.Binary([]byte{0, 255}),
		"bool": change.Bool(false), "null": change.Null(), "l": change.List([]change.Value{change.Number("1"), change.Null()}),
		"m": change.Map(map[string]change.Value{"in": change.String("")}), "ss": change.Set(change.KindStringSet, []string{"b", "a"}),
		"ns": change.Set(change.KindNumberSet, []string{"1"}), "bs": change.Set(change.KindBinarySet, []string{"\x00"}), "empty": change.String(""),
	}
}

func TestEveryTypeIsCopiedAndMirroredUnharmed(t *testing.T) {
	s := loadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  A: { key: { pk: "A#${id}", sk: "A" } }
  B: { key: { pk: "B#${id}", sk: "B" } }
  C: { key: { pk: "C#${id}", sk: "C" } }
rules:
  m: { mirror: A, as: B, attributes: [s, n, b, bool, "null", l, m, ss, ns, bs, empty, absent, id] }
  c: { copy: [s, n, b, bool, "null", l, m, ss, ns, bs, empty, absent], from: A, to: C, if_missing: { absent: 0 } }
`)
	item := allKinds()
	got, ok, err := rule(t, s, "m").MirrorItem(identify(t, s, "A#1", "A", item), item)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	want := rules.MirrorItem{Key: change.Key{Partition: "B#1", Sort: "B"}, Attributes: allKinds()}
	want.Attributes["id"] = change.String("1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mirrored (-want +got):\n%s", diff)
	}
	r := rule(t, s, "c")
	values := r.Copied(item)
	for i, c := range r.Copies[:len(r.Copies)-1] {
		if !values[i].Equal(item[c.From]) {
			t.Errorf("%s is copied as %v", c.From, values[i])
		}
	}
	if last := values[len(values)-1]; !last.Equal(change.Number("0")) {
		t.Errorf("if_missing gives %v", last)
	}
	for i, v := range r.Copied(nil) {
		if (v.Kind() == change.KindAbsent) != (r.Copies[i].As != "absent") {
			t.Errorf("without a parent, %s is %v", r.Copies[i].As, v)
		}
	}
}

func TestACopyMayTakeAVariableOfTheParentsKey(t *testing.T) {
	s := loadText(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  User: { key: { pk: "USER#${userId}", sk: "U#${n}" } }
  Note: { key: { pk: "USER#${userId}", sk: "NOTE#${n}" } }
rules:
  n: { copy: [n as number, userId], from: User, to: Note }
`)
	r := rule(t, s, "n")
	for name, tt := range map[string]struct {
		parent change.Item
		want   []change.Value
	}{
		"from the key":           {change.Item{"pk": change.String("USER#u"), "sk": change.String("U#7")}, []change.Value{change.String("7"), change.String("u")}},
		"the attribute is first": {change.Item{"pk": change.String("USER#u"), "sk": change.String("U#7"), "n": change.Null()}, []change.Value{change.Null(), change.String("u")}},
		"from a foreign key":     {change.Item{"pk": change.String("X"), "sk": change.String("U#7")}, []change.Value{{}, {}}},
	} {
		if diff := cmp.Diff(tt.want, r.Copied(tt.parent)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
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

func TestMirrorsCarryConstantsAndTheirEntitysMarks(t *testing.T) {
	s := load(t, "everything.yaml")
	r := rule(t, s, "desk-list")
	seat := change.Item{"EntityType": change.String("Seat"), "active": change.Bool(true), "level": change.Number("2"), "since": change.Null()}
	got, ok, err := r.MirrorItem(identify(t, s, "ORG#o", "SEAT#u", seat), seat)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	want := rules.MirrorItem{Key: change.Key{Partition: "USER#u", Sort: "DESK#o"}, Attributes: map[string]change.Value{
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
	if _, ok, err := r.MirrorItem(identify(t, s, "ORG#o", "SEAT#u", seat), seat); ok || err != nil {
		t.Errorf("a guest is mirrored (%v)", err)
	}
}

func TestChildrenFindTheirParentsAndParentsTheirCollections(t *testing.T) {
	s := load(t, "everything.yaml")
	orgName, owner := rule(t, s, "org-name"), rule(t, s, "owner")
	seat := change.Item{"EntityType": change.String("Seat"), "active": change.Bool(true), "level": change.Number("2")}
	parent, ok, err := orgName.ParentKey(identify(t, s, "ORG#o", "SEAT#u", seat), seat)
	if !ok || err != nil || parent != (change.Key{Partition: "ORG#o", Sort: "ORG"}) {
		t.Errorf("parent %v, %t, %v", parent, ok, err)
	}
	partition, prefix, ok := orgName.CollectionOf(parent)
	if partition != "ORG#o" || prefix != "SEAT#" || !ok {
		t.Errorf("collection %q %q %t", partition, prefix, ok)
	}
	if _, _, ok := orgName.CollectionOf(change.Key{Partition: "USER#u", Sort: "PROFILE"}); ok {
		t.Error("a user has an org's collection")
	}
	if _, _, ok := owner.CollectionOf(change.Key{Partition: "USER#u", Sort: "PROFILE"}); ok {
		t.Error("files joined by an attribute are a collection")
	}
	file := change.Item{"EntityType": change.String("File"), "owner": change.String("u1")}
	parent, ok, err = owner.ParentKey(identify(t, s, "ORG#o", "FILE#a#b#c", file), file)
	if !ok || err != nil || parent != (change.Key{Partition: "USER#u1", Sort: "PROFILE"}) {
		t.Errorf("parent %v, %t, %v", parent, ok, err)
	}
	delete(file, "owner")
	if _, ok, err = owner.ParentKey(identify(t, s, "ORG#o", "FILE#a", file), file); ok || err != nil {
		t.Errorf("a file without an owner has a parent (%v)", err)
	}
}
