package plan

import "strings"

// WordsOf tell people of an effect of a rule or a locator.
func (p *Planner) WordsOf(id string, f Effect) Words {
	switch b := p.ByID(id); {
	case f.Kind == Located:
		return Words{What: "being found as " + f.Value, Undo: "clear it in the state table", Redo: "write it to the state table"}
	case f.Kind == Parked:
		return Words{What: "nothing, being unreadable: " + f.Parked.Reason, Undo: "clear it in the state table",
			Redo: "park it (" + f.Parked.Code + ")"}
	default:
		return b.Family.Words(b, f)
	}
}

// Listed names attributes in a sentence.
func Listed(names []string) string { return strings.Join(names, ", ") }
