package projections

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
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
	p := &planner{bindings: bind(set, ids), epoch: 1}
	x := Explanation{Old: entityOf(set, rec.Key, rec.Old), New: entityOf(set, rec.Key, rec.New)}
	x.Unmatched = x.Old == "" && x.New == ""
	pl := p.plan([]change.Record{rec})
	if mv := pl.moves.of(rec.Key); mv != nil {
		for _, id := range mv.ids() {
			x.Lines = append(x.Lines, explainMove(p, mv, id)...)
		}
	}
	for id := range pl.heals.all() {
		x.add(id.b, "its mirror item was written by somebody else or by the engine", "check "+id.key.String()+" against the ledger, and restore it if it differs")
	}
	for id, f := range pl.parents.all() {
		x.add(id.b, fmt.Sprintf("%s changed", listed(id.b.rule.Reads)), "set "+listed(id.b.rule.Writes)+" on every "+id.b.rule.Target.Name+" of "+id.key.String()+goneNote(f))
	}
	for id, f := range pl.children.all() {
		x.Lines = append(x.Lines, explainChild(id, f))
	}
	for g := range pl.rollups.all() {
		x.add(g.b, "its display attribute was written by somebody else", rollUpNote(g))
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

func (x *Explanation) add(b *binding, effect, write string) {
	x.Lines = append(x.Lines, ExplainLine{b.rule.Name, effect, write})
}

func goneNote(f *fanOut) string {
	if f.deleted {
		return ", which is gone"
	}
	return ""
}

func explainChild(id itemRule, f *fill) ExplainLine {
	line := ExplainLine{Rule: id.b.rule.Name}
	switch {
	case f.bad != nil:
		line.Effect, line.Write = "cannot name its parent: "+f.bad.Reason, "park it ("+f.bad.Code+")"
	case f.gone:
		line.Effect, line.Write = "the child is gone", "drop its reference"
	case !f.refers:
		line.Effect, line.Write = "refers to no parent", "take "+listed(id.b.rule.Writes)+" off"
	default:
		line.Effect, line.Write = "refers to "+f.parent.String(), "set "+listed(id.b.rule.Writes)+" from it"
	}
	return line
}

func explainMove(p *planner, mv *move, id string) []ExplainLine {
	old, had := mv.old[id]
	new, has := mv.new[id]
	if had && has && old.String() == new.String() {
		return nil
	}
	name := "unique " + id[min(len(id), len(locatorPrefix)):]
	if b := p.byID[id]; b != nil {
		name = b.rule.Name
	}
	var lines []ExplainLine
	if had && !(has && new.kind == old.kind && new.kind == mirrored && new.target == old.target) {
		lines = append(lines, ExplainLine{name, "takes back " + describe(old), undoNote(p, id, old)})
	}
	if has {
		lines = append(lines, ExplainLine{name, "asks for " + describe(new), redoNote(p, id, new)})
	}
	return lines
}

func describe(f effect) string {
	switch f.kind {
	case contribution:
		return f.amount.String() + " in " + f.group
	case mirrored:
		return "mirror item " + f.target.String()
	case located:
		return "being found as " + f.value
	}
	return "nothing, being unreadable: " + f.parked.Reason
}

func undoNote(p *planner, id string, f effect) string {
	switch f.kind {
	case contribution:
		return rollUpNote(groupRef{p.byID[id], f.group})
	case mirrored:
		return "delete " + f.target.String()
	}
	return "clear it in the state table"
}

func redoNote(p *planner, id string, f effect) string {
	switch f.kind {
	case contribution:
		return rollUpNote(groupRef{p.byID[id], f.group})
	case mirrored:
		return "set " + listed(slices.Sorted(maps.Keys(f.mirror.Attributes))) + " on " + f.target.String()
	case parked:
		return "park it (" + f.parked.Code + ")"
	}
	return "write it to the state table"
}

func rollUpNote(g groupRef) string {
	target := g.group
	if g.b.rule.ByUnique {
		target = g.b.rule.Target.Name + " with " + g.b.rule.Target.Unique + " " + g.group
	}
	return "roll up " + g.b.rule.Writes[0] + " of " + target
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
