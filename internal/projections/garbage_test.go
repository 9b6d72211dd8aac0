package projections

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TestUnreadableStampCountsAsNone puts texts that are no stamp behind a stamp's own
// context, beside values that are wrong. Records and rederiving both write anew.
func TestUnreadableStampCountsAsNone(t *testing.T) {
	group, comment, member := change.Key{Partition: "GROUP#g0", Sort: "METADATA"}, change.Key{Partition: "POST#p1", Sort: "COMMENT#cu1"},
		change.Key{Partition: "GROUP#g0", Sort: "USER#u1"}
	for _, rest := range []string{
		"s b", "", "s", "0zzz-d", "00yzzzzzzzzzzz-d", "zx-d", "0-d", "~ ~", "0zl#~", "0-", "000001|00000000000000000009 0011223344556677",
	} {
		for name, mend := range map[string]func(*world, *Engine, int) error{
			"records":   func(w *world, e *Engine, from int) error { _, err := e.Process(w.ctx, w.records()[from:]); return err },
			"rederived": func(w *world, e *Engine, _ int) error { return e.Rederive(w.ctx, []change.Key{group, comment, member}) },
		} {
			t.Run(name+" "+rest, func(t *testing.T) {
				w := newWorld(t, socialRules)
				w.social()
				e := w.seeded()
				w.drain(e, 0)
				from := len(w.records())
				for _, c := range []struct {
					key                     change.Key
					within, rule, attribute string
				}{
					{group, group.String(), "member-count", "memberCount"},
					{comment, "USER#" + w.get(comment)["userId"].Text() + "/PROFILE", "comment-author", "userName"},
					{member, "", "member-list", "role"},
				} {
					name := stampOf(c.rule)
					context := stamp.Context(e.planner.Incarnation, c.key, c.within)
					if found, ok := stamp.Read(w.get(c.key)[name], context); !ok {
						t.Fatalf("%s is stamped as %v, want context %q", c.key, found, context)
					}
					w.update(c.key, change.Item{name: s(context + rest), c.attribute: s("wrong")})
				}
				if err := mend(w, e, from); err != nil {
					t.Fatal(err)
				}
				w.drain(e, from)
				w.expectNoDrift()
			})
		}
	}
}

// TestTornRegistryIsNamedWithItsRemedy writes into the registry what no engine can work with.
func TestTornRegistryIsNamedWithItsRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		sort, attribute string
		value           change.Value
	}{
		"an epoch that is a text":       {"table", "epoch", s("x")},
		"an epoch beyond all":           {"table", "epoch", change.Number("100001")},
		"a negative epoch":              {"table", "epoch", change.Number("-1")},
		"no epoch":                      {"table", "epoch", change.Value{}},
		"no incarnation":                {"table", "incarnation", change.Value{}},
		"an incarnation that is empty":  {"table", "incarnation", s("")},
		"lives that are a text":         {"table", "live", s("1")},
		"an unknown state":              {"rule/" + idOf("member-count"), "state", s("lives")},
		"a rule's epoch that is a text": {"rule/" + idOf("member-count"), "epoch", s("1")},
		"very many write suffixes":      {"rule/" + idOf("member-count"), "writeShardsMax", change.Number("1000000000")},
		"half a write suffix":           {"rule/" + idOf("member-count"), "writeShardsMax", change.Number("0.5")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			w.seeded()
			for _, row := range w.scan("app-dynamill") {
				if row["pk"].Text() != "registry" || row["sk"].Text() != c.sort {
					continue
				}
				row = maps.Clone(row)
				if row[c.attribute] = c.value; c.value.Kind() == change.KindAbsent {
					delete(row, c.attribute)
				}
				w.putState(row)
			}
			_, opened := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, socialRules)})
			_, audited := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: loadRules(t, socialRules)})
			_, inspected := inspect.Read(w.ctx, w.sim, "app-dynamill")
			_, compared := Compare(w.ctx, w.sim, "app-dynamill", loadRules(t, socialRules))
			for by, err := range map[string]error{"the engine": opened, "an audit": audited, "an inspection": inspected, "a comparison": compared} {
				refused := new(table.SetupError)
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.sort) || !strings.Contains(err.Error(), c.attribute) {
					t.Errorf("%s: %v", by, err)
				}
			}
		})
	}
}

