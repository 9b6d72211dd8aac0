// Package conflicts finds the problems that the rules and entities of a file cause each other: keys that items of two entities
// can have, attributes that two rules write, rules that decide what others delete, and rules that feed each other in a
// circle. Where there is no circle, every rule gets its level.
package conflicts

import (
	"slices"

	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
)

// checker finds the problems of a file.
type checker struct {
	declared.Parser
	file *check.File
}

// Check adds the problems of a file to those that were found before, and sets the rules' levels.
func Check(p declared.Parser, file *check.File) {
	c := &checker{p, file}
	c.ambiguous()
	c.twoWriters()
	c.places()
	c.derived()
	c.deleted()
	c.circles()
}

// existence stands for an entity's items as such, where an attribute could stand.
const existence = ""

// fact is an attribute of an entity, or its items' existence.
type fact struct {
	entity    *check.Entity
	attribute string
}

func (f fact) String() string {
	if f.attribute == existence {
		return f.entity.Decl.Name.Text + " items"
	}
	return f.entity.Decl.Name.Text + "." + f.attribute
}

// factsOf lists what a rule reads and what it writes.
func factsOf(r *check.Rule) (reads, writes []fact) {
	if r.Traits.Deletes && r.Source == r.Target {
		return nil, nil // it is refused in words of its own
	}
	for _, name := range append(slices.Clip(r.Reads), existence) {
		reads = append(reads, fact{r.Source, name})
	}
	if r.Traits.HasParent && !r.Traits.Deletes { // no rule writes what joins the children that a rule deletes
		for _, name := range append(slices.Clip(r.ChildReads), existence) {
			reads = append(reads, fact{r.Target, name})
		}
	}
	for _, w := range r.Writes {
		writes = append(writes, fact{r.Target, w.As.Text})
	}
	if r.Traits.MakesItems || r.Derives() || r.Traits.Deletes {
		writes = append(writes, fact{r.Target, existence})
	}
	return reads, writes
}

// twoWriters reports attributes that two rules write, and entities whose items two rules make.
func (c *checker) twoWriters() {
	type writer struct {
		rule *check.Rule
		line int
	}
	first := map[fact]writer{}
	for _, r := range c.file.Rules {
		if r.Traits.MakesItems {
			items := fact{r.Target, existence}
			if w, twice := first[items]; twice {
				c.Add(r.Decl.Target.At, "rule.two_writers", "let each rule make items of an entity of its own",
					"%s are made by rule %s (line %d) already", items, w.rule.Decl.Name.Text, w.line)
				continue
			}
			first[items] = writer{r, r.Decl.Name.At.Line}
		}
		for _, wr := range r.Writes {
			attribute := fact{r.Target, wr.As.Text}
			w, twice := first[attribute]
			switch {
			case twice && w.rule == r:
				c.Add(wr.As.At, "rule.two_writers", "name it once", "this rule writes %s twice", attribute)
			case twice:
				c.Add(wr.As.At, "rule.two_writers", "give one of them another attribute",
					"%s is written by rule %s (line %d) already", attribute, w.rule.Decl.Name.Text, w.line)
			default:
				first[attribute] = writer{r, wr.As.At.Line}
			}
		}
	}
}
