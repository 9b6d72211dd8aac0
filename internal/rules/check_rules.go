package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// rule checks one rule by itself; nil if its entities are unknown or broken.
func (c *checker) rule(decl *Declaration) *checkedRule {
	r := &checkedRule{decl: decl, traits: decl.kind.Traits()}
	r.source = c.find(decl.source)
	r.target = c.find(decl.target)
	r.where = c.expression(decl.where, "where", "a condition, as in `role != \"banned\"`", expr.Bool)
	for i, e := range r.traits.Expressions {
		r.expressions = append(r.expressions, c.expression(decl.expressions[i], e.Key, e.Want, e.Type))
	}
	c.attributes(r)
	if r.source == nil || r.target == nil {
		return nil
	}
	if !r.source.broken && !r.target.broken {
		c.join(r)
	}
	return r
}

// find returns the entity of a name; nil, with a problem, if there is none.
func (c *checker) find(w Word) *checkedEntity {
	if !w.Given() {
		return nil
	}
	for _, e := range c.out.entities {
		if e.decl.name.text == w.text {
			return e
		}
	}
	c.unknown[w.text] = append(c.unknown[w.text], w)
	return nil
}

// sayUnknown reports each name of an entity that does not exist once, however
// many rules have it.
func (c *checker) sayUnknown() {
	names := make([]string, 0, len(c.out.entities))
	for _, e := range c.out.entities {
		names = append(names, e.decl.name.text)
	}
	if len(names) == 0 {
		return // the parser has reported that there are none
	}
	for _, name := range sortedKeys(c.unknown) {
		places, also := c.unknown[name], ""
		if n := len(places) - 1; n == 1 {
			also = fmt.Sprintf("; line %d names it, too", places[1].at.Line)
		} else if n > 1 {
			also = fmt.Sprintf("; %d more places name it, the next in line %d", n, places[1].at.Line)
		}
		c.Add(places[0].at, "rule.unknown_entity", spelling.DidYouMean(name, names), "there is no entity %q%s", name, also)
	}
}

// expression compiles where or sum; nil if there is none, or a wrong one.
func (c *checker) expression(w Word, field, want string, typ expr.Type) *expr.Program {
	if !w.Given() {
		return nil
	}
	program, err := expr.Compile(w.text)
	if err != nil {
		c.badExpression(w, field, err)
		return nil
	}
	if t := program.Type(); t != typ && t != expr.Any {
		c.Add(c.Locate(w.node, 0, len(w.text)), "expr.type", "", "%s must be %s; this is %s", field, want, t)
		return nil
	}
	for _, name := range program.Reads() {
		if strings.HasPrefix(name, reservedPrefix) {
			c.Add(c.Locate(w.node, 0, len(w.text)), "rule.reserved_attribute", "read an attribute of your own",
				"%q is reserved: dynamill keeps its stamps in attributes that begin with %s", name, reservedPrefix)
		}
	}
	return program
}

func (c *checker) badExpression(w Word, field string, err error) {
	var bad *expr.Error
	if !errors.As(err, &bad) {
		c.Add(w.at, "expr.syntax", "", "%v", err)
		return
	}
	if comment, cut := c.Cut(w.at.Line); cut && !w.node.Quoted && bad.Offset+bad.Length >= len(w.text)-1 {
		c.Add(comment, "yaml.comment", "put the whole expression in quotes: single ones, if it has double quotes inside",
			"to YAML, everything from this # on is a comment, so that %s is only: %s", field, w.text)
		return
	}
	if c.cutByComma(w) && bad.Offset+bad.Length >= len(w.text)-1 {
		c.Add(c.Locate(w.node, bad.Offset, bad.Length), "yaml.flow", "put the whole expression in single quotes",
			"inside { }, a comma ends a value without quotes, so that %s is only: %s", field, w.text)
		return
	}
	c.Add(c.Locate(w.node, bad.Offset, bad.Length), bad.Code, bad.Hint, "%s", bad.Message)
}

