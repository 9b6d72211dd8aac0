package rules

import (
	"strconv"
	"strings"
)

// kindKeys are the keys that give a rule its kind.
var kindKeys = []struct {
	key  string
	kind Kind
}{{"copy", Copy}, {"mirror", Mirror}, {"count", Count}, {"sum", Sum}}

// ruleKeys are the other keys of a rule, with the kinds that have them.
var ruleKeys = map[string][]Kind{
	"from":         {Copy},
	"to":           {Copy},
	"if_missing":   {Copy},
	"as":           {Mirror, Count, Sum},
	"where":        {Mirror, Count, Sum},
	"of":           {Sum},
	"write_shards": {Count, Sum},
	"attributes":   {Mirror},
	"set":          {Mirror},
	"by":           {Copy, Mirror, Count, Sum},
}

// required are the keys that a rule of a kind cannot do without.
var required = map[Kind][]string{Copy: {"from", "to"}, Mirror: {"as"}, Count: {"as"}, Sum: {"of", "as"}}

// String returns the rule file's word for the kind.
func (k Kind) String() string {
	for _, kk := range kindKeys {
		if kk.kind == k {
			return kk.key
		}
	}
	return "none"
}

func (p fileParser) rules(n *node, f *fileDecl) {
	if n.empty() {
		p.addExample(n.place, "file.missing", "name a rule and say what it does, as in:", smallestRules, "the file has no rules: nothing is derived from anything")
		return
	}
	if n.kind != mappingNode {
		p.wrongNode(n, "rules", "a mapping from names to rules, as in `comment-count: { count: Comment, as: Post.commentCount }`")
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
		if r, ok := p.rule(entry); ok {
			f.rules = append(f.rules, r)
		}
	}
}

