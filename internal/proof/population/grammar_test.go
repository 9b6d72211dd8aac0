package population

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

func source(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 11)) }

func TestNearlyEveryDraftIsAccepted(t *testing.T) {
	const drafts, most = 500, 100
	refused := 0
	for seed := range drafts {
		src := draft(source(seed), projections.Kinds)
		if _, err := rules.Load("draft", []byte(src), projections.Kinds); err != nil {
			refused++
			if refused <= 3 {
				t.Logf("refused draft %d:\n%s\n%v", seed, src, err)
			}
		}
	}
	t.Logf("%d of %d drafts refused", refused, drafts)
	if refused > most {
		t.Errorf("%d of %d drafts are refused, at most %d may be", refused, drafts, most)
	}
}

func TestDraftsAreOfAllKinds(t *testing.T) {
	const drafts = 500
	different := map[string]bool{}
	share := map[string]int{} // how many drafts have what
	var ruleTotal, entityTotal int
	for seed := range drafts {
		p, err := New("draft", draft(source(seed), projections.Kinds), projections.Kinds)
		if err != nil {
			continue
		}
		different[p.File] = true
		ruleTotal += len(p.Set.Rules)
		entityTotal += len(p.Set.Entities)
		if n := len(p.Set.Entities); n < 3 || n > entitiesMax {
			t.Errorf("draft %d has %d entities", seed, n)
		}
		if n := len(p.Set.Rules) - strings.Count(p.File, "-beside-"); n < rulesMin || n > rulesMax+ownMax+nestMax {
			t.Errorf("draft %d has %d rules", seed, n)
		}
		for what, yes := range traits(p) {
			if yes {
				share[what]++
			}
		}
	}
	if len(different) <= drafts*3/5 {
		t.Errorf("%d of %d drafts are different", len(different), drafts)
	}
	t.Logf("%d different, %.1f rules and %.1f entities on average", len(different), float64(ruleTotal)/drafts, float64(entityTotal)/drafts)
	for what, percent := range map[string]int{
		"each": 30, "each in a mirror": 15, "each in an aggregate": 15, "each of a derived list": 2, "each of a derived entity": 2,
		"tree": 10, "tree without a path": 1, "tree without ids": 1, "copy": 40, "mirror": 40, "count": 40, "sum": 40, "average": 15, "set": 25, "set in a chain": 10,
		"chain": 30, "long chain": 10, "copy of a mirror item": 5, "copy of a copy": 5, "copy of an aggregate": 5,
		"aggregate of mirror items": 10, "join by a derived value": 5,
		"write shards": 20, "where": 40, "if_missing": 20, "by unique": 15, "contested mirror": 20, "rest": 3,
		"no sort key": 5, "number key": 5, "match": 10, "type": 10, "a source of several": 50, "a target of several": 50, "to itself": 5,
		"letter case of a key": 15, "letter case of all keys": 4, "padded number": 12,
		"join by an expression": 10, "join by a bare name": 10, "by unique beside a whole key": 3,
		"unique on a mirror item": 10, "match on a mirror item": 10, "three of one key": 5, "told by the type alone": 3, "part of a part": 3,
		"derived": 10, "expire": 3,
	} {
		t.Logf("%-26s %3d%%", what, share[what]*100/drafts)
		if share[what]*100 <= percent*drafts {
			t.Errorf("%d of %d drafts have: %s; more than %d%% should", share[what], drafts, what, percent)
		}
	}
}

func (k *kind) hasVariable(name string) bool {
	return slices.ContainsFunc(k.variables, func(v variable) bool { return v.name == name })
}

