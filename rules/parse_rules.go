package rules

import (
	"slices"
	"strings"
)

func (p fileParser) rules(n *node, f *fileDecl) {
	if n.empty() {
		p.addExample(n.place, "file.missing", "name a rule and say what it does, as in:", p.kinds.smallestRules(), "the file has no rules: nothing is derived from anything")
		return
	}
	if n.kind != mappingNode {
		p.wrongNode(n, "rules", "a mapping from names to rules, as in `"+p.kinds.example()+"`")
		return
	}
	if len(n.fields) > RulesMax {
		p.add(n.place, "file.too_many", "", "there are %d rules; at most %d are allowed", len(n.fields), RulesMax)
		return
	}
	for _, entry := range n.fields {
		if !isRuleName(entry.name) {
			p.add(entry.place, "rule.name", "a name has up to 64 letters, digits, - and _", "%q cannot be a rule's name", entry.name)
		}
		if entry.value.kind != mappingNode {
			p.wrongNode(entry.value, "rule "+entry.name, "a mapping")
			continue
		}
		if d := p.rule(entry); d != nil {
			f.rules = append(f.rules, d)
		}
	}
}

func isRuleName(s string) bool {
	const nameBytesMax = 64
	return len(s) <= nameBytesMax && s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// rule reads one rule; nil if it cannot be read further.
func (p fileParser) rule(entry field) *Declaration {
	d := &Declaration{parser: p, name: Word{place: entry.place, text: entry.name}, keys: entry.value.fields, values: map[string]*node{}}
	for _, f := range d.keys {
		d.values[f.name] = f.value
		kind := p.kinds.named(f.name)
		if kind == nil || isPlanned(kind) {
			continue
		}
		if d.kind != nil {
			p.add(f.place, "rule.two_kinds", "make two rules of it", "a rule does one thing; this one has %s already", d.kind.Word())
			return nil
		}
		d.kind, d.at = kind, f.place
	}
	if d.kind == nil {
		p.noKind(d)
		return nil
	}
	if !p.rightKeys(d) {
		return nil
	}
	traits := d.kind.Traits()
	d.source = p.word(d.values[traits.SourceField], traits.SourceField)
	d.target = p.word(d.values[traits.TargetField], traits.TargetField)
	if traits.Displays != "" {
		d.readDisplay(traits)
	}
	if n := d.values[traits.AttributesField]; n != nil {
		d.writes = p.pairs(n, traits.AttributesField)
	}
	d.kind.Read(d)
	for _, e := range traits.Expressions {
		d.expressions = append(d.expressions, p.expression(d.values[e.Key], e.Key))
	}
	d.where = p.expression(d.values["where"], "where")
	if n := d.values["by"]; n != nil {
		d.hasBy, d.by = true, p.by(n)
	}
	return d
}

// noKind reports a rule that does nothing which some kind of rule does.
func (p fileParser) noKind(d *Declaration) {
	words := p.kinds.words()
	for _, f := range d.keys {
		if p.kinds.named(f.name) != nil {
			p.add(f.place, "rule.later_kind", "there are "+enumerate(words, "and"), "%s is planned, but this version does not know it", f.name)
			return
		}
		if !p.kinds.hasKey(f.name) {
			p.add(f.place, "rule.unknown_field", didYouMean(f.name, words), "a rule has no field %q", f.name)
			return
		}
	}
	for i, word := range words {
		words[i] = "`" + word + "`"
	}
	p.add(d.name.place, "rule.kind", "a rule has one of "+enumerate(words, "and"), "rule %s does not say what it does", d.name.text)
}

// rightKeys reports keys that the kind does not have, and required ones that
// are missing; false if the rule cannot be read further.
func (p fileParser) rightKeys(d *Declaration) bool {
	traits := d.kind.Traits()
	allowed := traits.keyNames()
	for _, f := range d.keys {
		switch {
		case f.name == d.kind.Word() || traits.hasKey(f.name):
		case p.kinds.hasKey(f.name):
			p.add(f.place, "rule.field_of_other_kind", "it has "+strings.Join(allowed, ", "), "%s has no `%s`", traits.Noun, f.name)
		case f.value.kind == nullNode && strings.Count(f.name, `"`)%2 == 1:
			if !d.cutExpression() { // otherwise the checker reports the expression that the comma has ended
				p.add(f.place, "yaml.flow", "put the whole expression in single quotes", "inside { }, the comma before this has ended the expression")
			}
		default:
			p.add(f.place, "rule.unknown_field", didYouMean(f.name, allowed), "%s has no field %q", traits.Noun, f.name)
		}
	}
	complete := true
	for _, key := range traits.Keys {
		if !key.Required || d.values[key.Name] != nil {
			continue
		}
		complete = false
		if !p.misspelt(d, key.Name) {
			p.add(d.at, "rule.missing_field", key.Hint, "rule %s has no `%s`", d.name.text, key.Name)
		}
	}
	return complete
}

// cutExpression reports whether an expression of the rule ends inside a string.
func (d *Declaration) cutExpression() bool {
	cut := func(n *node) bool {
		return n != nil && n.kind == scalarNode && !n.quoted && strings.Count(n.text, `"`)%2 == 1
	}
	return cut(d.values["where"]) ||
		slices.ContainsFunc(d.kind.Traits().Expressions, func(e Expression) bool { return cut(d.values[e.Key]) })
}

// misspelt reports whether an unknown field of the rule was probably meant to be this key.
func (p fileParser) misspelt(d *Declaration, key string) bool {
	return slices.ContainsFunc(d.keys, func(f field) bool {
		return !p.kinds.hasKey(f.name) && f.name != d.kind.Word() && near(f.name, key)
	})
}

// expression reads an expression: a text, or a bare true, false or number.
func (p fileParser) expression(n *node, what string) Word {
	if n == nil {
		return Word{}
	}
	if n.kind == mappingNode || n.kind == listNode {
		p.add(n.place, "yaml.flow", "put the whole expression in single quotes", "to YAML, this is %s, not an expression", n.describe())
		return Word{place: n.place}
	}
	w := p.word(n, what)
	if w.Given() {
		w.text = n.text // as it is: places count from its beginning
	}
	return w
}

// pairs reads "a as b", "a", or a list of these.
func (p fileParser) pairs(n *node, what string) []written {
	var ps []written
	if n.kind == listNode && len(n.items) == 0 {
		p.add(n.place, "yaml.shape", "", "%s is an empty list", what)
	}
	if n.kind == mappingNode {
		p.add(n.place, "rule.pair", "write `name as userName`; several go into a list: [name as userName, avatar]",
			"%s must be a text or a list of texts; this is a mapping", what)
		return nil
	}
	for _, w := range p.words(n, "an attribute of "+what) {
		fields := strings.Fields(w.text)
		switch {
		case len(fields) == 1:
			ps = append(ps, written{as: w, from: w})
		case len(fields) == 3 && fields[1] == "as":
			at := strings.LastIndex(w.text, fields[2])
			ps = append(ps, written{as: w.within(at, len(fields[2])), from: w.within(0, len(fields[0]))})
		default:
			p.add(w.place, "rule.pair", "write `name as userName`; several go into a list: [name as userName, avatar]",
				"%q is neither an attribute nor `one as another`", w.text)
		}
	}
	return ps
}

// by reads a name, a list of names, or a mapping {theirs: ours}.
func (p fileParser) by(n *node) []joinPair {
	var pairs []joinPair
	if n.kind != mappingNode {
		for _, w := range p.words(n, "by") {
			pairs = append(pairs, joinPair{w, w})
		}
		return pairs
	}
	for _, f := range n.fields {
		if ours := p.word(f.value, "by"); ours.Given() {
			pairs = append(pairs, joinPair{Word{place: f.place, text: f.name}, ours})
		}
	}
	return pairs
}
