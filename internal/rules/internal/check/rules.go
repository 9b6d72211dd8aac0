package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/internal/rules/expr"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/joins"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// rule checks one rule by itself; nil if its entities are unknown or broken.
func (c *checker) rule(decl *declared.Declaration) *Rule {
	r := &Rule{Decl: decl, Traits: decl.Kind.Traits(), Per: joins.Nowhere}
	r.Source = c.find(decl.Source)
	if r.Target = r.Source; !r.Traits.OneEntity() {
		r.Target = c.find(decl.Target)
	}
	r.Where = c.expression(decl.Where, "where", "a condition, as in `role != \"banned\"`", expr.Bool)
	for i, e := range r.Traits.Expressions {
		program := c.expression(decl.Expressions[i], e.Key, e.Want, e.Type)
		if program != nil && e.Ordered {
			c.ordered(decl.Expressions[i], e, program.Type())
		}
		r.Expressions = append(r.Expressions, program)
	}
	c.attributes(r)
	c.order(r)
	c.each(r)
	if r.Source == nil || r.Target == nil {
		return nil
	}
	if !r.Source.Broken && !r.Target.Broken {
		if r.Traits.WritesSource() {
			r.Decl.By = nil // refused as a key that its kind does not have
		}
		c.join(r)
		c.per(r)
	}
	return r
}

// find returns the entity of a name; nil, with a problem, if there is none.
func (c *checker) find(w declared.Word) *Entity {
	if !w.Given() {
		return nil
	}
	i := slices.IndexFunc(c.out.Entities, func(e *Entity) bool { return e.Decl.Name.Text == w.Text })
	if i < 0 {
		c.unknown[w.Text] = append(c.unknown[w.Text], w)
		return nil
	}
	return c.out.Entities[i]
}

// sayUnknown reports each name of an entity that does not exist once, however
// many rules have it.
func (c *checker) sayUnknown() {
	var names []string
	for _, e := range c.out.Entities {
		names = append(names, e.Decl.Name.Text)
	}
	if len(names) == 0 {
		return // the parser has reported that there are none
	}
	for _, name := range slices.Sorted(maps.Keys(c.unknown)) {
		places, also := c.unknown[name], ""
		if n := len(places) - 1; n == 1 {
			also = fmt.Sprintf("; line %d names it, too", places[1].At.Line)
		} else if n > 1 {
			also = fmt.Sprintf("; %d more places name it, the next in line %d", n, places[1].At.Line)
		}
		c.Add(places[0].At, "rule.unknown_entity", spelling.DidYouMean(name, names), "there is no entity %q%s", name, also)
	}
}

// expression compiles where or sum; nil if there is none, or a wrong one.
func (c *checker) expression(w declared.Word, field, want string, typ expr.Type) *expr.Program {
	if !w.Given() {
		return nil
	}
	program, err := expr.Compile(w.Text)
	if err != nil {
		c.badExpression(w, field, err)
		return nil
	}
	if t := program.Type(); t != typ && t != expr.Any && typ != expr.Any {
		c.Add(c.expressionPlace(w), "expr.type", "", "%s must be %s; this is %s", field, want, t)
		return nil
	}
	c.reservedReads(w, program.Reads())
	return program
}

// expressionPlace is where the whole text of an expression stands.
func (c *checker) expressionPlace(w declared.Word) document.Place {
	return c.Locate(w.Node, 0, len(w.Text))
}

// template compiles the text of an attribute that a rule works out from an item; nil if there is none, or a wrong one.
func (c *checker) template(w declared.Written) *expr.Template {
	if w.Template.Node == nil {
		return nil
	}
	t, err := expr.CompileTemplate(w.Template.Text)
	if err != nil {
		c.badExpression(w.Template, w.As.Text, err)
		return nil
	}
	c.reservedReads(w.Template, t.Reads())
	c.constantExpression(w)
	return t
}

// constantExpression warns of a text that reads as an expression, but has no = before it.
func (c *checker) constantExpression(w declared.Written) {
	program, err := expr.Compile(w.Template.Text)
	if err != nil || len(program.Reads()) == 0 {
		return
	}
	arithmetic := program.Type() == expr.Number || program.Type() == expr.Any
	if arithmetic && !strings.ContainsAny(strings.Trim(w.Template.Text, " ()"), " (*") {
		return // a name alone, or a text such as blog-post or text/plain
	}
	c.Warn(c.expressionPlace(w.Template), "rule.constant", fmt.Sprintf("if it is an expression, write %q", "= "+w.Template.Text),
		"every item gets the text %q", w.Template.Text)
}

const readYourOwn = "read an attribute of your own"

// reservedReads reports attributes of the engine's own that an expression reads.
func (c *checker) reservedReads(w declared.Word, reads []string) {
	for _, name := range reads {
		c.reservedHint(declared.Word{At: c.expressionPlace(w), Text: name}, readYourOwn)
	}
}

// ordered reports an expression whose values have no order.
func (c *checker) ordered(w declared.Word, e declared.Expression, t expr.Type) {
	if t != expr.Any && t != expr.Number && t != expr.String {
		c.Add(c.expressionPlace(w), "expr.type", "", "%s must be %s; this is %s", e.Key, e.Want, t)
	}
}

