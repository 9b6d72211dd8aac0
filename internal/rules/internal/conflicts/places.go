package conflicts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// ambiguous reports entities that one item could be of at once.
func (c *checker) ambiguous() {
	budget := templates.OverlapStepsMax
	for i, b := range c.file.Entities {
		for _, a := range c.file.Entities[:i] {
			if a.Broken || b.Broken || contradict(a.Equals, b.Equals) {
				continue
			}
			example, overlap := templates.Overlapping(a.Shape, b.Shape, &budget)
			if budget <= 0 {
				c.Add(b.Decl.Name.At, "entity.too_complex", "make the templates shorter",
					"it takes too long to tell whether these entities can be told apart")
				return
			}
			if overlap {
				c.sayAmbiguous(a, b, example)
				break // the others of this shape cannot be told from the first either
			}
		}
	}
}

func (c *checker) sayAmbiguous(a, b *check.Entity, example string) {
	an, bn := a.Decl.Name.Text, b.Decl.Name.Text
	if example != "" {
		example = ": an item with the key " + example + " could be either"
	}
	c.Add(b.Decl.Name.At, "entity.ambiguous",
		fmt.Sprintf("change a template; or give each a `match` of its own, as in `match: { kind: %s }`; or name the table's `type` attribute",
			strings.ToLower(bn)),
		"%s and %s (line %d) cannot be told apart%s", bn, an, a.Decl.Name.At.Line, example)
}

// contradict reports whether no item can have both lists of attributes.
func contradict(a, b []check.Equals) bool {
	return slices.ContainsFunc(a, func(x check.Equals) bool {
		return slices.ContainsFunc(b, func(y check.Equals) bool { return x.Attribute == y.Attribute && !x.Value.Equal(y.Value) })
	})
}

// places reports rules that could put an item where another entity's items
// stand. Their matches do not help: two items never share a key, so that
// one would replace the other (promise 8).
func (c *checker) places() {
	budget := templates.OverlapStepsMax
	type pair struct{ one, other *check.Entity }
	reported := map[pair]bool{}
	for _, r := range c.file.Rules {
		if !r.Traits.MakesItems || r.Target.Broken {
			continue
		}
		for _, e := range c.file.Entities {
			if e == r.Target || e.Broken {
				continue
			}
			example, overlap := templates.Overlapping(r.Target.Shape, e.Shape, &budget)
			if budget <= 0 {
				c.Add(r.Decl.Target.At, "entity.too_complex", "make the templates shorter",
					"it takes too long to tell whether %s items have keys of their own", r.Target.Decl.Name.Text)
				return
			}
			if overlap {
				if !reported[pair{e, r.Target}] { // two rules that make each other's items are one fault
					c.sayOverlap(r, e, example)
				}
				reported[pair{r.Target, e}] = true
				break
			}
		}
	}
}

func (c *checker) sayOverlap(r *check.Rule, e *check.Entity, example string) {
	target, other := r.Target.Decl.Name.Text, e.Decl.Name.Text
	if example != "" {
		example = ", " + example
	}
	whose := fmt.Sprintf("a %s item (line %d)", other, e.Decl.Name.At.Line)
	if e == r.Source {
		whose += ", which it " + r.Decl.Kind.Word() + "s"
	}
	key := "a sort key"
	if len(c.file.Decl.Table.Keys) < 2 {
		key = "one"
	}
	hint := fmt.Sprintf("give %s a key that no other entity has, for instance %s that begins with %s#", target, key, strings.ToUpper(target))
	c.Add(r.Decl.Target.At, r.Decl.Kind.Word()+".overlap", hint,
		"%s item of %s can have the key of %s%s: one would replace the other", r.Traits.Noun, target, whose, example)
}
