package projections

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

const indexRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
rules:
  published: { set: { GSI1PK: "POST#STATUS#${status}", GSI1SK: "${createdAt}" }, of: Post, where: status == "published" }
  ranked:    { set: { GSI2SK: "${pad(likes, 6)}#${lower(title)}", score: = likes * 2 + 1, kind: post, level: 3 }, of: Post }
`

var ranked = change.Item{"likes": change.Number("12"), "title": s("Hello World")}

// page is a post with attributes.
func page(with change.Item, more ...change.Item) change.Item {
	it := change.Item{"pk": s("POST#p1"), "sk": s("METADATA")}
	for _, attributes := range append(more, with) {
		for name, v := range attributes {
			it[name] = v
		}
	}
	return it
}

// attributesOf are the attributes of an item that a set rule of indexRules can write, and stamps.
func (w *world) derivedOf(key change.Key) change.Item {
	it := change.Item{}
	for name, v := range w.get(key) {
		if strings.HasPrefix(name, "GSI") || name == "score" || name == "kind" || name == "level" {
			it[name] = v
		}
	}
	return it
}

func (w *world) expectDerived(key change.Key, want change.Item) {
	w.t.Helper()
	if got := w.derivedOf(key); !change.Map(got).Equal(change.Map(want)) {
		w.t.Errorf("%s holds %v, want %v", key, got, want)
	}
}

func TestSetAttributesFollowTheirItem(t *testing.T) {
	rank := change.Item{"GSI2SK": s("000012#hello world"), "score": change.Number("25"), "kind": s("post"), "level": change.Number("3")}
	both := change.Item{"GSI1PK": s("POST#STATUS#published"), "GSI1SK": s("2026-01-01")}
	for name, v := range rank {
		both[name] = v
	}
	w := newWorld(t, indexRules)
	w.put(page(change.Item{"status": s("published"), "createdAt": s("2026-01-01")}, ranked))
	w.seeded()
	w.expectDerived(post1, both)
	n := 0
	for _, step := range []struct {
		name string
		do   func()
		want change.Item
	}{
		{"as seeded", func() {}, both},
		{"where holds no more", func() { w.update(post1, change.Item{"status": s("draft")}) }, rank},
		{"an attribute is missing", func() { w.update(post1, change.Item{"title": {}}) }, change.Item{}},
		{"an attribute is empty", func() { w.update(post1, change.Item{"title": s("")}) }, change.Item{}},
		{"whole again", func() { w.put(page(change.Item{"status": s("published"), "createdAt": s("2026-01-01")}, ranked)) }, both},
		{"another program overwrites", func() { w.update(post1, change.Item{"GSI1PK": s("x"), "score": {}}) }, both},
		{"another program takes a stamp", func() { w.update(post1, change.Item{stampOf("ranked"): {}}) }, both},
		{"it cannot be read", func() { w.update(post1, change.Item{"likes": s("many")}) },
			change.Item{"GSI1PK": both["GSI1PK"], "GSI1SK": both["GSI1SK"]}},
		{"nor does it fit", func() { w.update(post1, change.Item{"likes": change.Number("1234567")}) },
			change.Item{"GSI1PK": both["GSI1PK"], "GSI1SK": both["GSI1SK"]}},
		{"there and back", func() {
			w.update(post1, change.Item{"likes": change.Number("13")})
			w.update(post1, change.Item{"likes": change.Number("12")})
		}, both},
		{"an attribute without which nothing is missing", func() { w.update(post1, change.Item{"remark": s("x")}) }, both},
		{"gone and back", func() {
			w.delete(post1)
			w.put(page(change.Item{"status": s("published"), "createdAt": s("2026-01-01")}, ranked))
		}, both},
	} {
		step.do()
		e := w.engine(nil)
		n = w.drain(e, n)
		w.expectDerived(post1, step.want)
		w.expectRight()
		if t.Failed() {
			t.Fatal(step.name)
		}
	}
	w.expectIdle(n)
}

// expectIdle gives an engine all records again: it must write nothing new.
func (w *world) expectIdle(n int) {
	w.t.Helper()
	w.drain(w.engine(nil), 0)
	if again := len(w.records()); again != n {
		w.t.Errorf("records given again made %d changes", again-n)
	}
}

// TestLateWorkersOfSetRulesDoNoHarm has a worker apply a record when the item has moved on, was deleted, or is another.
func TestLateWorkersOfSetRulesDoNoHarm(t *testing.T) {
	for name, later := range map[string]func(w *world){
		"the item moved on":            func(w *world) { w.update(post1, change.Item{"likes": change.Number("99")}) },
		"it was deleted":               func(w *world) { w.delete(post1) },
		"it lost what the rule reads":  func(w *world) { w.update(post1, change.Item{"likes": {}}) },
		"it cannot be read any more":   func(w *world) { w.update(post1, change.Item{"likes": s("many")}) },
		"another attribute came to it": func(w *world) { w.update(post1, change.Item{"remark": s("x")}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, indexRules)
			w.seeded()
			w.put(page(ranked))
			old := w.records()
			later(w)
			n := w.drain(w.engine(nil), len(old)) // the later records come first
			if _, err := w.engine(nil).Process(w.ctx, old); err != nil {
				t.Fatal(err)
			}
			w.drain(w.engine(nil), n)
			w.expectRight()
			w.drain(w.engine(nil), 0)
			w.expectRight()
		})
	}
}

// TestSetRulesRetire takes what former rules wrote off, also what a worker writes that knows only these.
func TestSetRulesRetire(t *testing.T) {
	w := newWorld(t, indexRules)
	w.put(page(change.Item{"status": s("published"), "createdAt": s("2026-01-01")}, ranked))
	w.seeded()
	n := w.drain(w.engine(nil), 0)
	late := w.engine(nil)
	changed := strings.Replace(strings.Replace(indexRules, "POST#STATUS#", "STATUS#", 1), ", kind: post", "", 1)
	e := w.changing(changed, nil)
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	n = w.drain(e, n)
	w.expectTrue()
	w.expectNone("kind")
	if got := w.get(post1)["GSI1PK"]; !got.Equal(s("STATUS#published")) {
		t.Errorf("GSI1PK is %q", got.Text())
	}
	w.update(post1, change.Item{"likes": change.Number("13")})
	if _, err := late.Process(w.ctx, w.records()[n:]); err == nil {
		t.Error("a worker with former rules did not notice")
	}
	w.drain(w.changing(changed, nil), n)
	w.expectTrue()
	w.expectNone("kind")
}

func TestEntityThatLosesASetRuleLosesItsAttributes(t *testing.T) {
	w := newWorld(t, strings.Replace(indexRules, `sk: "METADATA" } }`, `sk: "METADATA" }, match: { type: post } }`, 1))
	w.put(page(change.Item{"type": s("post")}, ranked))
	e := w.seeded()
	n := w.drain(e, 0)
	w.update(post1, change.Item{"type": s("page")})
	n = w.drain(e, n)
	w.expectDerived(post1, change.Item{})
	w.update(post1, change.Item{"type": s("post")})
	w.drain(e, n)
	w.expectRight()
	if w.get(post1)["score"].Missing() {
		t.Error("the item is a post again, and has no score")
	}
}

func TestHealingOfSetAttributesIsBounded(t *testing.T) {
	w := newWorld(t, indexRules)
	w.put(page(ranked))
	w.seeded()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: w.set, HealsMax: 3})
	if err != nil {
		t.Fatal(err)
	}
	n := w.drain(e, 0)
	for i := range 6 {
		w.update(post1, change.Item{"score": change.Number("0")})
		n = w.drain(e, n)
		if healed := w.get(post1)["score"].Equal(change.Number("25")); healed != (i < 3) {
			t.Fatalf("after %d overwritings, healed: %t", i+1, healed)
		}
	}
	if got := w.parkedWith(e, "heal.contested"); len(got) != 1 || got[0] != "ranked/"+post1.String() {
		t.Errorf("parked: %q", got)
	}
}

// refusing refuses every write of an attribute for good, as DynamoDB refuses an index key of another type.
func TestRefusedSetIsParked(t *testing.T) {
	w := newWorld(t, indexRules)
	w.put(page(change.Item{"status": s("published"), "createdAt": s(strings.Repeat("x", 399<<10))}))
	w.put(change.Item{"pk": s("POST#p2"), "sk": s("METADATA"), "status": s("published"), "createdAt": s("2026")})
	e := w.seeded()
	w.drain(e, 0)
	if got := w.parkedWith(e, "write.rejected"); len(got) != 1 || got[0] != "published/"+post1.String() {
		t.Errorf("parked: %q", got)
	}
	if got := w.get(change.Key{Partition: "POST#p2", Sort: "METADATA"})["GSI1SK"]; !got.Equal(s("2026")) {
		t.Error("the neighbour was not written")
	}
	w.expectNoDrift()
}

// TestAValueThatNoNumberHeldIsParkedOnlySoLong has a share that no number holds exactly, and then one that a number does.
func TestAValueThatNoNumberHeldIsParkedOnlySoLong(t *testing.T) {
	w := newWorld(t, `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: METADATA } }
rules:
  share: { set: { share: = likes / views }, of: Post }
`)
	w.put(page(change.Item{"likes": change.Number("1"), "views": change.Number("3")}))
	e := w.seeded()
	n := w.drain(e, 0)
	if got := w.parkedWith(e, "number.overflow"); len(got) != 1 {
		t.Fatalf("parked: %q, want the post", got)
	}
	w.update(post1, change.Item{"views": change.Number("4")})
	w.drain(e, n)
	if got := w.parkedWith(e, "number.overflow"); len(got) != 0 {
		t.Errorf("parked: %q, want nothing", got)
	}
	if got := w.get(post1)["share"]; !got.Equal(change.Number("0.25")) {
		t.Errorf("share is %v, want 0.25", got)
	}
	w.expectNoDrift()
}
