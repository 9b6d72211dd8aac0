package check

import (
	"slices"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// readsOf lists the attributes of the item that a rule's effect depends on,
// its keys aside: of the source, and of a child.
func (c *checker) readsOf(r *Rule) (source, child []string) {
	joined := &source
	if r.Traits.HasParent {
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
		names = append(names, ours.telling(from, r.joined(i).Case(theirs.Shape))...)
	}
	return names
}

// joined is where the other side has the value of one of the join's refs.
func (r *Rule) joined(i int) joins.Ref {
	if r.Join.ByUnique {
		theirs, _ := r.sides()
		return theirs.Unique
	}
	return joins.Ref{Slot: i}
}

// telling lists the attributes of the entity's items that tell a value in this letter case, its keys aside.
func (e *Entity) telling(from joins.Ref, in templates.Case) []string {
	switch {
	case from.Expression != nil:
		return from.Expression.Reads()
	case from.IsAttribute():
		return []string{from.Attribute}
	case from.IsVariable() && from.Case(e.Shape) != in: // the key does not tell the letters
		return []string{e.Shape.Variables[from.Slot]}
	}
	return nil
}

// holdsAsIs reports whether the entity's items have a value as it is: in its own letters, without zeros before it.
func (e *Entity) holdsAsIs(r joins.Ref) bool {
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