func isRuleName(s string) bool {
	const nameBytesMax = 64
	return len(s) <= nameBytesMax && s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// rule reads one rule; false if even its kind is unknown.
func (p fileParser) rule(entry field) (ruleDecl, bool) {
	r := ruleDecl{name: word{place: entry.place, text: entry.name}, keys: entry.value.fields, writeShards: 1}
	values := map[string]*node{}
	for _, f := range entry.value.fields {
		values[f.name] = f.value
		for _, kk := range kindKeys {
			if kk.key != f.name {
				continue
			}
			if r.kind != 0 {
				p.add(f.place, "rule.two_kinds", "make two rules of it", "a rule does one thing; this one has %s already", r.kind)
				return r, false
			}
			r.kind, r.at = kk.kind, f.place
		}
	}
	if r.kind == 0 {
		p.noKind(&r)
		return r, false
	}
	if !p.rightKeys(&r, values) {
		return r, false
	}
	p.ruleValues(&r, values)
	return r, true
}

// noKind reports a rule that neither copies nor mirrors nor counts nor sums.
func (p fileParser) noKind(r *ruleDecl) {
	names := []string{"copy", "mirror", "count", "sum"}
	for _, f := range r.keys {
		switch f.name {
		case "avg", "min", "max", "latest", "derive", "delete":
			p.add(f.place, "rule.later_kind", "there are copy, mirror, count and sum", "%s is planned, but this version does not know it", f.name)
			return
		}
		if _, known := ruleKeys[f.name]; !known {
			p.add(f.place, "rule.unknown_field", didYouMean(f.name, names), "a rule has no field %q", f.name)
			return
		}
	}
	p.add(r.name.place, "rule.kind", "a rule has one of `copy`, `mirror`, `count` and `sum`", "rule %s does not say what it does", r.name.text)
}

// cutExpression reports whether the expression ends inside a string.
func cutExpression(n *node) bool {
	return n != nil && n.kind == scalarNode && !n.quoted && strings.Count(n.text, `"`)%2 == 1
}

// rightKeys reports keys that the kind does not have, and required ones that
// are missing; false if the rule cannot be read further.
func (p fileParser) rightKeys(r *ruleDecl, values map[string]*node) bool {
	allowed := []string{}
	for _, key := range sortedKeys(ruleKeys) {
		for _, kind := range ruleKeys[key] {
			if kind == r.kind {
				allowed = append(allowed, key)
			}
		}
	}
	article := map[Kind]string{Copy: "a copy", Mirror: "a mirror", Count: "a count", Sum: "a sum"}[r.kind]
	for _, f := range r.keys {
		if f.name == r.kind.String() || indexOf(allowed, f.name) >= 0 {
			continue
		}
		if _, known := ruleKeys[f.name]; known {
			p.add(f.place, "rule.field_of_other_kind", "it has "+strings.Join(allowed, ", "), "%s has no `%s`", article, f.name)
			continue
		}
		if f.value.kind == nullNode && strings.Count(f.name, `"`)%2 == 1 {
			if cutExpression(values["where"]) || cutExpression(values["sum"]) {
				continue // the checker reports the expression that the comma has ended
			}
			p.add(f.place, "yaml.flow", "put the whole expression in single quotes", "inside { }, the comma before this has ended the expression")
			continue
		}
		p.add(f.place, "rule.unknown_field", didYouMean(f.name, allowed), "%s has no field %q", article, f.name)
	}
	complete := true
	for _, key := range required[r.kind] {
		if values[key] != nil {
			continue
		}
		complete = false
		if p.misspelt(r, key) {
			continue
		}
		hint := map[string]string{
			"from": "name the entity that has the attributes: `from: User`",
			"to":   "name the entity that gets them: `to: Comment`",
			"of":   "name the entity whose items are summed: `of: LineItem`",
			"as":   "name the entity and its attribute: `as: Group.memberCount`",
		}[key]
		if r.kind == Mirror {
			hint = "name the entity that the mirror items are: `as: Member`"
		}
		p.add(r.at, "rule.missing_field", hint, "rule %s has no `%s`", r.name.text, key)
	}
	return complete
}

// misspelt reports whether an unknown field of the rule was probably meant to be this key.
func (p fileParser) misspelt(r *ruleDecl, key string) bool {
	for _, f := range r.keys {
		if _, known := ruleKeys[f.name]; !known && f.name != r.kind.String() && near(f.name, key) {
			return true
		}
	}
	return false
}

func (p fileParser) ruleValues(r *ruleDecl, values map[string]*node) {
	switch r.kind {
	case Copy:
		r.pairs = p.pairs(values["copy"], "copy")
		r.source = p.word(values["from"], "from")
		r.target = p.word(values["to"], "to")
		if n := values["if_missing"]; n != nil {
			r.ifMissing = p.constants(n, "if_missing", true)
		}
	case Mirror:
		r.source = p.word(values["mirror"], "mirror")
		r.target = p.word(values["as"], "as")
		if n := values["attributes"]; n != nil {
			r.pairs = p.pairs(n, "attributes")
		}
		if n := values["set"]; n != nil {
			r.set = p.constants(n, "set", true)
		}
	case Count, Sum:
		p.aggregate(r, values)
	}
	if n := values["where"]; n != nil {
		r.where = p.expression(n, "where")
	}
	if n := values["by"]; n != nil {
		r.hasBy = true
		p.by(n, r)
	}
}

func (p fileParser) aggregate(r *ruleDecl, values map[string]*node) {
	if r.kind == Count {
		r.source = p.word(values["count"], "count")
	} else {
		r.sum = p.expression(values["sum"], "sum")
		r.source = p.word(values["of"], "of")
	}
	if as := p.word(values["as"], "as"); as.given() {
		dot := strings.IndexByte(as.text, '.')
		if dot < 1 || dot == len(as.text)-1 {
			p.add(as.place, "rule.as", "write an entity and an attribute, as in `as: Group.memberCount`",
				"%q does not say which attribute of which entity shows the %s", as.text, r.kind)
		} else {
			r.target = as.within(0, dot)
			r.attribute = as.within(dot+1, len(as.text)-dot-1)
		}
	}
	if n := values["write_shards"]; n != nil && n.kind != badNode {
		shards, err := strconv.Atoi(n.text)
		if n.kind != scalarNode || err != nil || shards < 1 || shards > WriteShardsMax {
			p.add(n.place, "rule.write_shards", "1 is right unless hundreds of items a second change one aggregate",
				"write_shards must be a whole number from 1 to %d", WriteShardsMax)
			return
		}
		r.writeShards = shards
	}
}

// expression reads where or sum: a text, or a bare true, false or number.
func (p fileParser) expression(n *node, what string) word {
	if n.kind == mappingNode || n.kind == listNode {
		p.add(n.place, "yaml.flow", "put the whole expression in single quotes", "to YAML, this is %s, not an expression", n.describe())
		return word{place: n.place}
	}
	w := p.word(n, what)
	if w.given() {
		w.text = n.text // as it is: places count from its beginning
	}
	return w
}

// pairs reads "a as b", "a", or a list of these.
func (p fileParser) pairs(n *node, what string) []pair {
	var ps []pair
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
			ps = append(ps, pair{w, w})
		case len(fields) == 3 && fields[1] == "as":
			at := strings.LastIndex(w.text, fields[2])
			ps = append(ps, pair{w.within(0, len(fields[0])), w.within(at, len(fields[2]))})
		default:
			p.add(w.place, "rule.pair", "write `name as userName`; several go into a list: [name as userName, avatar]",
				"%q is neither an attribute nor `one as another`", w.text)
		}
	}
	return ps
}

// by reads a name, a list of names, or a mapping {theirs: ours}.
func (p fileParser) by(n *node, r *ruleDecl) {
	if n.kind != mappingNode {
		for _, w := range p.words(n, "by") {
			r.by = append(r.by, joinPair{w, w})
		}
		return
	}
	for _, f := range n.fields {
		if ours := p.word(f.value, "by"); ours.given() {
			r.by = append(r.by, joinPair{word{place: f.place, text: f.name}, ours})
		}
	}
}
