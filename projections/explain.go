package projections

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// Explanation says what one record means to a rule set.
type Explanation struct {
	Old, New  string // entity of each image; "" if there is none
	Unmatched bool   // neither image is of an entity
	Lines     []ExplainLine
}

// ExplainLine is one effect of a record.
type ExplainLine struct {
	Rule   string
	Effect string // what the record changes
	Write  string // what the engine would write, as far as the record alone can tell
}

// Explain plans one record as Process would on a table whose rules are all
// live and whose ledger holds what the old image says. It reads and writes nothing.
func Explain(set *rules.Set, rec change.Record) Explanation {
	ids := map[*rules.Rule]string{}
	for _, r := range set.Rules {
		ids[r] = r.Name
	}
	p := &plan.Planner{Bindings: plan.Bind(set, ids), Epoch: 1}
	x := Explanation{Old: entityOf(set, rec.Key, rec.Old), New: entityOf(set, rec.Key, rec.New)}
	x.Unmatched = x.Old == "" && x.New == ""
	pl := p.Plan([]change.Record{rec})
	if mv := pl.Moves.Of(rec.Key); mv != nil {
		for _, id := range mv.IDs() {
			x.Lines = append(x.Lines, explainMove(p, mv, id)...)
		}
	}
	for id := range plan.PartOf[mirrors.Changes](pl).Heals.All() {
		x.add(id.Binding, "its mirror item was written by somebody else or by the engine", "check "+id.Key.String()+" against the ledger, and restore it if it differs")
	}
	for id, f := range plan.PartOf[copies.Changes](pl).FanOuts.All() {
		x.add(id.Binding, fmt.Sprintf("%s changed", listed(id.Rule.Reads)), "set "+listed(id.Rule.Writes)+" on every "+id.Rule.Target.Name+" of "+id.Key.String()+goneNote(f))
	}
	for id, f := range plan.PartOf[copies.Changes](pl).Fills.All() {
		x.Lines = append(x.Lines, explainChild(id, f))
	}
	for g := range pl.Rollups.All() {
		x.add(g.Binding, "its display attribute was written by somebody else", rollUpNote(g))
	}
	slices.SortStableFunc(x.Lines, func(a, b ExplainLine) int {
		return slices.Compare([]string{a.Rule, a.Effect}, []string{b.Rule, b.Effect})
	})
	return x
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

func (x *Explanation) add(b *plan.Binding, effect, write string) {
	x.Lines = append(x.Lines, ExplainLine{b.Rule.Name, effect, write})
}

func goneNote(f *copies.FanOut) string {
	if f.Deleted {
		return ", which is gone"
	}
	return ""
}

func explainChild(id plan.ItemRule, f *copies.Fill) ExplainLine {
	line := ExplainLine{Rule: id.Rule.Name}
	switch {
	case f.Bad != nil:
		line.Effect, line.Write = "cannot name its parent: "+f.Bad.Reason, "park it ("+f.Bad.Code+")"
	case f.Gone:
		line.Effect, line.Write = "the child is gone", "drop its reference"
	case !f.Refers:
		line.Effect, line.Write = "refers to no parent", "take "+listed(id.Rule.Writes)+" off"
	default:
		line.Effect, line.Write = "refers to "+f.Parent.String(), "set "+listed(id.Rule.Writes)+" from it"
	}
	return line
}

func explainMove(p *plan.Planner, mv *plan.Move, id string) []ExplainLine {
	old, had := mv.Old[id]
	new, has := mv.New[id]
	if had && has && old.String() == new.String() {
		return nil
	}
	entity, _ := plan.LocatorIn(id)
	name := "unique " + entity
	if b := p.ByID(id); b != nil {
		name = b.Rule.Name
	}
	var lines []ExplainLine
	if had && !(has && new.Kind == old.Kind && new.Kind == plan.Mirrored && new.Target == old.Target) {
		lines = append(lines, ExplainLine{name, "takes back " + describe(old), undoNote(p, id, old)})
	}
	if has {
		lines = append(lines, ExplainLine{name, "asks for " + describe(new), redoNote(p, id, new)})
	}
	return lines
}

func describe(f plan.Effect) string {
	switch f.Kind {
	case plan.Contribution:
		return f.Amount.String() + " in " + f.Group
	case plan.Mirrored:
		return "mirror item " + f.Target.String()
	case plan.Located:
		return "being found as " + f.Value
	}
	return "nothing, being unreadable: " + f.Parked.Reason
}

func undoNote(p *plan.Planner, id string, f plan.Effect) string {
	switch f.Kind {
	case plan.Contribution:
		return rollUpNote(plan.GroupRef{Binding: p.ByID(id), Group: f.Group})
	case plan.Mirrored:
		return "delete " + f.Target.String()
	}
	return "clear it in the state table"
}

func redoNote(p *plan.Planner, id string, f plan.Effect) string {
	switch f.Kind {
	case plan.Contribution:
		return rollUpNote(plan.GroupRef{Binding: p.ByID(id), Group: f.Group})
	case plan.Mirrored:
		return "set " + listed(slices.Sorted(maps.Keys(f.Content))) + " on " + f.Target.String()
	case plan.Parked:
		return "park it (" + f.Parked.Code + ")"
	}
	return "write it to the state table"
}

func rollUpNote(g plan.GroupRef) string {
	target := g.Group
	if g.Rule.ByUnique {
		target = g.Rule.Target.Name + " with " + g.Rule.Target.Unique + " " + g.Group
	}
	return "roll up " + g.Rule.Writes[0] + " of " + target
}

func listed(names []string) string {
	text := ""
	for i, name := range names {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return text
}
