package oracle

import (
	"strings"

	"github.com/dynamill/dynamill/change"
)

// EffectsIn are the effects that a ledger entry has in force, by rule id, or by "@" and locator. What an effect is for stands behind
// its rule's id and a blank.
func EffectsIn(entry change.Item) map[string]string {
	effects := map[string]string{}
	for _, v := range entry["e"].List() {
		text := v.Text()
		id := text[:len(text)-len(strings.TrimLeft(text, digits))]
		effect := text[len(id):]
		switch {
		case strings.HasPrefix(text, "@"):
			id, effect, _ = strings.Cut(text, " ")
		case strings.HasPrefix(effect, " "):
			what, rest, _ := strings.Cut(effect[1:], " ")
			id, effect = id+" "+strings.ReplaceAll(strings.ReplaceAll(what, "%20", " "), "%25", "%"), rest
		}
		effects[id] = effect
	}
	return effects
}

// EffectsValue is how a ledger entry holds effects; absent if there is none.
func EffectsValue(effects map[string]string) change.Value {
	var texts []string
	for name, effect := range effects {
		id, what, several := strings.Cut(name, " ")
		switch {
		case several:
			id += " " + strings.ReplaceAll(strings.ReplaceAll(what, "%", "%25"), " ", "%20") + " "
		case strings.HasPrefix(id, "@"):
			id += " "
		}
		texts = append(texts, id+effect)
	}
	if len(texts) == 0 {
		return change.Value{}
	}
	return change.Set(change.KindStringSet, texts)
}
