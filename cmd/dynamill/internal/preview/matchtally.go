package preview

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/rules"
)

// unmatchedExamples is how many keys of items without an entity are kept.
const unmatchedExamples = 3

// matchTally counts how many items are of each entity of a rule file.
type matchTally struct {
	set       *rules.Set
	items     int
	matched   map[*rules.Entity]int
	keyed     map[*rules.Entity]int // items of no entity that have this entity's keys, but not its attributes
	unmatched int
	examples  []change.Key // of unmatched items, the first ones
}

func newMatchTally(set *rules.Set) *matchTally {
	return &matchTally{set: set, matched: map[*rules.Entity]int{}, keyed: map[*rules.Entity]int{}}
}

// count takes one item in.
func (t *matchTally) count(item change.Item) {
	t.items++
	key := t.set.Table.KeyOf(item)
	if m, ok := t.set.Identify(key, item); ok {
		t.matched[m.Entity]++
		return
	}
	t.unmatched++
	if len(t.examples) < unmatchedExamples {
		t.examples = append(t.examples, key)
	}
	for _, e := range t.set.Entities {
		if e.HasKey(key) {
			t.keyed[e]++
		}
	}
}

// unmet lists the entities that a rule reads or writes and that no counted item is
// of. Targets of mirror rules are left out: dynamill makes those items.
func (t *matchTally) unmet() []*rules.Entity {
	var unmet []*rules.Entity
	for _, e := range t.set.Entities {
		if t.matched[e] == 0 && len(e.Mirrors) == 0 && len(t.set.RulesOf(e)) > 0 {
			unmet = append(unmet, e)
		}
	}
	return unmet
}

// warnings has one for each unmet entity. An empty table says nothing about the rules.
func (t *matchTally) warnings() (all []foundProblem) {
	if t.items > 0 {
		for _, e := range t.unmet() {
			all = append(all, t.warning(e))
		}
	}
	return all
}

// warning says of an unmet entity which rules it concerns, and what may be wrong.
func (t *matchTally) warning(e *rules.Entity) foundProblem {
	names := t.set.RulesOf(e)
	w := foundProblem{
		Code: "entity.unmatched",
		Message: fmt.Sprintf("none of %s is a %s, which %s %s", printable.Counted(t.items, "sampled item"), e.Name, strings.Join(names, ", "),
			printable.Verb(len(names), "reads or writes", "read or write")),
	}
	switch n := t.keyed[e]; {
	case n > 0:
		w.Hint = fmt.Sprintf("its keys fit %s of no entity: a %s needs %s, too", printable.Counted(n, "sampled item"), e.Name, attributesOf(e))
	case len(t.examples) > 0:
		w.Hint = fmt.Sprintf("compare its keys, %s, with the table's: %s", e.KeyText(), strings.Join(sighting.KeyTexts(t.examples), ", "))
	default:
		w.Hint = fmt.Sprintf("its keys are %s; a sample may miss entities with few items", e.KeyText())
	}
	return w
}

// attributesOf shows the attributes that an entity's items must have.
func attributesOf(e *rules.Entity) string {
	texts := make([]string, len(e.Equals))
	for i, eq := range e.Equals {
		value := eq.Value.Text()
		switch eq.Value.Kind() {
		case change.KindString:
			value = fmt.Sprintf("%q", value)
		case change.KindBool:
			value = fmt.Sprint(eq.Value.Bool())
		}
		texts[i] = eq.Attribute + " == " + value
	}
	return strings.Join(texts, " and ")
}
