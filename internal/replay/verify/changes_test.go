package verify_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/tablescan"
)

func newClub(t *testing.T) *world {
	t.Helper()
	p, err := population.New("club", clubRules, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, p, 1)
	for _, it := range []change.Item{
		texts("pk", "USER#1", "sk", "PROFILE", "name", "Ada"), texts("pk", "USER#2", "sk", "PROFILE", "name", "Bob"),
		texts("pk", "GROUP#a", "sk", "METADATA"), texts("pk", "GROUP#b", "sk", "METADATA"),
		texts("pk", "USER#1", "sk", "GROUP#a", "role", "x"), texts("pk", "USER#2", "sk", "GROUP#a", "role", "x"),
		texts("pk", "USER#1", "sk", "GROUP#b", "role", "x"),
	} {
		w.put("app", it)
	}
	return w
}

func (w *world) rows() verify.Table {
	return &tablescan.Table{Client: w.sim, TableName: "app-dynamill"}
}

// become gives the world another rule file.
func (w *world) become(file string) {
	w.t.Helper()
	p, err := population.New("club", file, projections.Kinds)
	w.must(err)
	w.p = p
}

// ahead foresees what bringing the rules into force would change.
func (w *world) ahead(rows verify.Table) (map[string]int, *verify.Summary) {
	w.t.Helper()
	a, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: loadSet(w.t, w.p), Ahead: true})
	w.must(err)
	found := map[string]int{}
	summary, err := verify.Run(w.ctx, verify.Config{
		Auditor: a, Ahead: true, Items: &tablescan.Table{Client: w.sim, TableName: "app"}, Rows: rows, TempDir: w.t.TempDir(),
		Found: func(r verify.Result) error { found[r.Rule+": "+string(r.What)+" "+string(r.Kind)]++; return nil },
	})
	w.must(err)
	return found, summary
}

func TestRulesThatAreNotInForceCanBeForeseen(t *testing.T) {
	w := newClub(t)
	if _, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: loadSet(t, w.p)}); err == nil {
		t.Error("without a state table nothing is in force, and nobody says so")
	}
	found, summary := w.ahead(nil) // there is no state table
	for what, n := range map[string]int{
		"member-list: missing mirror item": 3, "member-list: missing ledger entry": 3, "member-count: missing ledger entry": 3,
		"member-count: missing displayed value": 2, "member-count: wrong accumulator": 2,
	} {
		if found[what] != n {
			t.Errorf("%s: %d, want %d", what, found[what], n)
		}
		delete(found, what)
	}
	if len(found) > 0 || summary.WriteUnits == 0 {
		t.Errorf("foreseen, too: %v, for %v write units", found, summary.WriteUnits)
	}
	w.follow()
	w.expectRight("in force")
	if found, _ := w.ahead(w.rows()); len(found) > 0 {
		t.Errorf("nothing is left to do, but: %v", found)
	}
}

func TestRowsOfFormerRulesAreSurplus(t *testing.T) {
	w := newClub(t)
	w.follow()
	without := strings.Split(clubRules, "  member-name:")[0] + "  members: { count: Membership, as: Group.members }\n"
	w.become(without)
	_, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: loadSet(t, w.p)})
	if changed := new(projections.RulesChangedError); !errors.As(err, &changed) {
		t.Errorf("rules in force that the file changes: %v", err)
	}
	found, _ := w.ahead(w.rows())
	for what, n := range map[string]int{
		"member-name: surplus leftover": 3, "member-count: surplus leftover": 2, "member-count: surplus ledger entry": 3,
		"members: missing ledger entry": 3, "members: wrong accumulator": 2, "members: missing displayed value": 2,
	} {
		if found[what] != n {
			t.Errorf("%s: %d, want %d (%v)", what, found[what], n, found)
		}
	}
	_, err = projections.OpenChanging(w.ctx, w.engineConfig(), projections.AnyEpoch)
	w.must(err)
	if found, _ := w.verify(false); len(found) > 0 {
		t.Errorf("what is still being brought into force was judged: %s", text(found[0]))
	}
	w.follow()
	w.expectRight("under the new rules")

	for _, it := range w.scan("app") { // a leftover, by hand
		if it["pk"].Text() == "GROUP#a" && it["sk"].Text() == "METADATA" {
			it["memberCount"] = change.Number("7")
			it[stampName("member-count")] = stampOver(change.Number("7"))
			w.put("app", it)
		}
	}
	w.lose()
	if found, _ := w.verify(false); len(found) != 1 || found[0].Kind != drift.Leftover {
		t.Errorf("a leftover: %v", found)
	}
	w.verify(true)
	w.expectRight("after the repair")
}

