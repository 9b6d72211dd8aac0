package population

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
)

// vocabulary says which values each name of a rule file can have. Names
// between which values go, by a join, a copy or a mirror, have the same ones:
// that is why references meet what they refer to.
type vocabulary struct {
	like     map[string]string // name → another with the same values, and so on to one that stands for all
	meanings map[string]*meaning
	wild     *wild
	rooms    map[string][]int // by the name that stands for others: see Population.rooms
}

// meaning is what is known of the values of some names.
type meaning struct {
	id       bool   // they are part of keys, or found by
	counted  bool   // some key that they fill is a number
	amount   bool   // they are summed, or sums
	whole    bool   // they are padded: mostly whole numbers from 0 up
	flag     bool   // they are conditions by themselves
	skipped  int    // a template reads their texts from behind so many characters
	inCase   bool   // some key holds them in one letter case
	inUpper  bool   // some key holds them in upper case
	shared   bool   // they are alone in a key that several entities have
	lacked   bool   // a condition asks that an item has none
	divisor  int    // an amount divides them by this number; 0 if none does
	elements string // they are lists: the name of an element
	literals []change.Value

	ids, numbers [2]string // the usual ones; drawn once
	longer       []string
}

// newVocabulary collects what a rule file says of its names. ids are those
// that are part of keys or unique, counted those that are number keys.
func newVocabulary(f *file, ids, counted []string) *vocabulary {
	v := &vocabulary{like: map[string]string{}, meanings: map[string]*meaning{}}
	for _, pair := range slices.Concat(f.joined, f.handed) {
		v.unite(pair[0], pair[1])
	}
	for _, name := range ids {
		v.of(name).id = true
	}
	for _, pair := range f.joined {
		v.of(pair[1]).id = true
	}
	for _, name := range counted {
		v.of(name).counted = true
	}
	for _, name := range f.totals {
		v.of(name).amount = true
	}
	for _, amount := range f.amounts {
		for _, name := range readsOf(amount) {
			v.of(name).amount = true
		}
		for _, found := range quotient.FindAllStringSubmatch(amount, -1) {
			v.of(found[1]).divisor, _ = strconv.Atoi(found[2])
		}
	}
	for _, name := range f.padded {
		v.of(name).amount, v.of(name).whole = true, true
	}
	for name, from := range f.cut {
		v.of(name).skipped = max(v.of(name).skipped, from)
	}
	for _, where := range f.wheres {
		v.readCondition(where)
	}
	for _, pair := range f.lists {
		v.of(pair[0]).elements = pair[1]
	}
	return v
}

func (v *vocabulary) unite(a, b string) {
	if a, b = v.representative(a), v.representative(b); a != b {
		v.like[max(a, b)] = min(a, b)
	}
}

// representative returns the name that stands for all that have the values of name.
func (v *vocabulary) representative(name string) string {
	for {
		other, ok := v.like[name]
		if !ok {
			return name
		}
		name = other
	}
}

func (v *vocabulary) of(name string) *meaning {
	name = v.representative(name)
	if v.meanings[name] == nil {
		v.meanings[name] = &meaning{}
	}
	return v.meanings[name]
}

// words of an expression: item["a name"], a name in backquotes, a text, a number, a name, or an operator.
var words = regexp.MustCompile("`[^`]*`|" + `item\["[^"]*"\]|"[^"]*"|'[^']*'|\d+(?:\.\d+)?|[A-Za-z_]\w*|&&|\|\||[!<>=]=|\S`)

// quotient finds a name that is divided by a constant.
var quotient = regexp.MustCompile(`(\w+) / (\d+)`)

// lacking finds a name that a condition asks not to be there.
var lacking = regexp.MustCompile("!has\\((\\w+|`[^`]*`)\\)")

// readCondition finds the constants that a condition compares its names with,
// so that some of their values meet it and others do not. A constant belongs
// to the name before it, unless it is compared with the name behind it.
func (v *vocabulary) readCondition(text string) {
	reads := readsOf(text)
	found := words.FindAllString(text, -1)
	nameAt := func(i int) string {
		if i >= len(found) {
			return ""
		}
		name := unquoted(strings.TrimSuffix(strings.TrimPrefix(found[i], `item["`), `"]`))
		if !slices.Contains(reads, name) {
			return ""
		}
		return name
	}
	for _, name := range lacking.FindAllStringSubmatch(text, -1) {
		v.of(unquoted(name[1])).lacked = true
	}
	last := ""
	for i, word := range found {
		if name := nameAt(i); name != "" {
			v.of(name).flag = v.of(name).flag || alone(found, i)
			last = name
			continue
		}
		value, to := constant(word), last
		if value.Kind() == change.KindAbsent {
			continue
		}
		if behind := nameAt(i + 2); behind != "" && comparisons[found[i+1]] {
			to = behind
			if found[i+1] == "in" {
				value = change.List([]change.Value{value})
			}
		}
		if to != "" {
			v.of(to).literals = append(v.of(to).literals, value)
		}
	}
}

