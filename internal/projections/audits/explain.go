package audits

import (
	"context"
	"errors"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Explanation says what one record means to a rule set.
type Explanation struct {
	Old       string      `json:"oldEntity,omitempty"` // of the old image; "" if there is none
	New       string      `json:"newEntity,omitempty"` // of the new image; "" if there is none
	Unmatched bool        `json:"unmatched"`           // neither image is of an entity
	Lines     []Line      `json:"rules"`
	Stamps    []StampLine `json:"stamps,omitempty"` // on the new image
}

// StampLine is what a stamp says.
type StampLine = explaining.StampLine

// Line is one effect of a record.
type Line struct {
	Rule   string `json:"rule"`
	Effect string `json:"effect"` // what the record changes
	Write  string `json:"write"`  // what the engine would write, as far as the record alone can tell
}

// Explain plans one record as on a table whose rules are all live and whose ledger holds what the old image says.
func Explain(set *rules.Set, rec change.Record) Explanation { return explain(set, rec, true) }

// explain plans a record. foreign adds what mends another program's write of what the rules derive.
func explain(set *rules.Set, rec change.Record, foreign bool) Explanation {
	ids, taken := map[*rules.Rule]string{}, map[string]bool{}
	for _, r := range set.Rules {
		ids[r] = registry.FreeID(r.Name, taken) // as a new state table gives them
	}
	p := &plan.Planner{Bindings: plan.Bind(set, ids), Epoch: 1}
	x := Explanation{Lines: []Line{}}
	if old := p.MatchOf(rec.Key, rec.Old).Entity; old != nil {
		x.Old = old.Name
	}
	if new := p.MatchOf(rec.Key, rec.New).Entity; new != nil {
		x.New = new.Name
	}
	x.Unmatched = x.Old == "" && x.New == ""
	pl := p.Plan([]change.Record{rec}, nil)
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
			x.Lines = append(x.Lines, Line{r.Name, effect, write})
		})
	}
	for _, b := range p.InForce {
		if rec.New == nil {
			break
		}
		if s, ok := stamp.Parse(rec.New.Lookup(b.Stamp)); ok {
			x.Stamps = append(x.Stamps, StampLine{Attribute: b.Stamp, Rule: b.Rule.Name, Says: s.Version.Words()})
		}
	}
	slices.SortStableFunc(x.Lines, func(a, b Line) int {
		return slices.Compare([]string{a.Rule, a.Effect}, []string{b.Rule, b.Effect})
	})
	return x
}

func explainMove(p *plan.Planner, mv *plan.Move, k effects.Key) []Line {
	old, had := mv.Old[k]
	new, has := mv.New[k]
	if had && has && old.String() == new.String() {
		return nil
	}
	name := p.NameOf(k.ID)
	var lines []Line
	if had {
		if w := p.WordsOf(k.ID, old); !has || w.Place == "" || w.Place != p.WordsOf(k.ID, new).Place {
			lines = append(lines, Line{name, "takes back " + w.What, w.Undo})
		}
	}
	if has {
		w := p.WordsOf(k.ID, new)
		lines = append(lines, Line{name, "asks for " + w.What, w.Redo})
	}
	return lines
}

// KeyExplanation says what both tables hold of one item.
type KeyExplanation struct {
	Key    string      `json:"key"`
	Exists bool        `json:"exists"`
	Entity string      `json:"entity,omitempty"` // "" if there is no item, or it is of none
	Made   bool        `json:"made"`             // the engine made the item
	Stamps []StampLine `json:"stamps"`
	Rows   []RowLine   `json:"rows"`
	Lines  []Line      `json:"rules"` // what an insertion of the item as it is would cause
}

// RowLine is one thing that a row of the state table says.
type RowLine = explaining.RowLine

// ErrKeyImpossible is returned for a key under which the table can hold no item.
var ErrKeyImpossible = errors.New("the table cannot hold an item under this key: a part of it is empty, too long or not UTF-8, " +
	"or is no number although the table's is one")

// ExplainKey reads what both tables hold of an item, one after another, without a scan, and writes nothing.
func (a *Audit) ExplainKey(ctx context.Context, key change.Key) (KeyExplanation, error) {
	key, ok := a.tables.NormalizeKey(key)
	if !ok {
		return KeyExplanation{}, ErrKeyImpossible
	}
	it, err := (&explaining.Explainer{Planner: a.planner, Reader: a.tables.Reader}).Read(ctx, key)
	if err != nil {
		return KeyExplanation{}, err
	}
	x := KeyExplanation{
		Key: key.String(), Exists: it.Image != nil, Made: plan.IsMade(key, it.Image), Stamps: it.Stamps, Rows: it.Rows, Lines: []Line{},
	}
	if x.Exists {
		asked := explain(a.planner.Set, change.Record{Key: key, New: it.Image}, false)
		x.Entity, x.Lines = asked.New, asked.Lines
	}
	return x, nil
}
