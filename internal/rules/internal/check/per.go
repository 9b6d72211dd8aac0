package check

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
)

// per checks what a rule tells the values of one target apart by. It is read as a value of `by` is.
func (c *checker) per(r *Rule) {
	w := r.Decl.Per
	if !w.Given() || r.Source.Broken {
		return
	}
	const hint = "name what items of one target differ in, as in `per: emoji`"
	source, place := r.Source.Decl.Name.Text, w.At
	if w.Expression {
		program := c.expression(w, "per", "", expr.Any)
		switch {
		case program == nil: // a problem was reported
			return
		case program.Type() == expr.List || program.Type() == expr.Null:
			c.Add(c.expressionPlace(w), "expr.type", "", "per must be a string, a number or a condition; this is %s", program.Type())
		case len(program.Reads()) == 0:
			c.Add(c.expressionPlace(w), "rule.per", hint, "%s is the same for every %s item", w.Text, source)
		}
		r.Per, place = joins.Expression(program), c.expressionPlace(w)
	} else {
		c.plainAttribute(w)
		r.Per = r.refOf(r.Source, w.Text)
	}
	switch isAttribute := r.Per.IsAttribute(); {
	case isAttribute && c.isKey(w.Text):
		have := "there are none"
		if variables := r.Source.Shape.Variables; len(variables) > 0 {
			have = strings.Join(variables, ", ")
		}
		c.Add(place, "rule.per", "name a variable of "+source+"'s key template: "+have, "%s is a whole key", w.Text)
	case c.Former: // a file that was in force once says what it says
	case isAttribute && w.Text == r.Each.List.Text:
		c.Add(place, "rule.per", "write `per: "+r.Each.As.Text+"`", "%s is the list, and %s its element", w.Text, r.Each.As.Text)
	case isAttribute && slices.Contains(attributesOf(r.Source.Equals), w.Text):
		c.Add(place, "rule.per", hint, "%s is the same for every %s item", w.Text, source)
	case r.perNamesTarget():
		c.Add(place, "rule.per", hint, "%s says to which %s an item belongs: each map would have one entry", w.Text, r.Target.Decl.Name.Text)
	}
}

// perNamesTarget reports whether all items of one target have one value of `per`, because the target is found by it. Where the
// target's key holds its letters in one case, or numbers with zeros before them, items of one target may differ in these.
func (r *Rule) perNamesTarget() bool {
	for i, from := range r.Join.Refs() {
		if r.Per.IsSame(from) && r.Target.holdsAsIs(r.joined(i)) {
			return true
		}
	}
	return false
}