// traits says what a rule set has of what the engine can stumble over.
func traits(p *Population) map[string]bool {
	has := map[string]bool{
		"no sort key": p.SortKind == change.KindAbsent,
		"number key":  p.PartitionKind == change.KindNumber || p.SortKind == change.KindNumber,
		"type":        p.Set.Table.TypeAttribute != "",
		"match":       strings.Contains(p.File, "match: "),
		"where":       strings.Contains(p.File, "where: "),
		"if_missing":  strings.Contains(p.File, "if_missing: "),
		"rest":        strings.Contains(p.File, "...}"),
		"derived":     strings.Contains(p.File, "derived: true"),
		"expire":      strings.Contains(p.File, "expire: "),

		"letter case of a key":    strings.Contains(p.File, ":lower}") || strings.Contains(p.File, ":upper}"),
		"letter case of all keys": strings.Contains(p.File, "case: "),
		"padded number":           strings.Contains(p.File, ":03}"),
	}
	writers := map[*rules.Entity]map[string]*rules.Rule{}
	for _, r := range p.Set.Rules {
		if writers[r.Target] == nil {
			writers[r.Target] = map[string]*rules.Rule{}
		}
		for _, name := range r.Writes {
			writers[r.Target][name] = r
		}
	}
	for _, e := range p.Set.Entities {
		if len(e.Sources)+len(e.Parents)+len(e.Own) > 1 {
			has["a source of several"] = true
		}
		if len(e.Displays)+len(e.Makers)+len(e.Children) > 1 {
			has["a target of several"] = true
		}
	}
	for i, k := range p.kinds {
		if len(k.entity.Makers) > 0 {
			has["unique on a mirror item"] = has["unique on a mirror item"] || k.entity.Unique != ""
			has["match on a mirror item"] = has["match on a mirror item"] || len(k.entity.Equals) > 0 && !has["type"] || len(k.entity.Equals) > 1
		}
		has["three of one key"] = has["three of one key"] || len(k.twins) > 1
		has["told by the type alone"] = has["told by the type alone"] || len(k.twins) > 0 && len(k.entity.Equals) == 1 && has["type"]
		has["part of a part"] = has["part of a part"] || len(k.variables) > 2 && slices.ContainsFunc(p.kinds[:i], func(whole *kind) bool {
			return len(whole.variables) == 2 && whole.variables[0].name == k.variables[0].name && whole.variables[1].name == k.variables[1].name
		})
	}
	for _, r := range p.Set.Rules {
		aggregate := r.Displays()
		mark := func(what string, when bool) { has[what] = has[what] || when }
		has[r.Kind.Word()] = true
		mark("each", r.Each.Given())
		mark("each in a mirror", r.Each.Given() && r.MakesItems() && !r.Derives())
		mark("each in an aggregate", r.Each.Given() && aggregate)
		mark("each of a derived entity", r.Each.Given() && r.Derives())
		mark("each of a derived list", r.Each.Given() && (writers[r.Source][r.Each.List] != nil))
		mark("chain", r.Level > 0)
		mark("set in a chain", r.WritesSource() && (r.Level > 0 || slices.ContainsFunc(p.Set.Rules, func(other *rules.Rule) bool {
			reads := func(name string) bool { return slices.Contains(other.Reads, name) }
			return other != r && other.Source == r.Target && slices.ContainsFunc(r.Writes, reads)
		})))
		mark("long chain", r.Level > 1)
		mark("write shards", r.Suffixes() > 1)
		mark("by unique", r.ByUnique)
		for _, by := range r.By {
			theirs := p.kinds[r.Target.Index]
			if r.HasParent() {
				theirs = p.kinds[r.Source.Index]
			}
			mark("join by an expression", by.Expression)
			mark("join by a bare name", by.Bare && by.Theirs != theirs.entity.Unique && !theirs.hasVariable(by.Theirs))
			mark("by unique beside a whole key", r.ByUnique && p.kinds[r.Source.Index].hasVariable(r.Target.Unique))
		}
		if nester, ok := r.Form.(rules.Nester); ok {
			_, path, lineage := nester.Nested()
			mark("tree without a path", path == "")
			mark("tree without ids", lineage == "")
		}
		mark("to itself", r.Source == r.Target)
		mark("contested mirror", r.MakesItems() && !r.Injective)
		mark("aggregate of mirror items", aggregate && len(r.Source.Makers) > 0)
		mark("copy of a mirror item", r.HasParent() && len(r.Source.Makers) > 0)
		for _, c := range r.Attributes {
			if w := writers[r.Source][c.From]; w != nil && r.HasParent() {
				mark("copy of a copy", w.HasParent())
				mark("copy of an aggregate", w.Displays())
			}
		}
		for _, name := range r.JoinReads {
			mark("join by a derived value", writers[r.Target][name] != nil)
		}
	}
	return has
}