// cutByComma reports whether the expression has an open quote and a comma follows it in the file.
func (c *checker) cutByComma(w Word) bool {
	if w.node.Quoted || strings.Count(w.text, `"`)%2 == 0 {
		return false
	}
	_, after, found := strings.Cut(c.Line(w.at.Line), w.text)
	return found && strings.HasPrefix(strings.TrimSpace(after), ",")
}

// attributes checks what the rule writes, and from what.
func (c *checker) attributes(r *checkedRule) {
	for _, w := range r.decl.writes {
		if w.from.Given() {
			c.plainAttribute(w.from)
		}
		if w.as.text != w.from.text {
			c.plainAttribute(w.as)
		}
		if c.writable(r, w.as) {
			r.writes = append(r.writes, w)
		}
	}
	if r.traits.MakesItems && r.target != nil {
		for _, eq := range r.target.equals {
			r.writes = append(r.writes, written{as: Word{at: r.decl.at, text: eq.Attribute}, constant: eq.Value})
		}
	}
	r.decl.kind.Check(r.decl)
}

// plainAttribute reports a name that is no whole attribute of a user's.
func (c *checker) plainAttribute(w Word) {
	c.reserved(w)
	if strings.Contains(w.text, ".") {
		c.Add(w.at, "rule.nested_attribute", "name the whole attribute: "+w.text[:strings.IndexByte(w.text, '.')],
			"%q would be inside another attribute; rules read and write whole ones", w.text)
	}
}

// writable reports an attribute of the target that a rule must not write, and returns false.
func (c *checker) writable(r *checkedRule, w Word) bool {
	if c.isKey(w.text) {
		hint := "choose another attribute; an item's key cannot change"
		if r.traits.MakesItems {
			hint = fmt.Sprintf("drop it: the key of %s item comes from its entity's template", r.traits.Noun)
		}
		c.Add(w.at, "rule.writes_key", hint, "%s is a key of the table", w.text)
		return false
	}
	if r.target == nil {
		return true
	}
	name := r.target.decl.name.text
	for _, eq := range r.target.equals {
		if eq.Attribute != w.text {
			continue
		}
		hint := "choose another attribute: an item that loses its mark is no " + name + " any more"
		if r.traits.MakesItems {
			hint = fmt.Sprintf("drop it: %s items get it by themselves", r.decl.kind.Word())
		}
		c.Add(w.at, "rule.writes_match", hint, "%s is what items are known as %s by", w.text, name)
		return false
	}
	if u := r.target.unique; !r.traits.MakesItems && u.isAttribute() && u.attribute == w.text {
		c.Add(w.at, "rule.writes_unique", "choose another attribute", "%s is the id that %s items are found by", w.text, name)
		return false
	}
	return true
}

// join finds out how the other side's key is filled from this side: the
// parent's from the child, or else the target's from the source.
func (c *checker) join(r *checkedRule) {
	theirs, ours := r.sides()
	variables := theirs.shape.variables
	r.join = join{fill: make([]ref, len(variables)), unique: nowhere}
	for slot, name := range variables {
		r.join.fill[slot] = ref{slot: slices.Index(ours.shape.variables, name)}
	}
	only, known := len(r.decl.by) == 1, true
	for _, pair := range r.decl.by {
		known = c.joinPair(r, theirs, ours, pair) && known
	}
	var missing []string
	for slot, from := range r.join.fill {
		if !from.isVariable() && !from.isAttribute() {
			missing = append(missing, variables[slot])
		}
	}
	switch {
	case len(missing) == 0:
	case r.join.unique != nowhere && only:
		r.join.byUnique = true
		c.uniqueAllowed(r, theirs, ours)
	case known: // an unknown name in `by` is most likely what is missing
		c.unfilled(r, theirs, ours, missing)
	}
}

