package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// join finds out how the other side's key is filled from this side: the
// parent's from the child, or else the target's from the source.
func (c *checker) join(r *Rule) {
	theirs, ours := r.sides()
	variables := theirs.Shape.Variables
	r.Join = joins.Join{Theirs: theirs.Shape, Ours: ours.Shape, Fill: make([]joins.Ref, len(variables)), Unique: joins.Nowhere}
	for slot, name := range variables {
		if from := r.refOf(ours, name); !from.IsAttribute() {
			r.Join.Fill[slot] = from
		} else {
			r.Join.Fill[slot] = joins.Nowhere
		}
	}
	only, known := len(r.Decl.By) == 1, !r.Decl.BadBy
	byUnique := false
	for _, pair := range r.Decl.By {
		if only && pair.IsBare() {
			byUnique = r.joinsByBareUnique() && pair.Theirs.Text == theirs.Decl.Unique.Text && !theirs.isKeyAlone(pair.Theirs.Text)
			pair.Theirs.Text = c.bareName(&r.Join, theirs, pair.Theirs.Text)
		}
		known = c.joinPair(r, theirs, ours, pair) && known
	}
	missing := r.Join.Unfilled()
	switch {
	case byUnique:
		r.Join.ByUnique = true
	case len(missing) == 0:
	case r.Join.Unique != joins.Nowhere && only:
		r.Join.ByUnique = true
		c.uniqueAllowed(r, theirs, ours)
	case known && !r.Decl.Each.Unread: // an unknown name in `by` is most likely what is missing
		c.unfilled(r, theirs, ours, missing)
	}
	c.eachMakesItems(r)
	if r.Traits.AlongItself() && known {
		c.alongItself(r, theirs)
	}
}

// alongItself reports a `by` that does not say, by one attribute, to which other item of its own entity an item refers. All other
// variables are the same in the keys of both.
func (c *checker) alongItself(r *Rule, e *Entity) {
	own, other := 0, 0
	for slot, from := range r.Join.Fill {
		if from.IsVariable() && from.Slot == slot {
			own++
		} else if !from.IsVariable() && !from.IsNowhere() {
			other++
		}
	}
	if other == 1 && own == len(r.Join.Fill)-1 && len(r.Decl.By) == 1 || len(e.Shape.Variables) == 0 {
		return
	}
	last := e.Shape.Variables[len(e.Shape.Variables)-1]
	c.Add(r.joinPlace(), "rule.by",
		"name the variable of the key, and the attribute that holds it of the parent: `by: { "+last+": parentId }`",
		"`by` must say in one attribute which other %s is the parent of one", e.Decl.Name.Text)
}

// joinPlace is where the rule says by what it joins, or of which kind it is.
func (r *Rule) joinPlace() document.Place {
	if r.Decl.HasKey("by") {
		return r.Decl.PlaceOf("by")
	}
	return r.Decl.At
}

// joinsByBareUnique reports whether one bare name joins by the other side's unique value although the whole key may be known.
func (r *Rule) joinsByBareUnique() bool { return r.Traits.WholeKey == nil && !r.Traits.AlongItself() }

// isKeyAlone reports whether one variable gives the entity's whole key.
func (e *Entity) isKeyAlone(variable string) bool {
	return len(e.Shape.Variables) == 1 && e.Shape.Variables[0] == variable
}

// bareName is the name of the other side that a `by` of one name means: its unique, a variable of its key, or else the one
// variable that nothing else fills.
func (c *checker) bareName(j *joins.Join, theirs *Entity, name string) string {
	if name == theirs.Decl.Unique.Text || slices.Contains(theirs.Shape.Variables, name) {
		return name
	}
	if left := j.Unfilled(); len(left) == 1 && !c.blames(theirs, name) {
		return left[0]
	}
	return name
}

// joinPair enters one pair of `by`; false if the other side knows no such name.
func (c *checker) joinPair(r *Rule, theirs, ours *Entity, pair declared.JoinPair) bool {
	from := c.ours(r, ours, pair.Ours)
	if !pair.Ours.Expression {
		c.reserved(pair.Ours)
		c.whole(pair.Ours, fmt.Sprintf("write `by: { %s: %s }`: behind the colon, an expression may name a part",
			theirsName(theirs, pair), pair.Ours.Text))
	}
	if !pair.Ours.Expression && c.isKey(pair.Ours.Text) && !from.IsElement() {
		c.Add(pair.Ours.At, "rule.join_key", "name a variable of "+ours.Decl.Name.Text+"'s key template: "+
			strings.Join(ours.Shape.Variables, ", "),
			"%s is a whole key; a join needs one of its parts", pair.Ours.Text)
	}
	return c.joinFrom(r, theirs, ours, pair, from)
}

// theirsName is the name of the other side that a pair of `by` means, or else an example of one.
func theirsName(theirs *Entity, pair declared.JoinPair) string {
	if variables := theirs.Shape.Variables; !slices.Contains(variables, pair.Theirs.Text) && len(variables) > 0 {
		return variables[0]
	}
	return pair.Theirs.Text
}

