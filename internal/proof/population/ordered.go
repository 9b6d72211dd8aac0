package population

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// orderedEach: beside so many rules that add up in a hundred stands one that shows some of the same items.
const orderedEach = 60

// ordered = { last: 2, of: Comment, as: Post.lastComment1, attributes: [text], order: createdAt }, or one of its like, beside a rule that
// adds up. It draws nothing, so that all else of the file stays.
func (g *grammar) ordered(source, target *entity, by, where string) {
	n := len(g.beside)
	h := fnv.New64a()
	fmt.Fprint(h, g.rules)
	pick := func(of int) int {
		sum := h.Sum64() ^ h.Sum64()>>32
		fmt.Fprint(h, of)
		return int(sum % uint64(of))
	}
	if pick(100) >= orderedEach {
		return
	}
	single := slices.DeleteFunc(source.readable(), severalValues)
	for _, v := range source.variables {
		single = append(single, attribute{name: v, sort: link})
	}
	numbers := ofSort(source.attributes, number)
	of := func() string {
		if len(numbers) > 0 && pick(3) > 0 {
			return named(numbers[pick(len(numbers))].name)
		}
		return named(single[pick(len(single))].name)
	}
	word := [...]string{"last", "max", "first", "min", "last", "first"}[pick(6)]
	as := fmt.Sprintf("%s%s%d", word, source.name, n+1)
	rest := []string{"of: " + source.name}
	what := word + ": '" + of() + "'"
	if word == "first" || word == "last" {
		shown := []string{inYAML(of())}
		if other := inYAML(of()); other != shown[0] {
			shown = append(shown, other)
		}
		if pick(2) == 0 {
			what = fmt.Sprintf("%s: %d", word, 1+pick(4))
			rest = append(rest, "as: "+target.name+"."+as, "attributes: ["+strings.Join(shown, ", ")+"]")
		} else {
			for i, name := range shown {
				shown[i] = inYAML(strings.ReplaceAll(fmt.Sprintf("%s as %s%c", name, as, 'a'+i), `"`, ""))
			}
			what = word + ": [" + strings.Join(shown, ", ") + "]"
			rest = append(rest, "to: "+target.name)
		}
		rest = append(rest, "order: "+inYAML(of()))
	} else {
		rest = append(rest, "as: "+target.name+"."+as)
	}
	fields := slices.DeleteFunc(append(append([]string{what}, rest...), g.each, by, where), func(f string) bool { return f == "" })
	g.beside = append(g.beside, fmt.Sprintf("  %s-beside-%d: { %s }\n", word, n+1, strings.Join(fields, ", ")))
}
