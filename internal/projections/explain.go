package projections

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Explanation says what one record means to a rule set.
type Explanation struct {
	Old       string        `json:"oldEntity,omitempty"` // of the old image; "" if there is none
	New       string        `json:"newEntity,omitempty"` // of the new image; "" if there is none
	Unmatched bool          `json:"unmatched"`           // neither image is of an entity
	Lines     []ExplainLine `json:"rules"`
	Stamps    []StampLine   `json:"stamps,omitempty"` // on the new image
}

// StampLine is what a stamp says.
type StampLine = explaining.StampLine

// ExplainLine is one effect of a record.
type ExplainLine struct {
	Rule   string `json:"rule"`
	Effect string `json:"effect"` // what the record changes
	Write  string `json:"write"`  // what the engine would write, as far as the record alone can tell
}

// Explain plans one record as Process would on a table whose rules are all
// live and whose ledger holds what the old image says. It reads and writes nothing.
func Explain(set *rules.Set, rec change.Record) Explanation { return explain(set, rec, true) }

// explain plans a record. foreign adds what mends another program's write of what the rules derive.
func explain(set *rules.Set, rec change.Record, foreign bool) Explanation {
	ids, taken := map[*rules.Rule]string{}, map[string]bool{}
	for _, r := range set.Rules {
		ids[r] = registry.FreeID(r.Name, taken) // as a new state table gives them
	}
	p := &plan.Planner{Bindings: plan.Bind(set, ids), Epoch: 1}
	x := Explanation{Old: entityOf(set, rec.Key, rec.Old), New: entityOf(set, rec.Key, rec.New), Lines: []ExplainLine{}}
	x.Unmatched = x.Old == "" && x.New == ""
	pl := p.Plan([]change.Record{rec})
	if mv := pl.Moves.Of(rec.Key); mv != nil {
		for _, k := range mv.Keys() {
			x.Lines = append(x.Lines, explainMove(p, mv, k)...)
		}
	}
	for _, r := range set.Rules {
		b := p.Of(r)
		if _, feeds := b.Family.(plan.Feeder); feeds && !foreign {
			continue // the move holds what an item asks for
		}
		b.Family.Explain(pl, b, func(effect, write string) {
			x.Lines = append(x.Lines, ExplainLine{r.Name, effect, write})
		})
	}
	if rec.New != nil {
		x.Stamps = explainStamps(p, rec.New)
	}
	slices.SortStableFunc(x.Lines, func(a, b ExplainLine) int {
		return slices.Compare([]string{a.Rule, a.Effect}, []string{b.Rule, b.Effect})
	})
	return x
}

// explainStamps reads the stamps on an image.
func explainStamps(p *plan.Planner, img change.Image) (lines []StampLine) {
	for _, b := range p.InForce {
		if s, ok := stamp.Parse(img.Lookup(b.Stamp)); ok {
			lines = append(lines, StampLine{Attribute: b.Stamp, Rule: b.Rule.Name, Says: s.Version.Words()})
		}
	}
	return lines
}

func entityOf(set *rules.Set, key change.Key, img change.Image) string {
	if img == nil {
		return ""
	}
	if m, ok := set.Identify(key, img); ok {
		return m.Entity.Name
	}
	return ""
}

func explainMove(p *plan.Planner, mv *plan.Move, k plan.EffectKey) []ExplainLine {
	old, had := mv.Old[k]
	new, has := mv.New[k]
	if had && has && old.String() == new.String() {
		return nil
	}
	name := p.NameOf(k.ID)
	var lines []ExplainLine
	if had {
		if w := p.WordsOf(k.ID, old); !has || w.Place == "" || w.Place != p.WordsOf(k.ID, new).Place {
			lines = append(lines, ExplainLine{name, "takes back " + w.What, w.Undo})
		}
	}
	if has {
		w := p.WordsOf(k.ID, new)
		lines = append(lines, ExplainLine{name, "asks for " + w.What, w.Redo})
	}
	return lines
}
