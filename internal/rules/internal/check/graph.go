package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// existence stands for an entity's items as such, where an attribute could stand.
const existence = ""

// fact is an attribute of an entity, or its items' existence.
type fact struct {
	entity    *Entity
	attribute string
}

func (f fact) String() string {
	if f.attribute == existence {
		return f.entity.Decl.Name.Text + " items"
	}
	return f.entity.Decl.Name.Text + "." + f.attribute
}

// readsOf lists the attributes of the item that a rule's effect depends on,
// its keys aside: of the source, and of a child.
func (c *checker) readsOf(r *Rule) (source, child []string) {
	joined := &source
	if r.traits.HasParent {
		joined = &child
		child = attributesOf(r.Target.Equals)
	}
	*joined = append(*joined, r.joinReads()...)
	source = append(source, r.Source.telling(r.Per, templates.AsIs)...)
	for _, w := range r.Writes {
		if w.From.Given() {
			source = append(source, w.From.Text)
		}
		if w.Template != nil {
			source = append(source, w.Template.Reads()...)
		}
	}
	for _, w := range r.Decl.Shown {
		source = append(source, w.From.Text)
	}
	if r.Decl.Order.Given() {
		source = append(source, r.Decl.Order.Text)
	}
	for _, program := range append([]*expr.Program{r.Where}, r.Expressions...) {
		if program != nil {
			source = append(source, program.Reads()...)
		}
	}
	if each := r.Each; each.List.Given() {
		source = slices.DeleteFunc(source, func(name string) bool { return name == each.As.Text })
		source = append(source, each.List.Text)
	}
	source = append(source, attributesOf(r.Source.Equals)...)
	return c.withoutKeys(source), c.withoutKeys(child)
}

// joinReads lists the attributes of this side that say which item of the other side is meant.
func (r *Rule) joinReads() (names []string) {
	theirs, ours := r.sides()
	for i, from := range r.Join.Refs() {
		names = append(names, ours.telling(from, theirs.caseOf(r.joined(i)))...)
	}
	return names
}

// joined is where the other side has the value of one of the join's refs.
func (r *Rule) joined(i int) Ref {
	if r.Join.ByUnique {
		theirs, _ := r.sides()
		return theirs.Unique
	}
	return Ref{Slot: i}
}

// telling lists the attributes of the entity's items that tell a value in this letter case, its keys aside.
func (e *Entity) telling(from Ref, in templates.Case) []string {
	switch {
	case from.Expression != nil:
		return from.Expression.Reads()
	case from.IsAttribute():
		return []string{from.Attribute}
	case from.IsVariable() && e.caseOf(from) != in: // the key does not tell the letters
		return []string{e.Shape.Variables[from.Slot]}
	}
	return nil
}

// caseOf is the letter case in which the entity's items have a value.
func (e *Entity) caseOf(r Ref) templates.Case {
	if r.IsVariable() {
		return e.Shape.Formats[r.Slot].Case
	}
	return templates.AsIs
}

// holdsAsIs reports whether the entity's items have a value as it is: in its own letters, without zeros before it.
func (e *Entity) holdsAsIs(r Ref) bool {
	return !r.IsVariable() || e.Shape.Formats[r.Slot] == templates.Format{}
}

func attributesOf(equals []Equals) []string {
	var names []string
	for _, eq := range equals {
		names = append(names, eq.Attribute)
	}
	return names
}

// withoutKeys returns the attributes that are no key of the table, sorted, each once.
func (c *checker) withoutKeys(attributes []string) []string {
	slices.Sort(attributes)
	return slices.DeleteFunc(slices.Compact(attributes), c.isKey)
}

func (c *checker) facts(r *Rule) (reads, writes []fact) {
	if r.traits.Deletes && r.Source == r.Target {
		return nil, nil // it is refused in words of its own
	}
	for _, name := range append(slices.Clip(r.Reads), existence) {
		reads = append(reads, fact{r.Source, name})
	}
	if r.traits.HasParent && !r.traits.Deletes { // no rule writes what joins the children that a rule deletes
		for _, name := range append(slices.Clip(r.ChildReads), existence) {
			reads = append(reads, fact{r.Target, name})
		}
	}
	for _, w := range r.Writes {
		writes = append(writes, fact{r.Target, w.As.Text})
	}
	if r.traits.MakesItems || r.derives() || r.traits.Deletes {
		writes = append(writes, fact{r.Target, existence})
	}
	return reads, writes
}

