package projections

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// SchemaOf are the keys of all items of the table that a pass goes over, in any order.
func (w *world) keysOf(e *Engine, pass string) []change.Key {
	w.t.Helper()
	partition, sort := w.set.Table.PartitionKey, w.set.Table.SortKey
	named := e.TableOf(pass)
	if named != "app" {
		partition, sort = table.PK, table.SK
	}
	var keys []change.Key
	for _, item := range w.scan(named) {
		keys = append(keys, change.Key{Partition: item.Lookup(partition).Text(), Sort: item.Lookup(sort).Text()})
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// work works off a pass as a parallel driver does.
func (w *world) work(e *Engine, pass string) error {
	w.t.Helper()
	for chunk := range slices.Chunk(w.keysOf(e, pass), 7) {
		if err := e.Work(w.ctx, pass, chunk); err != nil {
			return err
		}
	}
	return nil
}

// replay works off all passes that bring the rules into force, and returns them.
func (w *world) replay(e *Engine) []string {
	w.t.Helper()
	var passes []string
	for {
		pass, left, err := e.NextPass(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		if left == 0 {
			return passes
		}
		if slices.Contains(passes, pass) {
			w.t.Fatalf("pass %s comes again after %q", pass, passes)
		}
		passes = append(passes, pass)
		if err := errors.Join(w.work(e, pass), e.Complete(w.ctx, pass)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestADriverOfItsOwnBringsRulesIntoForce(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	for i := range 20 {
		w.put(change.Item{"pk": s(fmt.Sprintf("USER#u%d", i)), "sk": s("GROUP#g1"), "role": s("admin")})
	}
	e := w.engine(nil)
	passes := w.replay(e)
	if want := []string{"derive/1/0", "show/1/0/6", "derive/1/1", "show/1/1/3"}; !slices.Equal(passes, want) {
		t.Errorf("passes are %q, want %q", passes, want)
	}
	w.expect(group1, "memberCount", change.Number("20"))
	w.drain(e, 0)
	w.expect(group1, "adminCount", change.Number("20"))
	w.expectNoDrift()
	for _, pass := range passes { // long over
		if err := errors.Join(w.work(e, pass), e.Complete(w.ctx, pass)); err != nil {
			t.Error(err)
		}
	}
	w.expectNoDrift()
	if err := e.Work(w.ctx, "derive/2/0", nil); !errors.Is(err, registry.ErrEpochMoved) {
		t.Errorf("working off a pass of newer rules: %v", err)
	}
	if err := e.Work(w.ctx, "rederive/no-rule", nil); !errors.Is(err, seeding.ErrUnknownPass) {
		t.Errorf("working off a pass for a rule that there is not: %v", err)
	}
}

// TestTwoDriversAtOnce has one driver go page by page, and another complete the same passes under its hands.
func TestTwoDriversAtOnce(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	for i := range 20 {
		w.put(change.Item{"pk": s(fmt.Sprintf("USER#u%d", i)), "sk": s("GROUP#g1"), "role": s("admin")})
	}
	other := w.engine(nil)
	f := &faulty{Client: w.sim, around: passAll}
	e := w.engine(f)
	var passes []string
	f.around = func(op string, pass func() error) error {
		if op == "Scan" {
			text, left, err := other.NextPass(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if left > 0 && rand.N(2) == 0 {
				passes = append(passes, text)
				if err := errors.Join(w.work(other, text), other.Complete(w.ctx, text)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return pass()
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.drain(other, 0)
	w.expect(group1, "memberCount", change.Number("20"))
	w.expect(group1, "adminCount", change.Number("20"))
	w.expectNoDrift()
	if slices.Sort(passes); len(slices.Compact(passes)) != len(passes) {
		t.Errorf("passes came again: %q", passes)
	}
}

// TestLevelThatIsShownAgainIsAnotherPass has rules of one level go live one after the other. A driver that worked off the first showing
// of the level ends it when the second one is under way.
func TestLevelThatIsShownAgainIsAnotherPass(t *testing.T) {
	w := newWorld(t, hotRule+"  plain: { count: Like, as: Post.plain, by: postId }\n")
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.like("l1", "p1", 5)
	driver := w.engine(nil)
	f := &faulty{Client: w.sim, around: passAll}
	e, err := Open(w.ctx, Config{Client: f, Table: "app", Rules: w.set, Count: w.plainCount})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	f.around = func(op string, pass func() error) error {
		text, _, err := driver.NextPass(w.ctx)
		if op != "Scan" || err != nil || !strings.HasPrefix(text, "show/") {
			return pass() // a count is no pass of a driver's
		}
		if shown = append(shown, text); len(shown) == 2 {
			if err := driver.Complete(w.ctx, shown[0]); err != nil {
				t.Error(err)
			}
			if again, _, err := driver.NextPass(w.ctx); err != nil || again != text {
				t.Errorf("after the end of the first showing comes %q, %v; want %s", again, err, text)
			}
		}
		return pass()
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"show/1/0/1", "show/1/0/3"}; !slices.Equal(shown, want) {
		t.Errorf("shown in %q, want %q", shown, want)
	}
	for name, want := range map[string]string{"plain": "1", "likes": "1", "weight": "5"} {
		w.expect(likedPost("p1"), name, change.Number(want))
	}
}
