package oracle

import (
	"slices"
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
			list, rest, _ := strings.Cut(effect[1:], " ")
			for _, what := range strings.Split(list, ",") {
				what = unescape.Replace(what)
				effects[id+" "+what] = strings.Replace(rest, common, what, 1)
				if rest != "" && rest[0] == ' ' {
					effects[id+" "+what] = rest[1:]
				}
			}
			continue
		}
		effects[id] = effect
	}
	return effects
}

// common stands for what an effect is for, in the text that it has in common with others. A text that holds it by itself has a
// blank before it instead.
const common = "${}"

var (
	escape   = strings.NewReplacer("%", "%25", " ", "%20", ",", "%2C")
	unescape = strings.NewReplacer("%25", "%", "%20", " ", "%2C", ",")
)

// EffectsValue is how a ledger entry holds effects; absent if there is none.
func EffectsValue(effects map[string]string) change.Value {
	var texts []string
	together := map[[2]string][]string{} // by id and what they have in common
	for name, effect := range effects {
		id, what, several := strings.Cut(name, " ")
		switch {
		case several:
			text := effect
			if at := strings.LastIndex(effect, what); at >= 0 {
				text = effect[:at] + common + effect[at+len(what):]
			}
			if strings.Contains(effect, common) || strings.Count(text, common) > 1 {
				text = " " + effect
			}
			together[[2]string{id, text}] = append(together[[2]string{id, text}], escape.Replace(what))
			continue
		case strings.HasPrefix(id, "@"):
			id += " "
		}
		texts = append(texts, id+effect)
	}
	for of, whats := range together {
		slices.Sort(whats)
		texts = append(texts, of[0]+" "+strings.Join(whats, ",")+" "+of[1])
	}
	if len(texts) == 0 {
		return change.Value{}
	}
	return change.Set(change.KindStringSet, texts)
}
