package check

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// places reports rules that could put an item where another entity's items
// stand. Their matches do not help: two items never share a key, so that
// one would replace the other (promise 8).
func (c *checker) places() {
	budget := templates.OverlapStepsMax
	type pair struct{ one, other *Entity }
	reported := map[pair]bool{}
	for _, r := range c.out.Rules {
		if !r.traits.MakesItems || r.Target.broken {
			continue
		}
		for _, e := range c.out.Entities {
			if e == r.Target || e.broken {
				continue
			}
			example, overlap := templates.Overlapping(&r.Target.Shape, &e.Shape, &budget)
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

func (c *checker) sayOverlap(r *Rule, e *Entity, example string) {
	target, other := r.Target.Decl.Name.Text, e.Decl.Name.Text
	if example != "" {
		example = ", " + example
	}
	whose := fmt.Sprintf("a %s item (line %d)", other, e.Decl.Name.At.Line)
	if e == r.Source {
		whose += ", which it " + r.Decl.Kind.Word() + "s"
	}
	key := "a sort key"
	if len(c.file.Table.Keys) < 2 {
		key = "one"
	}
	hint := fmt.Sprintf("give %s a key that no other entity has, for instance %s that begins with %s#", target, key, strings.ToUpper(target))
	c.Add(r.Decl.Target.At, r.Decl.Kind.Word()+".overlap", hint,
		"%s item of %s can have the key of %s%s: one would replace the other", r.traits.Noun, target, whose, example)
}
