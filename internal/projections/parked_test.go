package projections

import (
	"errors"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/inspect"
)

var post1 = change.Key{Partition: "POST#p1", Sort: "METADATA"}

func comment(id string, with change.Item) change.Item {
	it := change.Item{"pk": s("POST#p1"), "sk": s("COMMENT#" + id)}
	for name, v := range with {
		it[name] = v
	}
	return it
}

func (w *world) expect(key change.Key, attribute string, want change.Value) {
	w.t.Helper()
	if got := w.get(key).Lookup(attribute); !got.Equal(want) {
		w.t.Errorf("%s of %s is %s %q, want %s %q", attribute, key, got.Kind(), got.Text(), want.Kind(), want.Text())
	}
}

func (w *world) expectParked(e *Engine, ids ...string) []inspect.Parked {
	w.t.Helper()
	all, err := e.Parked(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, p.ID)
	}
	got = w.spelled(got)
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		w.t.Fatalf("parked are %q, want %q", got, ids)
	}
	return all
}

func TestAValueThatSmugglesAHashIsParkedAndTheRestGoesOn(t *testing.T) {
	w := newWorld(t, strings.Replace(socialRules, "comment-count:", `by-tag: { count: Comment, as: Group.tagged, by: { groupId: tag } }
  comment-count:`, 1))
	victim := change.Key{Partition: "GROUP#g1#COUNT", Sort: "METADATA"}
	w.put(change.Item{"pk": s(victim.Partition), "sk": s(victim.Sort), "mine": s("untouched")})
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	e := w.seeded()
	w.put(comment("c1", change.Item{"tag": s("g1#COUNT")}))
	from := w.drain(e, 0)
	p := w.expectParked(e, "by-tag/POST#p1/COMMENT#c1")[0]
	if !strings.Contains(p.Reason, "g1#COUNT") || p.Rule != "by-tag" {
		t.Errorf("parked under %s because %q: want the rule and the value named", p.Rule, p.Reason)
	}
	w.expect(post1, "commentCount", change.Number("1"))
	if got := w.get(victim); len(got) != 3 {
		t.Errorf("the other item became %v", got)
	}
	t.Run("a retry leaves it parked while the value is bad", func(t *testing.T) {
		if err := e.RetryParked(w.ctx, p.ID); err != nil {
			t.Fatal(err)
		}
		w.expectParked(e, "by-tag/POST#p1/COMMENT#c1")
	})
	t.Run("a good record clears it", func(t *testing.T) {
		w.put(comment("c1", change.Item{"tag": s("g1")}))
		from = w.drain(e, from)
		w.expectParked(e)
	})
}

func TestARetryAppliesWhatBecameGoodUnseen(t *testing.T) {
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
	e := w.seeded()
	w.put(comment("c1", change.Item{"score": s("high"), "userId": s("a#b")}))
	w.drain(e, 0)
	w.expectParked(e, "comment-author/POST#p1/COMMENT#c1", "comment-score/POST#p1/COMMENT#c1")
	w.put(comment("c1", change.Item{"score": change.Number("4"), "userId": s("u1")}))           // its record never arrives
	if err := e.RetryParked(w.ctx, parkedID("comment-author/POST#p1/COMMENT#c1")); err != nil { // brings the whole item up to date
		t.Fatal(err)
	}
	w.expectParked(e)
	w.expect(post1, "score", change.Number("4"))
	w.expect(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"}, "userName", s("Ann"))
}

func TestDiscardingForgetsWhatIsParked(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	w.put(comment("c1", change.Item{"score": s("high")}))
	w.drain(e, 0)
	if err := e.DiscardParked(w.ctx, parkedID("comment-score/POST#p1/COMMENT#c1")); err != nil {
		t.Fatal(err)
	}
	w.expectParked(e)
	for name, err := range map[string]error{"discard": e.DiscardParked(w.ctx, "no/such"), "retry": e.RetryParked(w.ctx, "no/such")} {
		if !errors.Is(err, inspect.ErrNotParked) {
			t.Errorf("%s of an unknown id: %v, want inspect.ErrNotParked", name, err)
		}
	}
}

func TestSumsAreExact(t *testing.T) {
	const huge = "12345678901234567890123456789012345678"
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	e := w.seeded()
	w.put(comment("c1", change.Item{"score": change.Number("0.1")}))
	w.put(comment("c2", change.Item{"score": change.Number("0.2")}))
	from := w.drain(e, 0)
	w.expect(post1, "score", change.Number("0.3"))
	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c1"})
	w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c2"})
	w.put(comment("c3", change.Item{"score": change.Number(huge)}))
	from = w.drain(e, from)
	w.expect(post1, "score", change.Number(huge))

	t.Run("what no number can hold parks that contribution alone", func(t *testing.T) {
		w.put(comment("c4", change.Item{"score": change.Number("0.5")}))
		w.put(comment("c5", change.Item{"score": change.Number("1")}))
		from = w.drain(e, from)
		w.expectParked(e, "comment-score/POST#p1/COMMENT#c4")
		w.expect(post1, "score", change.Number("12345678901234567890123456789012345679"))
		w.expect(post1, "commentCount", change.Number("3"))
	})
	t.Run("and it is counted once there is room", func(t *testing.T) {
		w.delete(change.Key{Partition: "POST#p1", Sort: "COMMENT#c3"})
		w.drain(e, from)
		if err := e.RetryParked(w.ctx, parkedID("comment-score/POST#p1/COMMENT#c4")); err != nil {
			t.Fatal(err)
		}
		w.expectParked(e)
		w.expect(post1, "score", change.Number("1.5"))
	})
}

func TestAProgramThatFightsForAnAttributeIsParkedAndRaisesTheAlarm(t *testing.T) {
	w := newWorld(t, socialRules)
	w.put(change.Item{"pk": s("POST#p1"), "sk": s("METADATA")})
	w.put(comment("c1", nil))
	w.seeded()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: w.set, HealsMax: 5})
	if err != nil {
		t.Fatal(err)
	}
	from := w.drain(e, 0)
	for range 20 {
		w.update(post1, change.Item{"commentCount": change.Number("99")})
		from = w.drain(e, from)
	}
	w.expect(post1, "commentCount", change.Number("99"))
	w.expectParked(e, "display:comment-count/POST#p1/METADATA")
	if heals := e.Stats().Heals; heals != 5 {
		t.Errorf("%d corrections, want 5", heals)
	}
	if err := e.RetryParked(w.ctx, parkedID("display:comment-count/POST#p1/METADATA")); err != nil {
		t.Fatal(err)
	}
	w.expect(post1, "commentCount", change.Number("1"))
	w.expectParked(e)
}

func TestARecordThatCannotBeReadIsParkedOnce(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	for range 2 {
		if err := e.ParkRecord(w.ctx, "2026-01-01T00:00:00.000#41", "record.value", "the number is none", []byte(`{"N":"x\xff"}`)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := e.FindParked(w.ctx, w.expectParked(e, "record/2026-01-01T00:00:00.000#41")[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if p.Rule != "record" || p.Code != "record.value" || !strings.HasPrefix(p.Raw, `{"N":"x`) {
		t.Errorf("parked is %+v", p)
	}
	if err := e.RetryParked(w.ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	w.expectParked(e, p.ID)
	if err := e.DiscardParked(w.ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	w.expectParked(e)
}
