package population

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// HasTree reports whether the application writes the items of a tree.
func (p *Population) HasTree() bool { return len(p.trees()) > 0 }

// trees are the rules of which Chain draws items.
func (p *Population) trees() []*rules.Rule {
	return slices.DeleteFunc(slices.Clone(p.Set.Rules), func(rule *rules.Rule) bool {
		_, nests := rule.Form.(rules.Nester)
		return !nests || len(rule.By) != 1 || len(rule.Source.Makers) > 0
	})
}

// Chain draws n items of a tree: each refers to the one before by an attribute, and the first to the last if the chain is closed. It
// returns no items if the rule finds other parents by it: if an expression makes the reference, for example.
func (p *Population) Chain(r *rand.Rand, n int, closed bool) (items []change.Item, by string) {
	rule := oneOf(r, p.trees())
	k, join := p.kinds[rule.Source.Index], rule.By[0]
	at := slices.IndexFunc(k.variables, func(v variable) bool { return v.name == join.Theirs })
	if at < 0 {
		return nil, ""
	}
	var values [rules.VariablesMax]string
	for i, v := range k.variables {
		values[i] = v.texts[0]
	}
	like := k.item(r)
	for _, v := range k.variables {
		delete(like, v.name) // it would hide the variable
	}
	for _, s := range k.marks {
		s.write(like, s.pool.usual[0])
	}
	id := func(i int) string { return fmt.Sprint(100 + (i+n)%n) }
	items = make([]change.Item, n)
	for i := range items {
		it := maps.Clone(like)
		values[at] = id(i)
		if delete(it, join.Ours); i > 0 || closed {
			it[join.Ours] = change.String(id(i - 1))
		}
		if !k.fillKey(it, values) {
			return nil, ""
		}
		items[i] = it
	}
	for i, it := range items {
		m, _ := p.Set.Identify(p.Key(it), it)
		if parent, refers, err := rule.JoinedKey(&m, it); m.Entity != rule.Source || err != nil || refers != (i > 0 || closed) ||
			refers && parent != p.Key(items[(i+n-1)%n]) {
			return nil, ""
		}
	}
	return items, join.Ours
}
