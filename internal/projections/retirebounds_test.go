package projections

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// TestManyRulesChangeAtOnce changes more rules over time than one step of the registry can write.
func TestManyRulesChangeAtOnce(t *testing.T) {
	file := func(attribute string, n int) string {
		text := "version: 1\ntable: { keys: [pk, sk] }\nentities:\n  Group: { key: { pk: \"GROUP#${groupId}\", sk: METADATA } }\n" +
			"  Membership: { key: { pk: \"USER#${userId}\", sk: \"GROUP#${groupId}\" } }\n" +
			"  Visit: { key: { pk: \"VISIT#${visitId}\", sk: \"GROUP#${groupId}\" } }\nrules:\n"
		for i := range n {
			text += fmt.Sprintf("  count%d: { count: %s, as: Group.%s%d }\n", i, []string{"Visit", "Membership"}[i%2], attribute, i)
		}
		return text
	}
	w := newWorld(t, file("a", 40))
	w.putGroup()
	w.putMember("member")
	from := w.drain(w.seeded(), 0)
	var e *Engine
	for _, attribute := range []string{"b", "c", "d"} { // 40 rules retire each time, without a replay
		e = w.changing(file(attribute, 40), nil)
	}
	for _, attribute := range []string{"e", "d"} { // 96 come and as many retire: no transaction holds that
		e = w.changing(file(attribute, 96), nil)
	}
	w.replay(e)
	w.drain(e, from)
	w.expect(group1, "d95", change.Number("1"))
	w.expectNone("a0", "a39", "b7", "c1", "_dm_count0", "_dm_count0-2", "_dm_count39-3", "e0", "e95")
	w.expectTrue()
}

// TestManyRulesGoLive brings more rules to life than one step of the registry can write.
func TestManyRulesGoLive(t *testing.T) {
	file := func(n int) string {
		text := "version: 1\ntable: { keys: [pk, sk] }\nentities:\n  A: { key: { pk: \"A#${x}\", sk: THING } }\n"
		for i := range (n + 9) / 10 {
			text += fmt.Sprintf("  P%d: { key: { pk: \"P%d#${x}\", sk: T } }\n  S%d: { key: { pk: \"S%d#${x}\", sk: T } }\n", i, i, i, i)
		}
		text += "rules:\n"
		for i := range n {
			text += fmt.Sprintf("  r%d: { count: S%d, as: P%d.c%d, by: x }\n", i, i/10, i/10, i)
		}
		return text
	}
	for name, seed := range map[string]func(*world, *Engine) error{
		"page by page":           func(w *world, e *Engine) error { return e.Seed(w.ctx, nil) },
		"by a driver of its own": func(w *world, e *Engine) error { w.replay(e); return nil },
		"after a crash between two steps of the registry": func(w *world, e *Engine) error {
			steps := 0
			f := &faulty{Client: w.sim}
			f.before = func(_ string, in any) {
				if registryRow(in) == "table" {
					steps++
				}
			}
			f.around = func(_ string, pass func() error) error {
				if steps == 2 {
					return errCrash
				}
				return pass()
			}
			if err := w.engine(f).Seed(w.ctx, nil); !errors.Is(err, errCrash) {
				return fmt.Errorf("seeding: %w, want a crash", err)
			}
			return e.Seed(w.ctx, nil)
		},
		"while another process shows what is live by then": func(w *world, e *Engine) error {
			other, steps := w.engine(nil), 0
			f := &faulty{Client: w.sim}
			f.before = func(_ string, in any) {
				if registryRow(in) == "table" {
					steps++
				}
			}
			f.around = func(_ string, pass func() error) error {
				if steps != 2 {
					return pass()
				}
				steps++
				show, _, err := other.NextPass(w.ctx)
				if err == nil {
					err = other.Work(w.ctx, show, w.keysOf(other, show))
				}
				return errors.Join(err, pass(), other.Complete(w.ctx, show))
			}
			if err := w.engine(f).Seed(w.ctx, nil); err != nil {
				return err
			}
			if steps < 3 {
				return errors.New("rules went live in one step")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, file(90))
			for i := range 15 {
				w.put(change.Item{"pk": s(fmt.Sprintf("P%d#1", i)), "sk": s("T")})
				w.put(change.Item{"pk": s(fmt.Sprintf("S%d#1", i)), "sk": s("T")})
			}
			from := len(w.records()) // nothing but seeding shows what is there
			w.engine(nil)
			e := w.changing(file(150), nil)
			if err := seed(w, e); err != nil {
				t.Fatal(err)
			}
			w.drain(e, from)
			for i := range 150 {
				w.expect(change.Key{Partition: fmt.Sprintf("P%d#1", i/10), Sort: "T"}, fmt.Sprintf("c%d", i), change.Number("1"))
			}
			w.expectTrue()
		})
	}
}