var comparisons = map[string]bool{"==": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true, "in": true}

// alone reports whether a name is a condition by itself: `!closed && ...`.
func alone(words []string, i int) bool {
	before, after := "", ""
	if i > 0 {
		before = words[i-1]
	}
	if i+1 < len(words) {
		after = words[i+1]
	}
	call := before == "(" && i > 1 && (words[i-2] == "has" || words[i-2] == "size")
	return !call && slices.Contains([]string{"", "!", "(", "&&", "||"}, before) && slices.Contains([]string{"", ")", "&&", "||"}, after)
}

func constant(word string) change.Value {
	switch {
	case word == "true" || word == "false":
		return change.Bool(word == "true")
	case word[0] == '"' || word[0] == '\'':
		return change.String(word[1 : len(word)-1])
	case word[0] >= '0' && word[0] <= '9':
		return change.Number(word)
	}
	return change.Value{}
}

// readsOf lists the names in an expression that rules.Load has accepted.
func readsOf(text string) []string {
	program, err := expr.Compile(text)
	if err != nil {
		return nil
	}
	return program.Reads()
}

// inCases notes the variables that keys hold in one letter case.
func (v *vocabulary) inCases(templates [][][]part) {
	for _, part := range slices.Concat(slices.Concat(templates...)...) {
		if part.variable != "" {
			m := v.of(part.variable)
			m.inCase, m.inUpper = m.inCase || part.in != "", m.inUpper || part.in == "upper"
		}
	}
}

// inSharedKeys notes the variables that are alone in a key that several entities have. They get more values: with few, one entity's
// item soon takes the place of another's, and few items are there to be joined.
func (v *vocabulary) inSharedKeys(templates [][][]part) {
	for i, entity := range templates {
		shares := func(other [][]part) bool { return slices.EqualFunc(entity, other, slices.Equal[[]part]) }
		if slices.ContainsFunc(templates[:i], shares) {
			if names := variablesOf(entity); len(names) == 1 {
				v.of(names[0]).shared = true
			}
		}
	}
}

// variablesOf lists the variables of an entity's templates, each once.
func variablesOf(templates [][]part) (names []string) {
	for _, part := range slices.Concat(templates...) {
		if part.variable != "" && !slices.Contains(names, part.variable) {
			names = append(names, part.variable)
		}
	}
	return names
}

// goWild has values drawn at the edges of what DynamoDB holds.
func (v *vocabulary) goWild(w *wild, rooms map[string][]int) {
	v.wild, v.rooms = w, map[string][]int{}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		v.rooms[v.representative(name)] = append(v.rooms[v.representative(name)], rooms[name]...)
	}
}

// drawn is what is known of a name, with ids and numbers.
func (v *vocabulary) drawn(name string) *meaning {
	m := v.of(name)
	if m.ids[0] != "" {
		return m
	}
	stem := v.representative(name)[:1]
	if stem[0] < 'A' || stem[0] > 'z' { // an attribute, unlike a variable, may begin with anything
		stem = "x"
	}
	m.ids, m.numbers, m.longer = v.wild.pair(stem), v.wild.numbers(), v.wild.longer(v.rooms[v.representative(name)])
	return m
}

// moreIDs are ids, beside the two usual ones, of a variable in a key that several entities have.
func (m *meaning) moreIDs(stem string) []string {
	if !m.shared {
		return nil
	}
	return []string{stem + "3", stem + "4", stem + "3", stem + "4"}
}

// keyTexts are the values of a variable in a key; the first ones are the
// usual, and short. number says that it is a number key there.
func (v *vocabulary) keyTexts(name string, number, rest bool) []string {
	m := v.drawn(name)
	switch one, two := m.numbers[0], m.numbers[1]; {
	case number:
		return append([]string{one, two}, m.moreIDs("")...)
	case m.counted:
		return append([]string{one, two, one, two, one, two, "01"}, m.moreIDs("")...)
	}
	one, two := m.ids[0], m.ids[1]
	texts := slices.Concat([]string{one, two, one, two, one, two, "5"}, m.longer, m.moreIDs(strings.TrimSuffix(one, "1")))
	if m.inUpper { // an item that a rule makes has capital letters alone, and its rules look for these in other keys
		texts = append(texts, strings.ToUpper(one), strings.ToUpper(two))
	}
	if m.shared || m.inUpper {
		texts = append(texts, m.longer...) // so that a long one is drawn as often although there are more ids
	}
	if rest {
		texts = append(texts, one+"#"+two)
	}
	return texts
}

// inBothCases are the usual values of a variable, in lower and in upper case.
func (v *vocabulary) inBothCases(name string) (values []change.Value) {
	for _, id := range v.drawn(name).ids {
		values = append(values, change.String(strings.ToLower(id)), change.String(strings.ToUpper(id)))
	}
	return append(values, change.Number("5"))
}

// pool is the values that an attribute can have: mostly the usual ones, and so
// often in a hundred the odd ones. The absent value is one as well.
type pool struct {
	usual, odd []change.Value
	odds       int
}

