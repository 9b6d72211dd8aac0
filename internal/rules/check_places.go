package rules

import (
	"fmt"
	"strings"
)

// Bounds that follow from DynamoDB's own (developer guide, "Expressions" under
// "Constraints": 4 KB for an expression, 300 operators). The engine's longest
// conditions name every attribute of a rule, with two operators for each.
const (
	attributesMax = 100 // attributes that one rule writes
	matchesMax    = 10  // attributes under one entity's match
)

// places reports rules that could put an item where another entity's items
// stand. Their matches do not help: two items never share a key, so that
// one would replace the other (promise 8).
func (c *checker) places() {
	budget := overlapStepsMax
	type pair struct{ one, other *checkedEntity }
	reported := map[pair]bool{}
	for _, r := range c.out.rules {
		if !r.traits.MakesItems || r.target.broken {
			continue
		}
		for _, e := range c.out.entities {
			if e == r.target || e.broken {
				continue
			}
			example, overlap := overlapping(&r.target.shape, &e.shape, &budget)
			if budget <= 0 {
				c.Add(r.decl.target.at, "entity.too_complex", "make the templates shorter",
					"it takes too long to tell whether %s items have keys of their own", r.target.decl.name.text)
				return
			}
			if overlap {
				if !reported[pair{e, r.target}] { // two rules that make each other's items are one fault
					c.sayOverlap(r, e, example)
				}
				reported[pair{r.target, e}] = true
				break
			}
		}
	}
}

func (c *checker) sayOverlap(r *checkedRule, e *checkedEntity, example string) {
	target, other := r.target.decl.name.text, e.decl.name.text
	if example != "" {
		example = ", " + example
	}
	whose := fmt.Sprintf("a %s item (line %d)", other, e.decl.name.at.Line)
	if e == r.source {
		whose += ", which it " + r.decl.kind.Word() + "s"
	}
	hint := fmt.Sprintf("give %s a key that no other entity has, for instance a sort key that begins with %s#", target,
		strings.ToUpper(target))
	if len(c.file.table.keys) < 2 {
		hint = fmt.Sprintf("give %s a key that no other entity has, for instance one that begins with %s#", target, strings.ToUpper(target))
	}
	c.Add(r.decl.target.at, r.decl.kind.Word()+".overlap", hint,
		"%s item of %s can have the key of %s%s: one would replace the other", r.traits.Noun, target, whose, example)
}

// widths reports rules and entities with more attributes than DynamoDB's expressions can name.
func (c *checker) widths() {
	for _, r := range c.out.rules {
		if n := len(r.writes); n > attributesMax {
			c.Add(r.decl.name.at, "rule.too_many_attributes", "split it into several rules",
				"rule %s writes %d attributes; at most %d are allowed, since DynamoDB bounds the length of a condition", r.decl.name.text, n,
				attributesMax)
		}
	}
	for _, e := range c.out.entities {
		if n := len(e.equals); n > matchesMax {
			c.Add(e.decl.name.at, "entity.too_many_matches", "tell the entity by fewer attributes",
				"items of %s are told by %d attributes; at most %d are allowed", e.decl.name.text, n, matchesMax)
		}
	}
}
