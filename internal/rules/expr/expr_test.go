package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// run evaluates a source text over an item and writes the result as the tables
// do: a number, a quoted string, true, false, missing, a list in brackets, or
// "error" and the code. Whatever fails to compile begins with "refused".
func run(source string, item change.Item) string {
	p, err := Compile(source)
	if err != nil {
		return "refused " + errorCode(err)
	}
	m := machine{source: p.source, get: item.Lookup}
	v := m.eval(p.root)
	if m.err != nil {
		return "error " + errorCode(m.err)
	}
	return written(v.Plain())
}

func errorCode(err error) string {
	var compiling *Error
	var evaluating *EvalError
	switch {
	case errors.As(err, &compiling):
		return compiling.Code
	case errors.As(err, &evaluating):
		return evaluating.Code
	}
	return fmt.Sprintf("%T", err)
}

func written(v change.Value) string {
	switch v.Kind() {
	case change.KindAbsent, change.KindNull:
		return "missing"
	case change.KindString:
		return fmt.Sprintf("%q", v.Text())
	case change.KindNumber:
		return v.Text()
	case change.KindBool:
		return fmt.Sprint(v.Bool())
	case change.KindList:
		texts := make([]string, len(v.List()))
		for i, member := range v.List() {
			texts[i] = written(member)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return v.Kind().String()
}

// item reads an item in DynamoDB's JSON.
func item(t testing.TB, text string) change.Item {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatalf("item %s: %v", text, err)
	}
	it := change.Item{}
	for name, f := range fields {
		it[name] = decode(t, f)
	}
	return it
}

func decode(t testing.TB, tagged any) change.Value {
	t.Helper()
	for tag, v := range tagged.(map[string]any) {
		switch tag {
		case "S":
			return change.String(v.(string))
		case "N":
			return change.Number(v.(string))
		case "B":
			return change.Binary([]byte(v.(string)))
		case "BOOL":
			return change.Bool(v.(bool))
		case "NULL":
			return change.Null()
		case "L":
			var members []change.Value
			for _, member := range v.([]any) {
				members = append(members, decode(t, member))
			}
			return change.List(members)
		case "M":
			fields := map[string]change.Value{}
			for name, f := range v.(map[string]any) {
				fields[name] = decode(t, f)
			}
			return change.Map(fields)
		case "SS", "NS", "BS":
			var members []string
			for _, member := range v.([]any) {
				members = append(members, member.(string))
			}
			kinds := map[string]change.Kind{"SS": change.KindStringSet, "NS": change.KindNumberSet, "BS": change.KindBinarySet}
			return change.Set(kinds[tag], members)
		}
	}
	t.Fatalf("no DynamoDB value: %v", tagged)
	return change.Value{}
}

// everything is an item with an attribute of every type.
const everything = `{
	"n": {"N": "5"}, "zero": {"N": "0"}, "third": {"N": "0.3"}, "big": {"N": "99999999999999999999999999999999999999"},
	"huge": {"N": "1E+125"}, "five": {"S": "5"}, "bad": {"N": "1,5"},
	"s": {"S": "hello"}, "empty": {"S": ""}, "greek": {"S": "αβγδ"}, "smile": {"S": "a😀b"},
	"yes": {"BOOL": true}, "no": {"BOOL": false}, "nothing": {"NULL": true}, "bytes": {"B": "abc"},
	"l": {"L": [{"N": "1"}, {"S": "two"}, {"NULL": true}, {"L": [{"N": "4"}]}]},
	"m": {"M": {"x": {"N": "1.0"}, "user-name": {"S": "ann"}, "gone": {"NULL": true}, "in": {"M": {"deep": {"S": "d"}}}}},
	"ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2.50"]}, "bs": {"BS": ["x"]}, "ns2": {"NS": ["2.5", "1.0"]}, "ss2": {"SS": ["b", "a"]},
	"user-name": {"S": "bob"}, "item": {"S": "spade"},
	"count": {"N": "7"}, "type": {"S": "kind"}, "size": {"N": "8"}, "has": {"N": "9"}, "contains": {"N": "10"}, "and": {"BOOL": true}
}`

func TestExpressionsGiveWhatTheDocumentSays(t *testing.T) {
	it := item(t, everything)
	for _, group := range tables {
		t.Run(group.name, func(t *testing.T) {
			for _, row := range strings.Split(strings.TrimSpace(group.rows), "\n") {
				source, want, ok := strings.Cut(row, " => ")
				if !ok {
					t.Fatalf("row %q has no =>", row)
				}
				source, want = strings.TrimSpace(source), strings.TrimSpace(want)
				if got := run(source, it); got != want {
					t.Errorf("%s\n got %s\nwant %s", source, got, want)
				}
			}
		})
	}
}

func TestAConditionTakesBooleansAndMissingOnly(t *testing.T) {
	it := item(t, everything)
	for source, want := range map[string]string{
		"yes": "true", "no": "false", "absent": "false", "nothing": "false", "n": "error value.type", "s": "error value.type",
		"n > 4": "true", "l": "error value.type", "absent + 1": "false", "n / zero > 1": "error number.division", "null": "false",
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		got, err := p.Condition(it.Lookup)
		text := fmt.Sprint(got)
		if err != nil {
			text = "error " + errorCode(err)
		}
		if text != want {
			t.Errorf("%s as a condition: got %s, want %s", source, text, want)
		}
	}
}

func TestAnAmountTakesNumbersAndMissingOnly(t *testing.T) {
	it := item(t, everything)
	for source, want := range map[string]string{
		"n": "5", "n * third": "1.5", "absent": "missing", "nothing": "missing", "n * absent": "missing", "zero": "0",
		"five": "error value.type", "yes": "error value.type", "bad": "error value.type", "big + 2": "error number.overflow", "size(s)": "5",
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		n, ok, err := p.Amount(it.Lookup)
		text := n.String()
		switch {
		case err != nil:
			text = "error " + errorCode(err)
		case !ok:
			text = "missing"
		}
		if text != want {
			t.Errorf("%s as an amount: got %s, want %s", source, text, want)
		}
	}
}

func TestReadsAreTheAttributesInOrder(t *testing.T) {
	for source, want := range map[string]string{
		`1 + 1`: "", `b > a && a > b`: "a b", `item["user-name"] == count`: "count user-name", `m.x.y[z] in [q, null]`: "m q z",
		`has(a.b) || size(c) > 1 || d.startsWith(e)`: "a c d e", `s[f:t]`: "f s t", `!x`: "x", `-y`: "y", `size`: "size",
		`item["item"] == "x" && true`: "item", `false && a`: "a",
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got := strings.Join(p.Reads(), " "); got != want {
			t.Errorf("%s reads %q, want %q", source, got, want)
		}
	}
}

func TestTypesAreKnownWhereNoAttributeDecides(t *testing.T) {
	for source, want := range map[string]Type{
		"a": Any, "a.b": Any, "a[0]": Any, "a[1:2]": Any, "a + b": Any, "a + 1": Number, "1 + a": Number, `a + "x"`: String, `"x" + a`: String,
		"a - b": Number, "a * b": Number, "a / b": Number, "-a": Number, "!a": Bool, "a && b": Bool, "a || b": Bool, "a == b": Bool,
		"a in b": Bool, "a < b": Bool, "has(a)": Bool, "size(a)": Number, `a.contains("x")`: Bool, "[a]": List, "[1, 2][0:1]": List,
		`"abc"[1:]`: String, "[1][0]": Any, "null": Null, "true": Bool, "1": Number, `""`: String, "(a + b) + 1": Number,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got := p.Type(); got != want {
			t.Errorf("%s is %s, want %s", source, got, want)
		}
	}
}

func TestReasonsNameTheOperandAndItsValue(t *testing.T) {
	it := item(t, everything)
	for source, want := range map[string]string{
		`s * 2`:                   `s is the string "hello"; * needs a number`,
		`n + five`:                `n is the number 5 and five is the string "5"; + needs two numbers or two strings`,
		`n < five`:                `n is the number 5 and five is the string "5"; < compares values of one type`,
		`yes < no`:                `yes is true; < needs two numbers or two strings`,
		`s && yes`:                `s is the string "hello"; && needs a condition`,
		`n / zero`:                `n / zero divides 5 by zero`,
		`(n + 0) / 3`:             `(n + 0) / 3 is not exact within 38 digits: 5 / 3`,
		`big + 2`:                 `big + 2 does not fit into a DynamoDB number (38 digits): 99999999999999999999999999999999999999 + 2`,
		`s.x`:                     `s is the string "hello"; its field x needs a map`,
		`l["a"]`:                  `l is a list; its field a needs a map`,
		`l[third]`:                `third is the number 0.3; a position needs a whole number from 0 up`,
		`m.in.deep.startsWith(n)`: `n is the number 5; startsWith needs a string`,
		`n in s`:                  `s is the string "hello"; in needs a list, set or map on its right`,
		`size(ss) + size(n)`:      `n is the number 5; size needs a string, list, map or set`,
		`bad + 1`:                 `bad is the number 1,5; + needs a number`,
		`s + s + s - n`:           `s + s + s is the string "hellohellohello"; - needs a number`,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		m := machine{source: p.source, get: it.Lookup}
		if m.eval(p.root); m.err == nil || m.err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", source, m.err, want)
		}
	}
}
