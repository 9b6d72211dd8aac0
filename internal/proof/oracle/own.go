package oracle

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// own is what a rule writes on its own source: it reads the texts of the rule file anew,
// and shares no code with the language of rules but the conditions.
func (t *table) own(rule *rules.Rule) []cell {
	var cells []cell
	t.each(rule.Target, func(key change.Key, m *rules.Match, item change.Item) {
		values, _ := workedOut(rule, m, item)
		for i, a := range rule.Attributes {
			cells = append(cells, cell{key: key, attribute: a.As, want: values[i]})
		}
	})
	return cells
}

// workedOut is what an item must hold of each attribute of a rule: nothing, if where does not hold, if one of them lacks
// something, or if the item cannot be read. code then says why.
func workedOut(rule *rules.Rule, m *rules.Match, item change.Item) (values []change.Value, bad string) {
	none := make([]change.Value, len(rule.Attributes))
	holds, err := rule.Wanted(m, item)
	if err != nil {
		return none, code(err)
	}
	if !holds {
		return none, ""
	}
	missing, order := false, make([]int, len(rule.Attributes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(rule.Attributes[a].As, rule.Attributes[b].As) })
	values = slices.Clone(none)
	for _, i := range order {
		a := rule.Attributes[i]
		if values[i] = a.Constant; a.Template == nil {
			continue
		}
		w := &worker{get: func(name string) change.Value { return rule.Source.Value(name, m, item) }}
		values[i] = w.template(a.Template.String())
		if w.bad != "" {
			return none, w.bad
		}
		missing = missing || values[i].Missing()
	}
	if missing {
		return none, ""
	}
	return values, ""
}

// HoldsOwn reports whether an item holds what a rule works out from the item alone.
func HoldsOwn(rule *rules.Rule, m *rules.Match, item change.Item) bool {
	values, _ := workedOut(rule, m, item)
	for i, a := range rule.Attributes {
		if !(cell{want: values[i]}).allows(item.Lookup(a.As)) {
			return false
		}
	}
	return true
}

// worker works out one text over one item. It knows as much of the language as the rules of the proof use.
type worker struct {
	get    func(name string) change.Value
	words  []string
	at     int
	bad    string // the code of the first value that does not fit
	source string
}

func (w *worker) fail(bad string) change.Value {
	if w.bad == "" {
		w.bad = bad
	}
	return change.Value{}
}

// template works out a text: an expression behind a =, or a text with expressions in ${ }.
func (w *worker) template(text string) change.Value {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " "), "="); ok {
		return w.whole(rest)
	}
	if strings.HasPrefix(text, "${") && strings.Index(text, "}") == len(text)-1 {
		return w.whole(text[2 : len(text)-1])
	}
	all := ""
	for text != "" {
		literal, rest, hole := strings.Cut(text, "${")
		all += literal
		if !hole {
			break
		}
		source, behind, _ := strings.Cut(rest, "}")
		v := w.whole(source)
		switch v.Kind() {
		case change.KindAbsent:
			return v
		case change.KindString, change.KindNumber:
			all += v.Text()
		case change.KindBool:
			all += strconv.FormatBool(v.Bool())
		default:
			return w.fail("value.type")
		}
		text = behind
	}
	if len(all) > itemBytesMax {
		return w.fail("value.size")
	}
	return change.String(all)
}

// whole works out an expression. NULL and an empty text are nothing; numbers are plain.
func (w *worker) whole(source string) change.Value {
	w.source, w.words, w.at = source, wordsOf(source), 0
	v := w.sum()
	if w.at < len(w.words) {
		panic(fmt.Sprintf("oracle: it cannot work out %q", source))
	}
	switch {
	case w.bad != "", v.Missing(), v.Kind() == change.KindString && v.Text() == "":
		return change.Value{}
	case v.Kind() == change.KindNumber:
		return w.number(rational(v))
	}
	return v
}

