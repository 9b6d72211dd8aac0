package declared

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

func (p Parser) rules(n *document.Node, f *File) {
	if n.Empty() {
		p.AddExample(n.Place, "file.missing", rulesHint, p.Kinds.smallestRules(), "the file has no rules: nothing is derived from anything")
		return
	}
	for _, entry := range p.named(n, "rules", p.Kinds.example(), RulesMax) {
		if !ruleName.MatchString(entry.Name) {
			p.Add(entry.Place, "rule.name", "a name has up to 64 letters, digits, - and _", "%q cannot be a rule's name", entry.Name)
		}
		if entry.Value.Kind != document.MappingNode {
			p.wrongNode(entry.Value, "rule "+entry.Name, "a mapping")
			continue
		}
		if d := p.rule(entry); d != nil {
			f.Rules = append(f.Rules, d)
		}
	}
}

// ruleName is what a rule's name looks like.
var ruleName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// rule reads one rule; nil if it cannot be read further.
func (p Parser) rule(entry document.Field) *Declaration {
	d := &Declaration{parser: p, Name: Word{At: entry.Place, Text: entry.Name}, keys: entry.Value.Fields, values: map[string]*document.Node{}}
	for _, f := range d.keys {
		d.values[f.Name] = f.Value
	}
	given := p.Kinds.givenBy(d.keys)
	switch len(given) {
	case 0:
		p.noKind(d)
		return nil
	case 1:
		d.Kind, d.At = p.Kinds.variant(given[0].Name, d.HasKey), given[0].Place
	default:
		p.Add(given[1].Place, "rule.two_kinds", "make two rules of it", "a rule does one thing; this one has %s already", given[0].Name)
		return nil
	}
	traits := d.Kind.Traits()
	word := d.values[d.Kind.Word()]
	d.Lists = traits.ListsTo != "" && !isNumber(word) && !d.wantsNumber(traits)
	if !p.rightKeys(d) {
		return nil
	}
	d.Source = p.word(d.values[traits.SourceField], traits.SourceField)
	if d.Target = d.Source; !traits.OneEntity() {
		field := d.TargetField()
		d.Target = p.word(d.values[field], field)
	}
	p.readWritten(d, word)
	if n := d.values["per"]; n != nil && traits.hasKey("per") {
		d.Per = p.nameOrExpression(n, "per")
	}
	if n := d.values["order"]; n != nil && traits.hasKey("order") {
		d.Order = p.orderName(p.word(n, "order"), traits)
	}
	d.Kind.Read(d)
	for _, e := range traits.Expressions {
		d.Expressions = append(d.Expressions, p.expression(d.values[e.Key], e.Key))
	}
	d.Where = p.expression(d.values["where"], "where")
	if n := d.values["by"]; n != nil {
		d.By, d.BadBy = p.by(n)
	}
	if n := d.values["each"]; n != nil && traits.hasKey("each") {
		d.Each = p.each(n)
	}
	return d
}

// readWritten reads what the rule writes.
func (p Parser) readWritten(d *Declaration, word *document.Node) {
	traits := d.Kind.Traits()
	if d.Lists {
		d.Written = p.pairs(word, d.Kind.Word())
		return
	}
	if traits.Displays != "" {
		d.readDisplay(traits)
	}
	n := d.values[traits.AttributesField]
	if n == nil {
		return
	}
	attributes := p.pairs(n, traits.AttributesField)
	if traits.Displays == "" {
		d.Written = attributes
		return
	}
	d.Shown = attributes
	for i, a := range attributes {
		if slices.ContainsFunc(attributes[:i], func(b Written) bool { return a.As.Text == b.As.Text }) {
			p.Add(a.As.At, "rule.two_writers", "name it once", "each map of the list would have %s twice", a.As.Text)
		}
	}
}

// wantsNumber reports whether a rule has the keys that go with a number under its kind's word, and not the one that goes with a list.
func (d *Declaration) wantsNumber(t *Traits) bool {
	return d.HasKey(t.TargetField) && d.HasKey(t.AttributesField) && !d.HasKey(t.ListsTo)
}

