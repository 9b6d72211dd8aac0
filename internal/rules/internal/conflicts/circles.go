package conflicts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/check"
)

// circles gives every rule its level, and reports rules that feed each other.
func (c *checker) circles() {
	n := len(c.file.Rules)
	writers := map[fact][]int{}
	reads := make([][]fact, n)
	for i, r := range c.file.Rules {
		var writes []fact
		reads[i], writes = factsOf(r)
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
		for i, r := range c.file.Rules {
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
		c.saySelfReading(c.file.Rules[circle[0]], own)
		return
	}
	name := func(k int) string { return c.file.Rules[k].Decl.Name.Text }
	var names, why []string
	for at, k := range circle {
		next := circle[(at+1)%len(circle)]
		names = append(names, name(k))
		verb := "writes"
		if via[next][k].attribute == existence {
			verb = "makes"
		}
		if c.file.Rules[k].Traits.Deletes {
			verb = "deletes"
		}
		why = append(why, fmt.Sprintf("%s %s %s, which %s reads", name(k), verb, via[next][k], name(next)))
	}
	names = append(names, name(circle[0]))
	c.Add(c.file.Rules[circle[0]].Decl.Name.At, "rule.circle", strings.Join(why, "; "),
		"rules feed each other in a circle: %s", strings.Join(names, " -> "))
}

// saySelfReading reports a rule that reads an attribute which it writes.
func (c *checker) saySelfReading(r *check.Rule, own fact) {
	at := r.Decl.Name.At
	for _, w := range r.Writes {
		if w.As.Text == own.attribute {
			at = w.As.At
		}
	}
	c.Add(at, "rule.circle", "write the result to an attribute that the rule does not read",
		"rule %s reads %s, which it writes", r.Decl.Name.Text, own)
}