// wordsOf takes an expression apart.
func wordsOf(source string) (words []string) {
	for source = strings.TrimSpace(source); source != ""; source = strings.TrimSpace(source) {
		n := 1
		switch c := source[0]; {
		case c == '"' || c == '\'' || c == '`':
			n = strings.IndexByte(source[1:], c) + 2
		case isWord(c):
			for n < len(source) && (isWord(source[n]) || c >= '0' && c <= '9' && source[n] == '.') {
				n++
			}
		}
		words, source = append(words, source[:n]), source[n:]
	}
	return words
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// take takes the next word if it is one of these.
func (w *worker) take(words ...string) (string, bool) {
	if w.at == len(w.words) || !slices.Contains(words, w.words[w.at]) {
		return "", false
	}
	w.at++
	return w.words[w.at-1], true
}

func (w *worker) sum() change.Value {
	v := w.product()
	for op, ok := w.take("+", "-"); ok; op, ok = w.take("+", "-") {
		v = w.apply(op, v, w.product())
	}
	return v
}

func (w *worker) product() change.Value {
	v := w.path()
	for op, ok := w.take("*", "/"); ok; op, ok = w.take("*", "/") {
		v = w.apply(op, v, w.path())
	}
	return v
}

// apply joins two values by an operator.
func (w *worker) apply(op string, x, y change.Value) change.Value {
	switch {
	case x.Missing() || y.Missing():
		return change.Value{}
	case op == "+" && x.Kind() == change.KindString && y.Kind() == change.KindString:
		return change.String(x.Text() + y.Text())
	case x.Kind() != change.KindNumber || y.Kind() != change.KindNumber:
		return w.fail("value.type")
	}
	a, b := rational(x), rational(y)
	switch op {
	case "+":
		return w.number(a.Add(a, b))
	case "-":
		return w.number(a.Sub(a, b))
	case "*":
		return w.number(a.Mul(a, b))
	}
	if b.Sign() == 0 {
		return w.fail("number.division")
	}
	return w.number(a.Quo(a, b))
}

func rational(v change.Value) *big.Rat {
	r, ok := new(big.Rat).SetString(v.Text())
	if !ok {
		panic(fmt.Sprintf("oracle: %q is no number", v.Text()))
	}
	return r
}

// number is a number as an item holds it, if DynamoDB can.
func (w *worker) number(r *big.Rat) change.Value {
	const digitsMax, scaleMax = 38, 130
	scaled, ten := new(big.Rat).Set(r), new(big.Rat).SetInt64(10)
	scale := 0
	for ; !scaled.IsInt(); scale++ {
		if scale > scaleMax+digitsMax {
			return w.fail("number.overflow")
		}
		scaled.Mul(scaled, ten)
	}
	digits := strings.TrimRight(new(big.Int).Abs(scaled.Num()).String(), "0")
	highest := len(new(big.Int).Abs(scaled.Num()).String()) - scale - 1
	if len(digits) > digitsMax || highest > exponentMax || r.Sign() != 0 && highest < -scaleMax {
		return w.fail("number.overflow")
	}
	return change.Number(r.FloatString(scale))
}

// path is a value with the parts that are taken of it.
func (w *worker) path() change.Value {
	v := w.primary()
	for _, ok := w.take("["); ok; _, ok = w.take("[") {
		from, to := 0, 1<<30
		if w.words[w.at] != ":" {
			from, _ = strconv.Atoi(w.words[w.at])
			w.at++
		}
		if _, ok := w.take(":"); !ok {
			panic(fmt.Sprintf("oracle: it cannot work out %q", w.source))
		}
		if w.words[w.at] != "]" {
			to, _ = strconv.Atoi(w.words[w.at])
			w.at++
		}
		w.at++
		v = w.slice(v, from, to)
	}
	return v
}

func (w *worker) slice(v change.Value, from, to int) change.Value {
	switch v.Kind() {
	case change.KindAbsent, change.KindNull:
		return change.Value{}
	case change.KindString:
		runes := []rune(v.Text())
		from, to = min(from, len(runes)), min(to, len(runes))
		return change.String(string(runes[from:max(from, to)]))
	case change.KindList:
		from, to = min(from, len(v.List())), min(to, len(v.List()))
		return change.List(v.List()[from:max(from, to)])
	}
	return w.fail("value.type")
}

func (w *worker) primary() change.Value {
	if w.at == len(w.words) {
		panic(fmt.Sprintf("oracle: it cannot work out %q", w.source))
	}
	word := w.words[w.at]
	w.at++
	switch c := word[0]; {
	case word == "(":
		v := w.sum()
		w.take(")")
		return v
	case word == "-":
		return w.apply("-", change.Number("0"), w.path())
	case c == '"' || c == '\'':
		return change.String(word[1 : len(word)-1])
	case c == '`':
		return w.get(word[1 : len(word)-1])
	case c >= '0' && c <= '9':
		return change.Number(word)
	case word == "item" && w.words[w.at] == "[":
		name := w.words[w.at+1]
		w.at += 3
		return w.get(name[1 : len(name)-1])
	case !isWord(c):
		panic(fmt.Sprintf("oracle: it cannot work out %q", w.source))
	}
	if _, called := w.take("("); !called {
		return w.get(word)
	}
	var arguments []change.Value
	for more := true; more; _, more = w.take(",") {
		arguments = append(arguments, w.sum())
	}
	w.take(")")
	return w.call(word, arguments)
}

// call works out a function.
func (w *worker) call(name string, arguments []change.Value) change.Value {
	x := arguments[0]
	if x.Missing() || name == "pad" && arguments[1].Missing() {
		return change.Value{}
	}
	if name == "pad" {
		return w.pad(x, arguments[1])
	}
	if name == "size" && x.Kind() == change.KindString {
		return change.Number(strconv.Itoa(utf8.RuneCountInString(x.Text())))
	}
	if x.Kind() != change.KindString {
		return w.fail("value.type")
	}
	switch name {
	case "lower":
		return change.String(strings.ToLower(x.Text()))
	case "upper":
		return change.String(strings.ToUpper(x.Text()))
	case "trim":
		return change.String(strings.TrimSpace(x.Text()))
	}
	panic(fmt.Sprintf("oracle: it cannot work out %q", w.source))
}

func (w *worker) pad(x, width change.Value) change.Value {
	if x.Kind() != change.KindNumber {
		return w.fail("value.type")
	}
	n, most := rational(x), int(rational(width).Num().Int64())
	digits := n.Num().String()
	if !n.IsInt() || n.Sign() < 0 || len(digits) > most {
		return w.fail("number.width")
	}
	return change.String(strings.Repeat("0", most-len(digits)) + digits)
}
