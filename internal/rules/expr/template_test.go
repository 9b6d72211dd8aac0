package expr

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
)

// fill works out a template over an item, and writes the result as run does.
func fill(source string, item change.Item) string {
	t, err := CompileTemplate(source)
	if err != nil {
		return "refused " + errorCode(err)
	}
	v, ok, err := t.Value(item.Lookup)
	switch {
	case err != nil:
		return "error " + errorCode(err)
	case !ok:
		return "missing"
	}
	return written(v)
}

func TestEveryTemplateOfTheDocumentIsTrue(t *testing.T) {
	text := document(t)
	it := item(t, blocks(text, "json")[0])
	examples := 0
	for _, block := range blocks(text, "template") {
		for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
			source, want, _ := strings.Cut(line, " => ")
			examples++
			if got := fill(strings.TrimRight(source, " "), it); got != strings.TrimSpace(want) {
				t.Errorf("%s is %s, the document says %s", source, got, want)
			}
		}
	}
	if examples < 16 {
		t.Errorf("only %d examples were found", examples)
	}
}

func TestTemplates(t *testing.T) {
	it := change.Item{
		"s": change.String("abc"), "n": change.Number("1.50"), "big": change.Number("1E+20"), "empty": change.String(""), "null": change.Null(),
		"list": change.List([]change.Value{change.String("a")}), "brace": change.String("}"), "x y": change.String("xy"),
		"long": change.String(strings.Repeat("x", StringBytesMax)),
	}
	for source, want := range map[string]string{
		`${s}`:                            `"abc"`,
		` ${s}`:                           `" abc"`,
		`${ s }`:                          `"abc"`,
		`${n}`:                            "1.5",
		`${big}`:                          "100000000000000000000",
		`#${big}`:                         `"#100000000000000000000"`,
		`${list}`:                         `["a"]`,
		`${list}#`:                        "error value.type",
		`${empty}`:                        "missing",
		`a${empty}b`:                      "missing",
		`${item["null"]}`:                 "missing",
		`a${item["null"]}`:                "missing",
		`${"a}b" + s}-${brace}`:           `"a}babc-}"`,
		`${'\'}' + s}`:                    `"'}abc"`,
		`${item["x y"]}`:                  `"xy"`,
		`a = b`:                           `"a = b"`,
		`  = s + "x"`:                     `"abcx"`,
		`=s[1:]`:                          `"bc"`,
		`a\b`:                             `"a\\b"`,
		`a\\${s}`:                         `"a\\abc"`,
		`\${s}`:                           `"${s}"`,
		`$s {s} }`:                        `"$s {s} }"`,
		`${long}x`:                        "error value.size",
		`${pad(n, 3)}`:                    "error number.width",
		`= null`:                          "refused expr.type",
		`a ${[s]}`:                        "refused expr.type",
		`= [s, 1]`:                        `["abc", 1]`,
		``:                                "refused template.empty",
		`=`:                               "refused expr.syntax",
		`${`:                              "refused template.unclosed",
		`${"}`:                            "refused template.unclosed",
		`${s s}`:                          "refused expr.syntax",
		`${lower(1)}`:                     "refused expr.type",
		strings.Repeat("x", 5000):         "refused expr.too_long",
		`${s}${s}`:                        `"abcabc"`,
		`= has(nope) || s == "abc"`:       "true",
		`= nope == 1`:                     "false",
		`${pad(7, 3)}/${upper(s)}/${1e3}`: `"007/ABC/1000"`,
	} {
		if got := fill(source, it); got != want {
			t.Errorf("%s is %s, want %s", printable.Shortened(source), got, want)
		}
	}
}

func TestTemplateProblemsHaveTheirPlace(t *testing.T) {
	for source, at := range map[string]string{
		`POST#${status`:           `${status`,
		`POST#${a}#${lowr(b)}`:    `lowr`,
		`= a +`:                   ``,
		`x${a}${null}`:            `null`,
		`${a}${null} and ${null}`: `null`,
	} {
		_, err := CompileTemplate(source)
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := source[bad.Offset : bad.Offset+bad.Length]; got != at {
			t.Errorf("%s: %q is blamed, want %q", source, got, at)
		}
	}
}

func TestTemplatesTellWhatTheyRead(t *testing.T) {
	tp, err := CompileTemplate(`${b}#${lower(a)}#${item["x y"]}#${b}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "x y"}, tp.Reads()); diff != "" {
		t.Error(diff)
	}
}

// FuzzTemplate compiles any text as a template, and works out what compiles over items that have its attributes in every type.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"POST#${status}", "= a * b", "${a", `\${`, `${"}"}`, `${'`, "${a}${b}", "", "=", `\`} {
		f.Add(seed)
	}
	it := item(f, everything)
	f.Fuzz(func(t *testing.T, source string) {
		tp, err := CompileTemplate(source)
		if err != nil {
			checkError(t, source, err)
			return
		}
		for _, v := range it {
			value, ok, err := tp.Value(func(string) change.Value { return v })
			if ok == value.Missing() || err != nil && ok {
				t.Errorf("%q: %v, %t, %v", source, value, ok, err)
			}
		}
	})
}