// twoWriters reports attributes that two rules write, and entities whose items two rules make.
func (c *checker) twoWriters() {
	type writer struct {
		rule *Rule
		line int
	}
	first := map[fact]writer{}
	for _, r := range c.out.Rules {
		if r.traits.MakesItems {
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

// circles gives every rule its level, and reports rules that feed each other.
func (c *checker) circles() {
	n := len(c.out.Rules)
	writers := map[fact][]int{}
	reads := make([][]fact, n)
	for i, r := range c.out.Rules {
		var writes []fact
		reads[i], writes = c.facts(r)
		for _, w := range writes {
			writers[w] = append(writers[w], i)
		}
	}
	via := make([]map[int]fact, n) // rule → rules that it depends on, and by what
	for i := range reads {
		via[i] = map[int]fact{}
		for _, f := range reads[i] {
			for _, w := range writers[f] {
				if _, known := via[i][w]; !known || f.attribute != existence {
					via[i][w] = f
				}
			}
		}
	}
	inCircle := map[int]bool{}
	reported := func(k int) bool { return inCircle[k] }
	for i := range n {
		if circle := shortestCircle(via, i); circle != nil && !slices.ContainsFunc(circle, reported) {
			for _, k := range circle {
				inCircle[k] = true
			}
			c.sayCircle(via, circle)
		}
	}
	if len(inCircle) == 0 {
		levels := make([]int, n)
		for i, r := range c.out.Rules {
			r.Level = levelOf(via, levels, i)
		}
	}
}

// shortestCircle returns the rules of a shortest circle through start, each
// feeding the next; nil if start is in none.
func shortestCircle(via []map[int]fact, start int) []int {
	feeds := map[int]int{} // rule → the rule that it feeds, on the way to start
	queue := []int{start}
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		for _, w := range slices.Sorted(maps.Keys(via[k])) {
			if w == start {
				circle := []int{start}
				for at := k; at != start; at = feeds[at] {
					circle = append(circle, at)
				}
				return circle
			}
			if _, seen := feeds[w]; !seen {
				feeds[w] = k
				queue = append(queue, w)
			}
		}
	}
	return nil
}

// levelOf returns 0 for a rule that reads nothing written by another, else one
// more than the highest of those. levels holds one more than what is known.
func levelOf(via []map[int]fact, levels []int, i int) int {
	if levels[i] > 0 {
		return levels[i] - 1
	}
	level := 0
	for w := range via[i] {
		level = max(level, levelOf(via, levels, w)+1)
	}
	levels[i] = level + 1
	return level
}

func (c *checker) sayCircle(via []map[int]fact, circle []int) {
	if own := via[circle[0]][circle[0]]; len(circle) == 1 && own.attribute != existence {
		c.saySelfReading(c.out.Rules[circle[0]], own)
		return
	}
	name := func(k int) string { return c.out.Rules[k].Decl.Name.Text }
	var names, why []string
	for at, k := range circle {
		next := circle[(at+1)%len(circle)]
		names = append(names, name(k))
		verb := "writes"
		if via[next][k].attribute == existence {
			verb = "makes"
		}
		if c.out.Rules[k].traits.Deletes {
			verb = "deletes"
		}
		why = append(why, fmt.Sprintf("%s %s %s, which %s reads", name(k), verb, via[next][k], name(next)))
	}
	names = append(names, name(circle[0]))
	c.Add(c.out.Rules[circle[0]].Decl.Name.At, "rule.circle", strings.Join(why, "; "),
		"rules feed each other in a circle: %s", strings.Join(names, " -> "))
}

// saySelfReading reports a rule that reads an attribute which it writes.
func (c *checker) saySelfReading(r *Rule, own fact) {
	at := r.Decl.Name.At
	for _, w := range r.Writes {
		if w.As.Text == own.attribute {
			at = w.As.At
		}
	}
	c.Add(at, "rule.circle", "write the result to an attribute that the rule does not read",
		"rule %s reads %s, which it writes", r.Decl.Name.Text, own)
}
