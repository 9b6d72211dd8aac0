package projections

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/pack"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// rowAttributes are all that rows of the state table hold.
var rowAttributes = []string{
	"a", "e", "rederived", "due", "item", "value", "members", "ops", "sources", "items", "changes", "child", "rule", "parent",
	"refill",
	"cursor", "children",
	"id", "code", "raw", "position", "parkedAt", "epoch", "incarnation", "live", "state", "writeShardsMax", "phase", "level", "last",
	"listed", "targets", "examples", "entity", "about", "all", "whole", "unique", "otherMissing", "otherExists", "since",
}

// FuzzStateRow reads any row of the state table as the audit, the sweep and the
// engine do. None of them may panic, whatever another program has written there.
func FuzzStateRow(f *testing.F) {
	for _, key := range [][2]string{
		{"i/USER#u1/GROUP#g1", "e"}, {"i/a~" + strings.Repeat("0", 64), "e"},
		{"sum/" + idOf("member-count") + "/GROUP#g1%2FMETADATA/0", "a"},
		{"claims/" + idOf("by-code") + "/CODE#1", "claims"}, {"locator/Folder/p", "locator"}, {"i/DOC#1", "e"},
		{"sum/" + idOf("in-folder") + "/p/0", "a"},
		{"ref/" + idOf("comment-author") + "/USER#u1/PROFILE", "POST#p1/COMMENT#c1"},
		{"parent/" + idOf("comment-author") + "/USER#u1/PROFILE", "position"}, {"tasks", idOf("comment-author") + "/USER#u1/PROFILE"},
		{"tasks", "refill/" + idOf("comment-author") + "/USER#u1/PROFILE"},
		{"parked", idOf("comment-author") + "/POST#p1/COMMENT#c1"}, {"parked", "record/1"}, {"parked", "contested:@Folder/p"},
		{"parked", "contested:" + idOf("by-code") + "/CODE#1"}, {"missing", idOf("member-count")}, {"registry", "table"}, {"registry", "seeding"},
		{"registry", "rule/" + idOf("member-count")}, {"sum/", ""}, {"", ""},
	} {
		for seed := range uint64(3) {
			f.Add(key[0], key[1], "0-", idOf("member-count"), "*GROUP#g1/METADATA", seed)
			f.Add(key[0], key[1], "-1", idOf("comment-author"), "USER#u1/PROFILE", seed)
		}
	}
	social, socialEngine := auditOfNothing(f, socialRules)
	odd, oddEngine := auditOfNothing(f, oddRules)
	f.Fuzz(func(t *testing.T, pk, sk, x, y, z string, seed uint64) {
		item := drawRow(rand.New(rand.NewPCG(seed, 1)), []string{x, y, z})
		item["pk"], item["sk"] = change.String(pk), change.String(sk)
		r := attributes.ItemToTable(item)
		judgeRow(social, socialEngine, item)
		readRow(social, socialEngine, r)
		judgeRow(odd, oddEngine, item)
		readRow(odd, oddEngine, r)
	})
}

// judgeRow judges what is suspect in a row while all else is absent.
func judgeRow(a *audits.Audit, e *Engine, item change.Item) {
	every := func(*plan.Binding) bool { return true }
	audited := &auditing.Table{Tables: e.tables, Auditor: audit.New(e.planner, audit.Scope{Rules: every, Shown: every, Formers: true})}
	r := attributes.ItemToTable(item)
	for _, sus := range suspectsOf(a, item) {
		found := audited.NewEvidence()
		found.Rows[table.KeyOf(r)] = r
		found.Parkings(&drift.Reading{Suspect: sus}, drift.Finding{})
		found.Judge(sus)
	}
}

// auditOfNothing is an audit of two empty tables, and their engine.
func auditOfNothing(t testing.TB, file string) (*audits.Audit, *Engine) {
	w := newWorld(t, file)
	e := w.seeded()
	a, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: loadRules(t, file)})
	if err != nil {
		t.Fatal(err)
	}
	return a, e
}

// drawRow makes a row of some texts, each as a value of some kind.
func drawRow(r *rand.Rand, texts []string) change.Item {
	row := change.Item{}
	for _, name := range rowAttributes {
		text := texts[r.IntN(len(texts))]
		switch r.IntN(8) {
		case 0, 1, 2:
			row[name] = change.String(text)
		case 3:
			row[name] = change.Number(text)
		case 4:
			row[name] = change.Set(change.KindStringSet, texts)
		case 5:
			row[name] = change.Map(map[string]change.Value{texts[0]: change.String(texts[1]), text: change.Number(texts[2])})
		case 6:
			row[name] = change.Bool(true)
		}
	}
	return row
}

// suspectsOf are the suspects in what a row says, and in the absence of all else.
func suspectsOf(a *audits.Audit, row change.Item) []drift.Suspect {
	var facts []drift.Fact
	a.RowFacts(row, func(f drift.Fact) { facts = append(facts, f) })
	a.Facts(row, func(f drift.Fact) { facts = append(facts, f) })
	slices.SortFunc(facts, func(x, y drift.Fact) int {
		return cmp.Or(cmp.Compare(x.About, y.About), cmp.Compare(x.Sub, y.Sub), cmp.Compare(x.Tag, y.Tag))
	})
	var all []drift.Suspect
	add, end := a.Judge(func(s drift.Suspect) { all = append(all, s) })
	for _, f := range facts {
		a.Combine(f.About, f.Tag, f.Data, f.Data)
		add(f)
	}
	end()
	return all
}

// readContested reads a row of a contested target, and a row that may be its set.
func readContested(e *Engine, r table.Row, target audit.ContestedTarget) {
	state.SetKey(target)
	target.RowID()
	for _, locator := range []bool{false, true} {
		host.ContentionReason(target, state.ReadSet(r, locator).Sources)
	}
}

// readRow reads a row as the engine does in all its parts.
func readRow(a *audits.Audit, e *Engine, r table.Row) {
	item := attributes.ItemFromTable(r)
	a.Contributions(item, func(drift.Amount) {})
	e.sweep.Classify([]change.Key{{Partition: item["pk"].Text(), Sort: item["sk"].Text()}})
	state.EntryItem(r)
	state.ReferenceChild(r)
	state.ReadTask(e.tables.Reader, e.planner, r)
	e.planner.NameOf(state.ReadParked(r).Rule)
	if target, ok := audit.ReadContested(item); ok {
		readContested(e, r, target)
	}
	state.ReadMissing("", r)
	state.ReadCursor(e.tables.Reader, e.planner, r)
	_ = state.CheckRegistry("state", r, map[string]table.Row{table.TextOf(r[table.SK]): r})
	state.ReadTable(r)
	state.ReadRule(r)
	if ent, err := state.ReadEntry(e.planner, r); err == nil && ent != nil {
		key := change.ParseKey(strings.TrimPrefix(item["pk"].Text(), state.EntryPrefix))
		mv := e.planner.MoveFrom(key, ent, nil, plan.Itself, plan.Late{})
		_, _ = e.ledger.Transaction(context.Background(), pack.Of(e.planner, []*plan.Move{mv})[0], 0)
	}
	for _, rule := range e.planner.Set.Rules {
		b := e.planner.Of(rule)
		state.SeenAt(b, r)
	}
	audit.TornSet(item)
	audit.TornTask(e.planner, item)
}