// joinPair enters one pair of `by`; false if the other side knows no such name.
func (c *checker) joinPair(r *checkedRule, theirs, ours *checkedEntity, pair joinPair) bool {
	c.plainAttribute(pair.ours)
	if c.isKey(pair.ours.text) {
		c.Add(pair.ours.at, "rule.join_key", "name a variable of "+ours.decl.name.text+"'s key template: "+
			strings.Join(ours.shape.variables, ", "),
			"%s is a whole key; a join needs one of its parts", pair.ours.text)
	}
	from := ref{slot: slices.Index(ours.shape.variables, pair.ours.text), attribute: pair.ours.text}
	slot := slices.Index(theirs.shape.variables, pair.theirs.text)
	isUnique := pair.theirs.text == theirs.decl.unique.text
	if isUnique {
		r.join.unique = from
	}
	if slot >= 0 {
		r.join.fill[slot] = from
		return true
	}
	if isUnique {
		return true
	}
	if c.blames(theirs, pair.theirs.text) {
		return false
	}
	known := append([]string(nil), theirs.shape.variables...)
	if theirs.decl.unique.Given() {
		known = append(known, theirs.decl.unique.text)
	}
	hint := spelling.DidYouMean(pair.theirs.text, known)
	if pair.theirs.at == pair.ours.at && len(known) > 0 && !strings.HasPrefix(hint, "did you mean") {
		hint = fmt.Sprintf("if %s of %s holds %s, write `by: { %s: %s }`", pair.ours.text, ours.decl.name.text, known[0], known[0],
			pair.ours.text)
	}
	c.Add(pair.theirs.at, "rule.unknown_variable", hint, "%s's key has no variable %q", theirs.decl.name.text, pair.theirs.text)
	return false
}

// uniqueAllowed reports joins by a unique id that the kind of rule cannot use.
func (c *checker) uniqueAllowed(r *checkedRule, theirs, ours *checkedEntity) {
	whole := r.traits.WholeKey
	if whole == nil {
		return
	}
	named := strings.NewReplacer("{items}", ours.decl.name.text, "{variables}", strings.Join(theirs.shape.variables, ", "))
	c.Add(r.decl.placeOf("by"), "rule."+r.decl.kind.Word()+"_by_unique", named.Replace(whole.Hint),
		"%s; %s alone is not the key of %s", whole.Reason, theirs.decl.unique.text, theirs.decl.name.text)
}

// unfilled reports variables of the other side's key that nothing fills.
func (c *checker) unfilled(r *checkedRule, theirs, ours *checkedEntity, missing []string) {
	for _, name := range missing {
		if c.blames(ours, name) {
			return
		}
	}
	tn, on := theirs.decl.name.text, ours.decl.name.text
	have := "no variables"
	if len(ours.shape.variables) > 0 {
		have = strings.Join(ours.shape.variables, ", ")
	}
	names := missing
	for _, pair := range r.decl.by { // keep what is there already
		if pair.theirs.text == pair.ours.text && slices.Index(names, pair.theirs.text) < 0 &&
			slices.Index(theirs.shape.variables, pair.theirs.text) >= 0 {
			names = append([]string{pair.theirs.text}, names...)
		}
	}
	by := names[0]
	if len(names) > 1 {
		by = "[" + strings.Join(names, ", ") + "]"
	}
	it := "it"
	if len(missing) > 1 {
		it = "them"
	}
	hint := fmt.Sprintf("if %s items carry %s as attributes, add `by: %s`; under another name, `by: { %s: thatName }`", on, it, by, missing[0])
	if it == "it" {
		hint = strings.Replace(hint, "as attributes", "as an attribute", 1)
	}
	if u := theirs.decl.unique; u.Given() && r.traits.WholeKey == nil && len(r.decl.by) == 0 {
		hint = fmt.Sprintf("%s items are known by %s: if %s items carry it, add `by: %s`", tn, u.text, on, u.text)
	}
	at := r.decl.at
	if r.decl.hasBy {
		at = r.decl.placeOf("by")
	}
	c.Add(at, "key.unfilled", hint, "%s's key needs %s; %s's key has %s", tn, strings.Join(missing, ", "), on, have)
}