// order checks by what the items of one target are ordered, and what the target shows of each.
func (c *checker) order(r *Rule) {
	if r.Decl.Order.Given() {
		c.readAttribute(r.Decl.Order, r.Source)
	}
	for _, w := range r.Decl.Shown {
		c.readAttribute(w.From, r.Source)
		if w.As.Text != w.From.Text {
			c.plainAttribute(w.As)
		}
	}
}

func (c *checker) badExpression(w declared.Word, field string, err error) {
	bad, _ := errors.AsType[*expr.Error](err)
	if comment, cut := c.Cut(w.At.Line); cut && !w.Node.Quoted && bad.Offset+bad.Length >= len(w.Text)-1 {
		c.Add(comment, "yaml.comment", "put the whole expression in quotes: single ones, if it has double quotes inside",
			"to YAML, everything from this # on is a comment, so that %s is only: %s", field, w.Text)
		return
	}
	if c.cutByComma(w) && bad.Offset+bad.Length >= len(w.Text)-1 {
		c.Add(c.Locate(w.Node, bad.Offset, bad.Length), "yaml.flow", "put the whole expression in single quotes",
			"inside { }, a comma ends a value without quotes, so that %s is only: %s", field, w.Text)
		return
	}
	c.Add(c.Locate(w.Node, bad.Offset, bad.Length), bad.Code, bad.Hint, "%s", bad.Message)
}

// cutByComma reports whether the expression has an open quote and a comma follows it in the file.
func (c *checker) cutByComma(w declared.Word) bool {
	if w.Node.Quoted || strings.Count(w.Text, `"`)%2 == 0 {
		return false
	}
	_, after, found := strings.Cut(c.Line(w.At.Line), w.Text)
	return found && strings.HasPrefix(strings.TrimSpace(after), ",")
}

// attributes checks what the rule writes, and from what.
func (c *checker) attributes(r *Rule) {
	for _, w := range r.Decl.Written {
		if w.From.Given() {
			c.readAttribute(w.From, r.Source)
		}
		if w.As.Text != w.From.Text {
			c.plainAttribute(w.As)
		}
		if t := c.template(w); c.writable(r, w.As) {
			r.Writes = append(r.Writes, Written{w, t})
		}
	}
	if r.Traits.MakesItems && r.Target != nil {
		for _, eq := range r.Target.Equals {
			w := declared.Written{As: declared.Word{At: r.Decl.At, Text: eq.Attribute}, Constant: eq.Value}
			r.Writes = append(r.Writes, Written{Written: w})
		}
	}
	r.Decl.Kind.Check(r.Decl)
}

// plainAttribute reports a name that is no whole attribute of a user's.
func (c *checker) plainAttribute(w declared.Word) {
	c.reserved(w)
	c.whole(w, "")
}

// readAttribute checks an attribute of an entity's items that a rule only reads, as plainAttribute does.
func (c *checker) readAttribute(w declared.Word, of *Entity) {
	c.reservedHint(w, readYourOwn)
	remedy := ""
	if steps := strings.Split(w.Text, "."); of != nil && len(steps) == 2 && steps[0] != "" && steps[1] != "" {
		_, first := utf8.DecodeRuneInString(steps[1])
		own := steps[0] + strings.ToUpper(steps[1][:first]) + steps[1][first:]
		remedy = fmt.Sprintf("another rule can make the part an attribute: { set: { %s: \"${%s}\" }, of: %s }", own, w.Text, of.Decl.Name.Text)
	}
	c.whole(w, remedy)
}

// whole reports a name of what is inside another attribute. The remedy says how a rule can use the part; "" if it cannot.
func (c *checker) whole(w declared.Word, remedy string) {
	name, _, inside := strings.Cut(w.Text, ".")
	if w.Backquoted || !inside {
		return
	}
	if remedy == "" {
		remedy = "name the whole attribute: " + name
	}
	c.Add(w.At, "rule.nested_attribute", remedy+"; a name that has a dot itself stands in backquotes",
		"%q would be inside another attribute; rules read and write whole ones", w.Text)
}

// writable reports an attribute of the target that a rule must not write, and returns false.
func (c *checker) writable(r *Rule, w declared.Word) bool {
	if c.isKey(w.Text) {
		hint := "choose another attribute; an item's key cannot change"
		if r.Traits.MakesItems {
			hint = fmt.Sprintf("drop it: the key of %s item comes from its entity's template", r.Traits.Noun)
		}
		c.Add(w.At, "rule.writes_key", hint, "%s is a key of the table", w.Text)
		return false
	}
	if r.Target == nil {
		return true
	}
	name := r.Target.Decl.Name.Text
	for _, eq := range r.Target.Equals {
		if eq.Attribute != w.Text {
			continue
		}
		hint := "choose another attribute: an item that loses its mark is no " + name + " any more"
		if r.Traits.MakesItems {
			hint = fmt.Sprintf("drop it: %s items get it by themselves", r.Decl.Kind.Word())
		}
		c.Add(w.At, "rule.writes_match", hint, "%s is what items are known as %s by", w.Text, name)
		return false
	}
	if u := r.Target.Unique; !r.Traits.MakesItems && u.IsAttribute() && u.Attribute == w.Text {
		c.Add(w.At, "rule.writes_unique", "choose another attribute", "%s is the id that %s items are found by", w.Text, name)
		return false
	}
	return true
}
