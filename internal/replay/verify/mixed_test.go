package verify_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

const commentRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comment-count: { count: Comment, as: Post.commentCount }
  user-comments: { count: Comment, as: User.commentCount, by: userId }
`

// between has something happen after entries were judged, and before sums are.
type between struct {
	*audits.Audit
	do func()
}

func (b *between) Operations(ctx context.Context, s []drift.Suspect) ([]int64, error) {
	if b.do != nil {
		b.do()
		b.do = nil
	}
	return b.Audit.Operations(ctx, s)
}

// forgetEffect takes one contribution out of a ledger entry, by hand.
func (w *world) forgetEffect(row change.Item, id string) {
	effects := oracle.EffectsIn(row)
	delete(effects, id)
	hasEffects(row, effects)
	w.put("app-dynamill", row)
}

// hasEffects gives a ledger entry other effects; one without any expires.
func hasEffects(row change.Item, effects map[string]string) {
	row["e"] = oracle.EffectsValue(effects)
	if len(effects) == 0 {
		delete(row, "e")
		row["ttl"] = change.Number("9999999999")
	}
}

func TestALagOfAWrongEntryIsNoDriftOfItsSums(t *testing.T) {
	p, err := population.New("comments", commentRules, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, p, 1)
	w.put("app", texts("pk", "USER#A", "sk", "PROFILE"))
	w.put("app", texts("pk", "USER#B", "sk", "PROFILE"))
	w.put("app", texts("pk", "POST#1", "sk", "METADATA"))
	w.put("app", texts("pk", "POST#1", "sk", "COMMENT#1", "userId", "A"))
	w.put("app", texts("pk", "POST#1", "sk", "COMMENT#2", "userId", "B"))
	w.follow()
	for _, row := range w.scan("app-dynamill") { // true drift: comment 1 is not counted for its post
		if strings.Contains(row["pk"].Text(), "COMMENT#1") {
			w.forgetEffect(row, oracle.RuleID("comment-count"))
		}
		if strings.HasPrefix(row["pk"].Text(), "sum/"+oracle.RuleID("comment-count")+"/") { // which keeps the entry of interest
			row["value"] = change.Number("7")
			w.put("app-dynamill", row)
		}
	}
	c := &consumer{world: w}
	w.must(w.stream().Unapplied(w.ctx, verify.Applied{}, func(*change.Record) error { c.done++; return nil }))
	w.put("app", texts("pk", "POST#1", "sk", "COMMENT#3", "userId", "B")) // and this is lag
	found, _ := w.verify(false, func(cfg *verify.Config) {
		cfg.Pending = c
		cfg.Auditor = &between{w.audit(), func() { w.put("app", texts("pk", "POST#1", "sk", "COMMENT#1", "userId", "B")) }}
	})
	if len(found) == 0 {
		t.Error("the wrong entry was not found")
	}
	for _, f := range found {
		if strings.HasPrefix(f.Group, "USER#") {
			t.Errorf("only lag: %s", text(f))
		}
	}
}

// aggregate is what a finding of a sum, or of what displays it, is about; id is its rule's.
func aggregate(id, group string) string { return id + " " + group }

// wound takes contributions out of some entries, and returns their items and aggregates.
func (w *world) wound(r *rand.Rand, n int) (items map[string]bool, sums map[string]bool) {
	items, sums = map[string]bool{}, map[string]bool{}
	for _, row := range w.scan("app-dynamill") {
		item, isEntry := strings.CutPrefix(row["pk"].Text(), "i/")
		effects := oracle.EffectsIn(row)
		for _, id := range slices.Sorted(maps.Keys(effects)) {
			effect := effects[id]
			rule, _, _ := strings.Cut(id, " ") // what the effect is for comes after it
			_, group, _ := strings.Cut(effect, " ")
			if one, ok := strings.CutPrefix(effect, "*"); ok {
				group = one
			}
			if isEntry && strings.ContainsAny(effect[:1], "+*") && len(items) < n && r.IntN(3) == 0 {
				items[item], sums[aggregate(rule, group)] = true, true
				w.forgetEffect(row, id)
				break
			}
		}
	}
	return items, sums
}

func TestNothingIsDriftThatIsOnlyLagBesideTrueDrift(t *testing.T) {
	var drifted atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range 30 {
			t.Run(fmt.Sprint(seed), inBubble(func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), 11))
				p := population.Draw(r, projections.Kinds)
				w := newWorld(t, p, uint64(seed))
				w.live(80)
				w.follow()
				items, sums := w.wound(r, 4)
				c := &consumer{world: w}
				w.must(w.stream().Unapplied(w.ctx, verify.Applied{}, func(*change.Record) error { c.done++; return nil }))
				vary := func() { // what is wrong is written, too, and lags
					for _, it := range w.scan("app") {
						if items[p.Key(it).String()] {
							w.put("app", p.Vary(w.r, it))
						}
					}
				}
				for round := range 4 {
					found, _ := w.verify(false, func(cfg *verify.Config) { cfg.Pending, cfg.Auditor = c, &between{w.audit(), vary} })
					for _, f := range found {
						drifted.Add(1)
						if f.Kind == drift.Entry && items[f.Item.String()] || (f.Kind == drift.Sum || f.Kind == drift.Display) &&
							sums[aggregate(oracle.RuleID(f.Rule), f.Group)] {
							continue
						}
						t.Errorf("round %d, only lag: %s", round, text(f))
					}
					w.live(1 + r.IntN(20))
					c.step(r)
				}
				if t.Failed() {
					t.Fatal(p.File)
				}
			}))
		}
	})
	if drifted.Load() < 30 {
		t.Errorf("only %d findings: the test shows nothing", drifted.Load())
	}
}
