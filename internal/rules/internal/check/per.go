package check

import (
	"strings"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// per checks what a rule tells the values of one target apart by. It is read as a value of `by` is.
func (c *checker) per(r *Rule) {
	w := r.Decl.Per
	if !w.Given() || r.Source.broken {
		return
	}
	const hint = "name what items of one target differ in, as in `per: emoji`"
	if w.Expression {
		program := c.expression(w, "per", "", expr.Any)
		switch {
		case program == nil: // a problem was reported
			return
		case program.Type() == expr.List || program.Type() == expr.Null:
			c.Add(c.Locate(w.Node, 0, len(w.Text)), "expr.type", "", "per must be a string, a number or a condition; this is %s", program.Type())
		case len(program.Reads()) == 0:
			c.Add(c.Locate(w.Node, 0, len(w.Text)), "rule.per", hint, "%s is the same for every %s item", w.Text, r.Source.Decl.Name.Text)
		}
		r.Per = Ref{Slot: noSlot, Expression: program}
		return
	}
	c.plainAttribute(w)
	r.Per = r.refOf(r.Source, w.Text)
	if c.isKey(w.Text) && r.Per.IsAttribute() {
		have := "there are none"
		if variables := r.Source.Shape.Variables; len(variables) > 0 {
			have = strings.Join(variables, ", ")
		}
		c.Add(w.At, "rule.per", "name a variable of "+r.Source.Decl.Name.Text+"'s key template: "+have, "%s is a whole key", w.Text)
	}
}

// perReads lists the attributes that tell the value of `per`.
func (r *Rule) perReads() []string {
	switch from := r.Per; {
	case from.Expression != nil:
		return from.Expression.Reads()
	case from.IsAttribute():
		return []string{from.Attribute}
	case from.IsVariable() && r.Source.caseOf(from) != templates.AsIs: // the key does not tell the letters
		return []string{r.Source.Shape.Variables[from.Slot]}
	}
	return nil
}