// pool returns the values of an attribute of that name.
func (v *vocabulary) pool(name string) pool {
	m, absent := v.of(name), change.Value{}
	if of := m.elements; of != "" {
		m.elements = "" // an element may have the values of the list itself
		p := v.lists(v.pool(of))
		if m.elements = of; m.lacked {
			p.usual = append(p.usual, absent, absent, absent)
		}
		return p
	}
	text := change.String
	list := change.List([]change.Value{text("A")})
	p := pool{odd: []change.Value{absent, absent, absent, change.Null(), text(""), list}, odds: 15}
	switch {
	case m.id:
		for _, value := range v.keyTexts(name, false, false) {
			p.usual = append(p.usual, text(value))
		}
		p.usual = append(p.usual, change.Number("5"))
		if m.shared {
			p.usual = append(p.usual, change.Number("5")) // as often, although there are more ids
		}
		if m.inCase {
			p.usual = append(p.usual, text(strings.ToUpper(p.usual[0].Text())), text(strings.ToUpper(p.usual[1].Text())))
		}
		p.odd = append(p.odd, text(p.usual[0].Text()+"#x"), change.Bool(true))
		if m.counted {
			p.usual = append(p.usual, change.Number(m.numbers[0]), text("2.0"))
			p.odd = append(p.odd, text("x"))
		}
	case m.flag:
		p.usual = []change.Value{change.Bool(true), change.Bool(false)}
		p.odd = append(p.odd, text("A"))
	case m.amount || slices.ContainsFunc(m.literals, func(c change.Value) bool { return c.Kind() == change.KindNumber }):
		amounts := []string{"1", "2", "0.1", "0.2", "3", "0", "-2.5"}
		if m.whole {
			amounts = []string{"1", "2", "3", "0", "12", "1", "2", "3", "0.1"}
		}
		for _, amount := range amounts {
			p.usual = append(p.usual, change.Number(amount))
		}
		if m.divisor > 0 { // of the amounts above, few quotients come out even
			for n := range 3 {
				p.usual = append(p.usual, change.Number(strconv.Itoa(m.divisor*(n+1))))
			}
		}
		p.odd = append(p.odd, text("high"), change.Number("100000000000000000000.1"))
		if v.wild != nil && v.wild.amounts {
			p.odd, p.odds = append(p.odd, change.Number(oneOf(v.wild.r, extremes[:])), change.Number(oneOf(v.wild.r, extremes[:]))), 25
		}
	default:
		for _, letter := range []string{"A", "B", "C"} {
			p.usual = append(p.usual, text(strings.Repeat("-", m.skipped)+letter))
		}
		p.usual, p.odd = append(p.usual, v.wild.values()...), append(p.odd, change.Number("7"))
	}
	p.usual = append(p.usual, m.literals...)
	return p
}

// lists returns lists, and sets, of the values of a pool.
func (v *vocabulary) lists(of pool) pool {
	text, number := change.String, change.Number
	var members, odd []change.Value
	for _, value := range of.usual {
		if !value.Missing() && !slices.ContainsFunc(members, value.Equal) {
			members = append(members, value)
		}
	}
	for _, value := range of.odd {
		if !value.Missing() {
			odd = append(odd, value)
		}
	}
	one, other, last := members[0], members[min(1, len(members)-1)], members[len(members)-1]
	list := func(all ...change.Value) change.Value { return change.List(all) }
	p := pool{odds: 15, usual: []change.Value{
		list(one), list(one, other), list(other, one, other), list(other), list(other, last), list(one, text(""), change.Null(), last), {},
	}}
	if one.Kind() == change.KindString && other.Kind() == change.KindString {
		texts := []string{one.Text(), other.Text()}
		p.usual = append(p.usual, change.Set(change.KindStringSet, slices.Compact(texts)), change.Set(change.KindStringSet, texts[1:]))
	}
	p.usual = append(p.usual, change.Set(change.KindNumberSet, []string{"2", "5"}), list(members...))
	p.odd = []change.Value{change.Null(), list(), text(""), one, list(one, change.Bool(true)), list(list(one)),
		change.Set(change.KindBinarySet, []string{"a"}), list(number("2.50"), text("2.5"), one)}
	for _, value := range odd {
		p.odd = append(p.odd, list(other, value))
	}
	if n := v.wild.many(); n > 0 {
		p.odd, p.odds = append(p.odd, long(one, n), long(other, n-1)), 20
	}
	return p
}

// long is a list of so many different elements.
func long(first change.Value, n int) change.Value {
	all := []change.Value{first}
	for i := 1; i < n; i++ {
		if all = append(all, change.Number(strconv.Itoa(1000+i))); first.Kind() == change.KindString && i%7 > 0 {
			all[i] = change.String("e" + strconv.Itoa(i))
		}
	}
	return change.List(all)
}

// only is a pool of one value, at times another.
func only(value change.Value, odd []change.Value, odds int) pool {
	return pool{usual: []change.Value{value}, odd: odd, odds: odds}
}