// TestTornSeedingCursorBeginsAnew has seeding go on from places that are none.
func TestTornSeedingCursorBeginsAnew(t *testing.T) {
	place := func(fields map[string]change.Value) change.Item { return change.Item{"last": change.Map(fields)} }
	for name, with := range map[string]change.Item{
		"another table's key":             place(map[string]change.Value{"id": s("x")}),
		"a key of numbers":                place(map[string]change.Value{"pk": change.Number("1"), "sk": change.Number("2")}),
		"an empty key":                    place(map[string]change.Value{"pk": s(""), "sk": s("")}),
		"a key that is too long":          place(map[string]change.Value{"pk": s(strings.Repeat("x", 3000)), "sk": s("x")}),
		"a place that is a text":          {"last": s("USER#1")},
		"a level that there is not":       {"level": change.Number("77")},
		"a phase that there is not":       {"phase": s("shout")},
		"changes that are a text":         {"changes": s("3")},
		"changes that are 0":              {"changes": change.Number("0")},
		"changes that are beyond numbers": {"changes": change.Number("1e100")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			w.social()
			e := w.engine(w.sim)
			cursor, _, err := e.seeding.NextPass(w.ctx)
			if err == nil {
				err = e.seeding.Save(w.ctx, &cursor)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range w.scan("app-dynamill") {
				if row["sk"].Text() == "seeding" {
					row = maps.Clone(row)
					maps.Copy(row, with)
					w.putState(row)
				}
			}
			if err := w.engine(w.sim).Seed(w.ctx, nil); err != nil {
				t.Fatal(err)
			}
			w.drain(w.engine(w.sim), 0)
			w.expectNoDrift()
		})
	}
}

// TestTornTaskIsNamedAndHoldsUpNoOther tears one of two tasks.
func TestTornTaskIsNamedAndHoldsUpNoOther(t *testing.T) {
	for name, with := range map[string]change.Item{
		"at is a number":     {"a": change.Number("5")},
		"at is no version":   {"a": s("0zzz")},
		"no position":        {"a": s("")},
		"changes are a text": {"changes": s("1")},
		"changes are a part": {"changes": change.Number("0.5")},
		"another rule":       {"rule": s(idOf("member-name"))},
		"another parent":     {"parent": s("USER#u2/PROFILE")},
		"an unknown rule":    {"rule": s("nobody")},
		"a refill":           {"refill": change.Bool(true)},
	} {
		t.Run(name, func(t *testing.T) {
			w, open := crowd(t)
			e := open(w.sim)
			from := w.drain(e, 0)
			w.rename("Bob")
			if _, err := e.Process(w.ctx, w.records()[from:]); err != nil {
				t.Fatal(err)
			}
			for _, row := range w.scan("app-dynamill") {
				if row["pk"].Text() != state.TasksPartition {
					continue
				}
				good := maps.Clone(row)
				for name, value := range map[string]string{"sk": parkedID("comment-author/USER#u9/PROFILE"), "parent": "USER#u9/PROFILE"} {
					good[name] = s(value)
				}
				w.putState(good) // of a parent that has no position: it ends at once
				torn := maps.Clone(row)
				maps.Copy(torn, with)
				w.putState(torn)
			}
			did, err := e.WorkTasks(w.ctx)
			if err == nil || !strings.Contains(err.Error(), "`dynamill verify --repair`") || did.Pieces != 1 {
				t.Errorf("%d pieces, %v", did.Pieces, err)
			}
			w.expectTasks(e, 1)
		})
	}
}