// orderName is the name under `order`. It reports what looks like an expression, or like a name with a direction.
func (p Parser) orderName(w Word, t *Traits) Word {
	if isQuotedName(w.Text) || p.Former || !strings.ContainsAny(w.Text, " ,([+*/") && !strings.HasPrefix(w.Text, "-") {
		return p.name(w)
	}
	i := slices.IndexFunc(t.Keys, func(k Key) bool { return k.Name == "order" })
	p.Add(w.At, "rule.order", t.Keys[i].Hint+". `order` takes no expression and no direction: `first` shows the lowest, `last` the highest",
		"%q is not the name of an attribute", w.Text)
	return Word{At: w.At}
}

// isNumber reports whether a number stands in the file, or what looks like one.
func isNumber(n *document.Node) bool {
	text := strings.TrimLeft(n.Text, "+-")
	return n.Kind == document.ScalarNode && text != "" && text[0] >= '0' && text[0] <= '9'
}

// noKind reports a rule that does nothing which some kind of rule does.
func (p Parser) noKind(d *Declaration) {
	words := p.Kinds.words()
	for _, f := range d.keys {
		if p.Kinds.named(f.Name) != nil {
			p.Add(f.Place, "rule.later_kind", "there are "+enumerate(words, "and"), "%s is planned, but this version does not know it", f.Name)
			return
		}
		if !p.Kinds.hasKey(f.Name) {
			p.Add(f.Place, "rule.unknown_field", spelling.DidYouMean(f.Name, words), "a rule has no field %q", f.Name)
			return
		}
	}
	for i, word := range words {
		words[i] = "`" + word + "`"
	}
	p.Add(d.Name.At, "rule.kind", "a rule has one of "+enumerate(words, "and"), "rule %s does not say what it does", d.Name.Text)
}

// rightKeys reports keys that the kind does not have, and required ones that
// are missing; false if the rule cannot be read further.
func (p Parser) rightKeys(d *Declaration) bool {
	traits := d.Kind.Traits()
	under, what := d.under(), traits.Noun
	if d.Lists {
		what += " of one item's attributes"
	} else if under == ANumber {
		what += " of a number of items"
	}
	allowed, variants := traits.keyNames(under), p.Kinds.variantsOf(d.Kind)
	for _, v := range variants {
		allowed = append(allowed, v.Traits().Variant)
	}
	slices.Sort(allowed)
	for _, f := range d.keys {
		variant := slices.IndexFunc(variants, func(v Kind) bool { return v.Traits().hasKey(f.Name) })
		switch {
		case f.Name == d.Kind.Word() || traits.hasKeyUnder(f.Name, under):
		case variant >= 0:
			key := variants[variant].Traits().Variant
			p.Add(f.Place, "rule.field_of_variant", "write `"+key+": true` beside it, or leave it out", "`%s` goes with `%s: true`", f.Name, key)
		case p.Kinds.hasKey(f.Name):
			p.Add(f.Place, "rule.field_of_other_kind", "it has "+strings.Join(allowed, ", "), "%s has no `%s`", what, f.Name)
		case f.Value.Kind == document.NullNode && strings.Count(f.Name, `"`)%2 == 1:
			if !d.cutExpression() { // otherwise the checker reports the expression that the comma has ended
				p.Add(f.Place, "yaml.flow", "put the whole expression in single quotes", "inside { }, the comma before this has ended the expression")
			}
		default:
			p.Add(f.Place, "rule.unknown_field", spelling.DidYouMean(f.Name, allowed), "%s has no field %q", what, f.Name)
		}
	}
	complete := true
	for _, key := range traits.Keys {
		if !key.Required || !key.isUnder(under) || d.values[key.Name] != nil {
			continue
		}
		complete = false
		if !p.misspelt(d, key.Name) {
			p.Add(d.At, "rule.missing_field", key.Hint, "rule %s has no `%s`", d.Name.Text, key.Name)
		}
	}
	return complete
}

// cutExpression reports whether an expression of the rule ends inside a string.
func (d *Declaration) cutExpression() bool {
	cut := func(n *document.Node) bool {
		return n != nil && n.Kind == document.ScalarNode && !n.Quoted && strings.Count(n.Text, `"`)%2 == 1
	}
	return cut(d.values["where"]) ||
		slices.ContainsFunc(d.Kind.Traits().Expressions, func(e Expression) bool { return cut(d.values[e.Key]) })
}

// misspelt reports whether an unknown field of the rule was probably meant to be this key.
func (p Parser) misspelt(d *Declaration, key string) bool {
	return slices.ContainsFunc(d.keys, func(f document.Field) bool {
		return !p.Kinds.hasKey(f.Name) && f.Name != d.Kind.Word() && spelling.Near(f.Name, key)
	})
}

