package population

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules"
)

// Bounds of a drawn rule file.
const (
	rulesMin, rulesMax = 3, 8
	entitiesMax        = 6
	triesMax           = 30 // of one rule: not every sentence fits every pair of entities
	ownMax             = 2  // rules beyond rulesMax that read and write one entity
	nestMax            = 4  // rules beyond these, of a tree and what follows it
	nestPercent        = 25 // of the files have a tree
	ownPercent         = 7  // so often in a hundred, a rule that reads and writes one entity stands before another rule
)

// grammar draws one rule file, from the left to the right:
//
//	file   = table noun noun branch { branch } [ twins ] rule { rule } [ nest ]
//	branch = part | edge
//	rule   = copy | mirror | derive | count | adder | own
//
// A rule reads only what was there before it and writes only under new names,
// so that rules never feed each other in a circle and no attribute has two
// writers; that a later rule reads what an earlier one wrote is what makes chains.
type grammar struct {
	r        *rand.Rand
	layout   layout
	typed    bool // items carry their entity's name
	entities []*entity
	rules    []string // as lines of the file
	adders   []string
	element  attribute // that the rule takes of a list; without a name, if it takes none
	each     string    // as the rule has it
	beside   []string  // rules on which nothing else of the file depends
}

// draft draws the text of a rule file.
func draft(r *rand.Rand, kinds []rules.Kind) string {
	g := &grammar{r: r, layout: drawLayout(r), adders: adders(kinds)}
	g.typed = g.chance(25)
	g.noun()
	g.noun()
	for range 1 + r.IntN(2) {
		if g.chance(60) {
			g.part()
		} else {
			g.edge()
		}
	}
	if g.chance(35) {
		g.twins()
	}
	want := rulesMin + r.IntN(rulesMax-rulesMin+1)
	most := want + ownMax
	for try := 0; len(g.rules) < want && try < triesMax; try++ {
		if before := len(g.rules); want < most && g.chance(ownPercent) {
			g.own(g.source())
			want += len(g.rules) - before
		}
		g.rule()
	}
	g.nest()
	return g.String()
}

// rule adds one rule, or none where what it drew does not go together.
func (g *grammar) rule() {
	g.element, g.each = attribute{}, ""
	switch n := g.r.IntN(10); {
	case n < 3:
		g.copy(g.source(), g.any())
	case n < 5:
		g.mirror(g.source())
	case n == 7 && len(g.rules)%4 == 1:
		g.derive(g.source())
	case n < 8:
		g.count(g.source(), g.any())
	default:
		g.adder(g.adderWord(n), g.source(), g.any())
	}
}

// adders are the kinds of rules that add up an amount of each source, all with the same keys.
func adders(kinds []rules.Kind) (words []string) {
	for _, k := range kinds {
		if len(k.Traits().Expressions) == 1 && addsUp(k) {
			words = append(words, k.Word())
		}
	}
	return words
}

// addsUp reports whether rules of a kind add up amounts, which several rows can hold.
func addsUp(k rules.Kind) bool {
	return slices.ContainsFunc(k.Traits().Keys, func(key rules.Key) bool { return key.Name == "write_shards" })
}

// adderWord draws one of the adders, the first twice as often as all others together.
func (g *grammar) adderWord(n int) string {
	if others := g.adders[1:]; len(others) > 0 && len(g.rules)%3 == 2 {
		return others[n%len(others)]
	}
	return g.adders[0]
}

// any draws an entity.
func (g *grammar) any() *entity { return g.entities[g.r.IntN(len(g.entities))] }

// source draws an entity to read, the ones that rules make or write more often, for the sake of chains.
func (g *grammar) source() *entity {
	var written []*entity
	for _, e := range g.entities {
		if e.mirror || slices.ContainsFunc(e.attributes, func(a attribute) bool { return a.derived }) {
			written = append(written, e)
		}
	}
	if len(written) > 0 && g.chance(40) {
		return written[g.r.IntN(len(written))]
	}
	return g.any()
}

func (g *grammar) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *grammar) pick(texts ...string) string { return texts[g.r.IntN(len(texts))] }

// add enters a rule. Its name says its kind and is new.
func (g *grammar) add(kind string, fields ...string) {
	present := slices.DeleteFunc(fields, func(f string) bool { return f == "" })
	g.rules = append(g.rules, fmt.Sprintf("  %s-%d: { %s }\n", kind, len(g.rules)+1, strings.Join(present, ", ")))
}

// String writes the rule file.
func (g *grammar) String() string {
	return g.text(forms{file: g.text(forms{off: true}), off: g.layout.number})
}

// text writes the rule file with some forms.
func (g *grammar) text(f forms) string {
	var b strings.Builder
	b.WriteString("version: 1\ntable: { keys: [" + strings.Join(g.layout.keys, ", ") + "]")
	if g.typed {
		b.WriteString(", type: EntityType")
	}
	b.WriteString(f.table() + " }\nentities:\n")
	for _, e := range g.entities {
		b.WriteString(e.line(g.layout.keys, f))
	}
	b.WriteString("rules:\n")
	for _, line := range slices.Concat(g.rules, g.beside) {
		b.WriteString(line)
	}
	return b.String()
}