func TestRulesThatChangeMeanwhileEndTheVerification(t *testing.T) {
	w := newClub(t)
	w.follow()
	a := w.audit()
	w.become(clubRules + "  more: { count: Membership, as: Group.more }\n")
	w.engine()
	w.put("app", texts("pk", "USER#9", "sk", "GROUP#a", "role", "x"))
	_, err := verify.Run(w.ctx, verify.Config{
		Auditor: a, Items: &tablescan.Table{Client: w.sim, TableName: "app"}, Rows: &tablescan.Table{Client: w.sim, TableName: "app-dynamill"},
		TempDir: t.TempDir(),
		Found:   func(r verify.Result) error { t.Errorf("judged by old rules: %s", text(r)); return nil },
	})
	if !errors.Is(err, projections.ErrEpochMoved) {
		t.Errorf("ended with %v", err)
	}
}

func TestASampleJudgesSumsWhole(t *testing.T) {
	w := newClub(t)
	w.follow()
	for seed := range uint64(40) {
		found, summary := w.verify(false, func(cfg *verify.Config) { cfg.Sample, cfg.SampleSeed = 0.5, seed })
		if len(found) > 0 || summary.Suspects > 0 {
			t.Fatalf("seed %d: %v, %+v", seed, found, summary)
		}
	}
}

func TestRulesThatChangeMeanwhileAreNoticedWhereOnlyAParkedEffectIsMissing(t *testing.T) {
	w := forum(t)
	bad := comment("7", "1", "red")
	bad["points"] = change.String("many")
	w.put("app", bad)
	w.follow()
	w.damage(spoilt{state, "i/COMMENT#7", "", func(_ *world, it change.Item) {
		effects := oracle.EffectsIn(it)
		delete(effects, oracle.RuleID("points"))
		hasEffects(it, effects)
	}})
	w.lose()
	if found, _ := w.verify(false); len(found) != 1 {
		t.Fatalf("%d found, 1 is wanted: a parked effect that the ledger lacks", len(found))
	}
	a := w.audit()
	w.become(forumRules + "  more: { count: Membership, as: Group.more }\n")
	w.engine()
	_, err := verify.Run(w.ctx, verify.Config{
		Auditor: a, Items: &tablescan.Table{Client: w.sim, TableName: "app"}, Rows: w.rows(), TempDir: t.TempDir(), Settle: time.Millisecond,
		Found: func(r verify.Result) error { t.Errorf("judged by old rules: %s", text(r)); return nil },
	})
	if !errors.Is(err, projections.ErrEpochMoved) {
		t.Errorf("ended with %v", err)
	}
}

// TestAttributesOfManyItemsAreForeseen foresees rules that show some of the members of each group: what is shown, and the units. Only a
// roll-up can tell which value it is.
func TestAttributesOfManyItemsAreForeseen(t *testing.T) {
	w := newClub(t)
	w.follow()
	w.put("app", texts("pk", "GROUP#a", "sk", "METADATA", "highest", "y", "newest", "by hand"))
	w.follow()
	w.become(clubRules + "  highest: { max: role, of: Membership, as: Group.highest }\n" +
		"  newest: { last: 1, of: Membership, as: Group.newest, attributes: [missing], order: role }\n")
	found, summary := w.ahead(w.rows())
	for what, n := range map[string]int{
		"highest: missing ledger entry": 3, "newest: missing ledger entry": 3, "highest: wrong accumulator": 2, "newest: wrong accumulator": 2,
		"highest: wrong displayed value": 1, "highest: missing displayed value": 1,
		"newest: wrong displayed value": 1, "newest: missing displayed value": 1,
	} {
		if found[what] != n {
			t.Errorf("%s: %d, want %d", what, found[what], n)
		}
		delete(found, what)
	}
	if units := 6*6 + 4*2 + 4*1; len(found) > 0 || summary.WriteUnits != float64(units) {
		t.Errorf("foreseen, too: %v, for %v write units, want %d", found, summary.WriteUnits, units)
	}
	w.follow()
	w.expectRight("in force")
	if found, _ := w.ahead(w.rows()); len(found) > 0 {
		t.Errorf("nothing is left to do, but: %v", found)
	}
}
