package verify_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

// TestATornRowIsMendedWhereItHoldsUpTheStream has records come of what a torn row
// belongs to, which the engine fails on or parks, and verify with the stream at hand:
// they cannot be waited for.
func TestATornRowIsMendedWhereItHoldsUpTheStream(t *testing.T) {
	str := change.String
	for name, s := range map[string]spoilt{
		"an entry without at":              {state, member, "", without("a")},
		"an entry of an impossible epoch":  {state, member, "", set("a", str("999999|2026"))},
		"an effect that cannot be read":    {state, member, "", effect(oracle.RuleID("member-count"), "garbage")},
		"claims, changes no number":        {state, claimed, "", set("changes", str("3"))},
		"a locator, changes no number":     {state, unique, "", set("changes", str("3"))},
		"a position that is a number":      {state, "parent/" + oracle.RuleID("comment-author") + "/USER#1", "", set("a", change.Number("5"))},
		"an accumulator's value as a text": {state, sumRow, "", set("value", str("7"))},
		"an accumulator's members as text": {state, sumRow, "", set("members", str("7"))},
		"a locator of nobody, no number": {state, unique, "", func(w *world, _ change.Item) {
			w.put(state, texts("pk", "locator/Post/9", "sk", "locator", "changes", "3"))
		}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := forum(t)
			c := &consumer{world: w}
			w.must(w.stream().Unapplied(w.ctx, verify.Applied{}, func(*change.Record) error { c.done++; return nil }))
			w.damage(s)
			for _, it := range []change.Item{
				texts("pk", "USER#1", "sk", "GROUP#1", "role", "admin"), texts("pk", "USER#3", "sk", "GROUP#1", "role", "m"),
				comment("1", "2", "green"), comment("2", "1", "red"), comment("4", "1", "red"),
				texts("pk", "AUTHOR#2", "sk", "POST#1"), texts("pk", "AUTHOR#2", "sk", "POST#9"), texts("pk", "USER#1", "sk", "PROFILE", "name", "Eda"),
			} {
				w.put("app", it)
			}
			applied, _ := c.Applied(w.ctx)
			var records []change.Record
			w.must(c.Unapplied(w.ctx, applied, func(rec *change.Record) error { records = append(records, *rec); return nil }))
			_, err := w.engine().Process(w.ctx, records)
			t.Logf("the stream, before: %v", err)

			with := func(cfg *verify.Config) { cfg.Pending, cfg.Wait = c, 50*time.Millisecond }
			found, _ := w.verify(true, with)
			if len(found) == 0 {
				t.Error("nothing was found")
			}
			e := w.engine()
			_, err = e.Process(w.ctx, records)
			w.must(err)
			parked, err := e.Parked(w.ctx)
			w.must(err)
			for _, p := range parked {
				w.must(e.RetryParked(w.ctx, p.ID))
			}
			w.follow()
			w.expectRight("after the stream was applied")
		}))
	}
}

// TestATornTaskIsDroppedAndItsParentFilledAnew has a task that no process can work off, and
// a child that it has not come to.
func TestATornTaskIsDroppedAndItsParentFilledAnew(t *testing.T) {
	for name, with := range map[string]change.Item{
		"no position":     texts("a", "0zzz"),
		"another parent":  texts("parent", "USER#2/PROFILE"),
		"changes no more": texts("changes", "1"),
		"no key":          texts("sk", oracle.RuleID("comment-author")+"/USER#1", "parent", "USER#1"),
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := forum(t)
			task := texts("pk", "tasks", "sk", oracle.RuleID("comment-author")+"/USER#1/PROFILE", "rule", oracle.RuleID("comment-author"), "parent",
				"USER#1/PROFILE",
				"a",
				"0-")
			task["changes"] = change.Number("1")
			maps.Copy(task, with)
			w.put(state, task)
			w.damage(spoilt{app, "COMMENT#1", "METADATA", set("userName", change.String("Old"))})
			w.lose()
			found, _ := w.verify(false)
			parent := strings.TrimPrefix(task["sk"].Text(), oracle.RuleID("comment-author")+"/")
			w.compare(found, map[string]string{"item " + parent: "torn task", "item COMMENT#1/METADATA": "copy"})
			if _, err := w.engine().WorkTasks(w.ctx); err == nil {
				t.Error("no error says that the task is torn")
			}
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
		}))
	}
}