// ours is where this side has the value of a pair of `by`.
func (c *checker) ours(r *Rule, e *Entity, w declared.Word) joins.Ref {
	if !w.Expression {
		return r.refOf(e, w.Text)
	}
	program := c.expression(w, "a value of `by`", "", expr.Any)
	if program == nil {
		return joins.Attribute(w.Text) // a problem was reported
	}
	if t := program.Type(); t == expr.List || t == expr.Null {
		c.Add(c.expressionPlace(w), "expr.type", "", "a key is made of strings, numbers and conditions; this is %s", t)
	}
	return joins.Expression(program)
}

// joinFrom enters the value of one pair of `by`; false if the other side knows no such name.
func (c *checker) joinFrom(r *Rule, theirs, ours *Entity, pair declared.JoinPair, from joins.Ref) bool {
	slot := slices.Index(theirs.Shape.Variables, pair.Theirs.Text)
	isUnique := pair.Theirs.Text == theirs.Decl.Unique.Text
	if isUnique {
		r.Join.Unique = from
	}
	switch {
	case slot >= 0:
		r.Join.Fill[slot] = from
		return true
	case isUnique:
		return true
	case c.blames(theirs, pair.Theirs.Text):
		return false
	}
	known := slices.Clone(theirs.Shape.Variables)
	if unique := theirs.Decl.Unique; unique.Given() && !slices.Contains(known, unique.Text) {
		known = append(known, unique.Text)
	}
	hint := spelling.DidYouMean(pair.Theirs.Text, known)
	if pair.IsBare() && len(known) > 0 && !strings.HasPrefix(hint, "did you mean") {
		name := known[0]
		if left := r.Join.Unfilled(); len(left) > 0 {
			name = left[0]
		} else if r.Traits.AlongItself() { // all others are the same in both keys
			name = theirs.Shape.Variables[len(theirs.Shape.Variables)-1]
		}
		hint = fmt.Sprintf("if %s of %s holds %s, write `by: { %s: %s }`", pair.Ours.Text, ours.Decl.Name.Text, name, name, pair.Ours.Text)
	}
	c.Add(pair.Theirs.At, "rule.unknown_variable", hint, "%s's key has no variable %q", theirs.Decl.Name.Text, pair.Theirs.Text)
	return false
}

// uniqueAllowed reports joins by a unique id that the kind of rule cannot use.
func (c *checker) uniqueAllowed(r *Rule, theirs, ours *Entity) {
	whole := r.Traits.WholeKey
	if whole == nil {
		return
	}
	named := strings.NewReplacer("{items}", ours.Decl.Name.Text, "{variables}", strings.Join(theirs.Shape.Variables, ", "))
	c.Add(r.Decl.PlaceOf("by"), "rule."+r.Decl.Kind.Word()+"_by_unique", named.Replace(whole.Hint),
		"%s; %s alone is not the key of %s", whole.Reason, theirs.Decl.Unique.Text, theirs.Decl.Name.Text)
}

// unfilled reports variables of the other side's key that nothing fills.
func (c *checker) unfilled(r *Rule, theirs, ours *Entity, missing []string) {
	if slices.ContainsFunc(missing, func(name string) bool { return c.blames(ours, name) }) {
		return
	}
	tn, on := theirs.Decl.Name.Text, ours.Decl.Name.Text
	have := "no variables"
	if len(ours.Shape.Variables) > 0 {
		have = strings.Join(ours.Shape.Variables, ", ")
	}
	if r.Each.As.Given() {
		have += ", and `each` gives " + r.Each.As.Text
	}
	names := missing
	for _, pair := range r.Decl.By { // keep what is there already
		if name := pair.Theirs.Text; name == pair.Ours.Text && !slices.Contains(names, name) && slices.Contains(theirs.Shape.Variables, name) {
			names = append([]string{pair.Theirs.Text}, names...)
		}
	}
	by := names[0]
	if len(names) > 1 {
		by = "[" + strings.Join(names, ", ") + "]"
	}
	carried := "them as attributes"
	if len(missing) == 1 {
		carried = "it as an attribute"
	}
	hint := fmt.Sprintf("if %s items carry %s, add `by: %s`; under another name, `by: { %s: thatName }`", on, carried, by, missing[0])
	switch u := theirs.Decl.Unique; {
	case r.Traits.WholeKey != nil || r.Traits.AlongItself() || r.Derives():
	case u.Given() && len(r.Decl.By) == 0:
		hint = fmt.Sprintf("%s items are known by %s: if %s items carry it, add `by: %s`", tn, u.Text, on, u.Text)
	case u.Given():
		hint += fmt.Sprintf("; or, as %s items are known by %s, write `by: %s` alone", tn, u.Text, u.Text)
	case len(theirs.Shape.Variables) > 1:
		last := theirs.Shape.Variables[len(theirs.Shape.Variables)-1]
		hint += fmt.Sprintf("; or, if %s alone tells one %s from all others, give %s `unique: %s`, and write `by: %s`", last, tn, tn, last, last)
	}
	if element := r.Each.As; element.Given() && !slices.ContainsFunc(r.Join.Fill, joins.Ref.IsElement) && len(missing) == 1 {
		hint = fmt.Sprintf("if an element is the %s, add `by: { %s: %s }`", missing[0], missing[0], element.Text)
	}
	c.Add(r.joinPlace(), "key.unfilled", hint, "%s's key needs %s; %s's key has %s", tn, strings.Join(missing, ", "), on, have)
}