// expression reads an expression: a text, or a bare true, false or number.
func (p Parser) expression(n *document.Node, what string) Word {
	if n == nil {
		return Word{}
	}
	if n.Kind == document.MappingNode || n.Kind == document.ListNode {
		p.Add(n.Place, "yaml.flow", "put the whole expression in single quotes", "to YAML, this is %s, not an expression", n.Describe())
		return Word{At: n.Place}
	}
	w := p.word(n, what)
	if w.Given() {
		w.Text = n.Text // as it is: places count from its beginning
	}
	return w
}

// pairs reads "a as b", "a", or a list of these.
func (p Parser) pairs(n *document.Node, what string) []Written {
	const hint = "write `name as userName`; several go into a list: [name as userName, avatar]; a name with blanks stands in backquotes"
	var ps []Written
	if n.Kind == document.ListNode && len(n.Items) == 0 {
		p.Add(n.Place, "yaml.shape", "", "%s is an empty list", what)
	}
	if n.Kind == document.MappingNode {
		p.Add(n.Place, "rule.pair", hint, "%s must be a text or a list of texts; this is a mapping", what)
		return nil
	}
	for _, w := range p.words(n, "an attribute of "+what) {
		if len(fieldsOf(w.Text)) == 1 {
			name := p.name(w)
			ps = append(ps, Written{As: name, From: name})
		} else if from, as, ok := p.oneAsAnother(w); ok {
			ps = append(ps, Written{As: as, From: from})
		} else {
			p.Add(w.At, "rule.pair", hint, "%q is neither an attribute nor `one as another`", w.Text)
		}
	}
	return ps
}

// nameOrExpression reads a value of `by` or `per`. Names with a hyphen between are no subtraction without blanks.
func (p Parser) nameOrExpression(n *document.Node, what string) Word {
	w := p.word(n, what)
	if hyphened.MatchString(w.Text) || templates.IsName(w.Text) || isQuotedName(w.Text) {
		return p.name(w)
	}
	if w.Given() {
		w.Text, w.Expression = n.Text, true // as it is: places count from its beginning
	}
	return w
}

// hyphened is what looks like one name and is a subtraction.
var hyphened = regexp.MustCompile(`^[A-Za-z_]\w*(-[A-Za-z_]\w*)+$`)

// oneAsAnother reads "a as b"; false if the text is not so.
func (p Parser) oneAsAnother(w Word) (from, as Word, ok bool) {
	fields := fieldsOf(w.Text)
	if len(fields) != 3 || w.Text[fields[1][0]:fields[1][1]] != "as" {
		return from, as, false
	}
	field := func(i int) Word { return p.name(w.within(fields[i][0], fields[i][1]-fields[i][0])) }
	from = field(0)
	return from, field(2), true
}

// each reads "tags as tag".
func (p Parser) each(n *document.Node) Each {
	w := p.word(n, "each")
	if !w.Given() {
		return Each{Unread: true}
	}
	list, as, ok := p.oneAsAnother(w)
	if !ok {
		const hint = "name the list, and one of its elements: `each: tags as tag`"
		p.Add(w.At, "rule.each", hint, "%q does not say what an element is called", w.Text)
		return Each{Unread: true}
	}
	return Each{List: list, As: as, Unread: !list.Given() || !as.Given()}
}

// by reads a name, a list of names, or a mapping {theirs: ours}.
func (p Parser) by(n *document.Node) (pairs []JoinPair, bad bool) {
	if n.Kind != document.MappingNode {
		for _, w := range p.words(n, "by") {
			if strings.ContainsAny(w.Text, "([+*/") && !isQuotedName(w.Text) {
				p.Add(w.At, "rule.by", "write `by: { theirs: \"...\" }` with the variable of the other side's key that it fills",
					"%q is an expression: nothing says what it fills", w.Text)
				bad = true
				continue
			}
			w = p.name(w)
			pairs = append(pairs, JoinPair{w, w})
		}
		return pairs, bad
	}
	known := map[string]bool{}
	for _, f := range n.Fields {
		if ours := p.nameOrExpression(f.Value, "by"); ours.Given() {
			pairs = append(pairs, JoinPair{p.newName(Word{At: f.Place, Text: f.Name}, known), ours})
		}
	}
	return pairs, bad
}