// TestTaskWithAnotherCursorBeginsAnew has a task go on behind what is no child's key.
func TestTaskWithAnotherCursorBeginsAnew(t *testing.T) {
	for name, cursor := range map[string]change.Value{
		"a text":          s("x"),
		"another table's": change.Map(map[string]change.Value{"id": s("x")}),
		"another parent's": change.Map(map[string]change.Value{"pk": s("ref/" + idOf("comment-author") + "/USER#u2/PROFILE"),
			"sk": s("POST#p1/COMMENT#c01")}),
		"an empty one": change.Map(map[string]change.Value{"pk": s("ref/" + idOf("comment-author") + "/USER#u1/PROFILE"), "sk": s("")}),
		"of numbers":   change.Map(map[string]change.Value{"pk": s("ref/" + idOf("comment-author") + "/USER#u1/PROFILE"), "sk": change.Number("1")}),
	} {
		t.Run(name, func(t *testing.T) {
			w, open := crowd(t)
			e := open(w.sim)
			from := w.drain(e, 0)
			w.rename("Bob")
			if _, err := e.Process(w.ctx, w.records()[from:]); err != nil {
				t.Fatal(err)
			}
			for _, row := range w.scan("app-dynamill") {
				if row["pk"].Text() == state.TasksPartition {
					row = maps.Clone(row)
					row["cursor"] = cursor
					w.putState(row)
				}
			}
			if _, err := e.WorkTasks(w.ctx); err != nil {
				t.Fatal(err)
			}
			if n := w.named("Bob"); n != children {
				t.Errorf("%d of %d children were written", n, children)
			}
			w.expectTasks(e, 0)
		})
	}
}

// TestShortDigestsDecideNothingAlone overwrites one of three copies with a value whose digest in the stamp is the same.
func TestShortDigestsDecideNothingAlone(t *testing.T) {
	const ours, theirs = "Ada Lovelace", "User 581121"
	if stamp.ShortDigest(3, s(ours)) != stamp.ShortDigest(3, s(theirs)) {
		t.Fatal("these values have different digests")
	}
	w := newWorld(t, sizesRules)
	e := w.seeded()
	from := w.drain(e, 0)
	comment := change.Key{Partition: "POST#1", Sort: "COMMENT#2"}
	w.put(change.Item{"pk": s("USER#1"), "sk": s("PROFILE"), "avatar": s(ours), "color": s("red"), "font": s("serif")})
	w.put(change.Item{"pk": s("POST#1"), "sk": s("COMMENT#2"), "userId": s("1")})
	from = w.drain(e, from)
	w.update(comment, change.Item{"userAvatar": s(theirs)})
	from = w.drain(e, from)
	w.expect(comment, "userAvatar", s(ours))
	w.update(comment, change.Item{"userAvatar": s(theirs)}) // its record is lost
	if err := e.Rederive(w.ctx, []change.Key{comment}); err != nil {
		t.Fatal(err)
	}
	w.expect(comment, "userAvatar", s(ours))
	w.drain(e, from)
}

// TestTextAboveTheCountDoesNotKeepAnAggregate writes a text behind the stamp's own context that sorts above its count.
func TestTextAboveTheCountDoesNotKeepAnAggregate(t *testing.T) {
	_, e := social(t)
	b, group := e.planner.ByID(idOf("comment-count")), change.Key{Partition: "POST#p1", Sort: "METADATA"}
	context := stamp.Context(e.planner.Incarnation, group, group.String())
	a := &audit.Auditor{Planner: e.planner}
	for text, stuck := range map[string]bool{"00n": true, "00n!abcdefgh": true, "00n-abcdefgh x": true, "00n-abcdefgh": false, "": false} {
		shown := a.CountShown(b, group, group.String(), change.Item{b.Stamp: s(context + text)})
		if got := shown > audit.RaisedMax; got != stuck {
			t.Errorf("%q: no count may be raised above it: %t, want %t", text, got, stuck)
		}
	}
}
