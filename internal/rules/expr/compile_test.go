package expr

import (
	"errors"
	"strings"
	"testing"
)

func TestProblemsAreFoundWithTheirPlaceAndAHint(t *testing.T) {
	for _, row := range []struct{ source, code, place, message, hint string }{
		// place is the text that the caret line underlines; "$" stands for the end.
		{``, CodeSyntax, `$`, "empty", "write a condition"},
		{"  \n ", CodeSyntax, ``, "empty", "write a condition"},
		{`a b`, CodeSyntax, `b`, "expected an operator or the end", ""},
		{`a and b`, CodeSyntax, `and`, "expected an operator", "write &&"},
		{`not a`, CodeSyntax, `a`, "expected an operator", "write !"},
		{`a matches b`, CodeSyntax, `matches`, "expected an operator", "no regular expressions"},
		{`a == `, CodeSyntax, `$`, "expected a value, found the end", ""},
		{`a = b`, CodeSyntax, `=`, "no meaning", "write =="},
		{`a & b`, CodeSyntax, `&`, "no meaning", "write &&"},
		{`a | b`, CodeSyntax, `|`, "no meaning", "write ||"},
		{`a <> b`, CodeSyntax, `<>`, "no meaning", "write !="},
		{`a ? b : c`, CodeSyntax, `?`, "no meaning", "no conditional operator"},
		{`a % 2`, CodeSyntax, `%`, "no meaning", "no remainder"},
		{`“a”`, CodeSyntax, `“`, "no meaning", "plain quotes"},
		{`${a}`, CodeSyntax, `${`, "no meaning", "names alone"},
		{`größe`, CodeSyntax, `ö`, "no meaning", "`user-name`"},
		{"`user-name == 1", CodeSyntax, "`user-name == 1", "does not end", "`user-name`"},
		{"`user\nname` == 1", CodeSyntax, "`user", "does not end", "`user-name`"},
		{"`` == 1", CodeSyntax, "``", "no name", "`user-name`"},
		{"`a`(1)", CodeSyntax, "(", "expected an operator", ""},
		{`a # b`, CodeSyntax, `#`, "no meaning", ""},
		{"a \xff", CodeSyntax, "\xff", "not UTF-8", ""},
		{`(a`, CodeSyntax, `$`, "expected ), found the end", "to close the ( at byte 0"},
		{`(a]`, CodeSyntax, `]`, `expected ), found "]"`, "to close the ("},
		{`[a`, CodeSyntax, `$`, "expected ]", "to close the ["},
		{`a[`, CodeSyntax, `$`, "expected a value", ""},
		{`a[]`, CodeSyntax, `]`, "expected a value", ""},
		{`a[1:2:3]`, CodeSyntax, `:3]`[:1], "expected ]", ""},
		{`a.`, CodeSyntax, `$`, "expected a field's name", ""},
		{`a."b"`, CodeSyntax, `"b"`, "expected a field's name", ""},
		{`()`, CodeSyntax, `)`, "expected a value", ""},
		{`a < b < c`, CodeSyntax, `<`, "do not chain", "a < b && b < c"},
		{`a == b != c`, CodeSyntax, `!=`, "do not chain", ""},
		{`!a in b`, CodeSyntax, `!a in`, "! binds tighter", "!(x in list)"},
		{`item`, CodeSyntax, `item`, "in brackets", `item["item"]`},
		{`item.x == 1`, CodeSyntax, `item.x`, "in brackets", `write x, or item["item"].x`},
		{`item[x]`, CodeSyntax, `x`, "name in quotes", ""},
		{`item[""]`, CodeSyntax, `""`, "name in quotes", ""},
		{`item["x"`, CodeSyntax, `$`, "expected ]", ""},
		{`in`, CodeSyntax, `in`, "expected a value", ""},
		{`has()`, CodeSyntax, `has()`, "one argument, not 0", "write has(x)"},
		{`has(a,)`, CodeSyntax, `)`, "expected a value", ""},
		{`[,]`, CodeSyntax, `,`, "expected a value", ""},
		{`size(a, b)`, CodeSyntax, `size(a, b)`, "one argument, not 2", "write size(x)"},
		{`pad(a)`, CodeSyntax, `pad(a)`, "two arguments, not 1", "write pad(n, width)"},
		{`lower(a, b)`, CodeSyntax, `lower(a, b)`, "one argument, not 2", "write lower(x)"},
		{`a.startsWith()`, CodeSyntax, `a.startsWith()`, "one argument", "x.startsWith(y)"},

		{`hass(a)`, CodeUnknownFunction, `hass`, "no function hass", "did you mean has(x)?"},
		{`Size(a) > 1`, CodeUnknownFunction, `Size`, "no function", "did you mean size(x)?"},
		{`a.startWith("x")`, CodeUnknownFunction, `startWith`, "no function", "did you mean x.startsWith(y)?"},
		{`a.starts_with("x")`, CodeUnknownFunction, `starts_with`, "no function", "did you mean x.startsWith(y)?"},
		{`a.endswith("x")`, CodeUnknownFunction, `endswith`, "no function", "did you mean x.endsWith(y)?"},
		{`begins_with(a, "x")`, CodeUnknownFunction, `begins_with`, "no function", "did you mean x.startsWith(y)?"},
		{`a.contain("x")`, CodeUnknownFunction, `contain`, "no function", "did you mean x.contains(y)?"},
		{`toLowerCase(a)`, CodeUnknownFunction, `toLowerCase`, "no function", "did you mean lower(x)?"},
		{`padStart(a, 3)`, CodeUnknownFunction, `padStart`, "no function", "did you mean pad(n, width)?"},
		{`a.lower()`, CodeUnknownFunction, `lower`, "not called like this", "write lower(x)"},
		{`len(a)`, CodeUnknownFunction, `len`, "no function", "did you mean size(x)?"},
		{`min(a, b)`, CodeUnknownFunction, `min`, "no function min", "the functions are"},
		{`a.size()`, CodeUnknownFunction, `size`, "not called like this", "write size(x)"},
		{`startsWith(a, "b")`, CodeUnknownFunction, `startsWith`, "not called like this", "write x.startsWith(y)"},

		{`lower(1)`, CodeType, `1`, "lower needs a string, this is a number", ""},
		{`pad("a", 3)`, CodeType, `"a"`, "pad needs a number, this is a string", ""},
		{`pad(a, "3")`, CodeType, `"3"`, "pad needs a number as its width, this is a string", ""},
		{`pad(a, 39)`, CodeType, `39`, "a whole number from 1 to 38", ""},
		{`pad(a, 0)`, CodeType, `0`, "a whole number from 1 to 38", ""},
		{`1 + true`, CodeType, `true`, "+ needs two numbers or two strings, this is a condition", ""},
		{`1 + "a"`, CodeType, `"a"`, "this is a string after a number", ""},
		{`a + 1 + "a"`, CodeType, `"a"`, "this is a string after a number", ""},
		{`"a" + a + 1`, CodeType, `1`, "this is a number after a string", ""},
		{`"a" < 1`, CodeType, `1`, "< needs two numbers or two strings, this is a number after a string", ""},
		{`true < a`, CodeType, `true`, "this is a condition", ""},
		{`a >= null`, CodeType, `null`, "this is null", "null is only compared, with == and !="},
		{`[1] < [2]`, CodeType, `[1]`, "this is a list", ""},
		{`size(1)`, CodeType, `1`, "size needs a string, list, map or set, this is a number", ""},
		{`size(a == b)`, CodeType, `a == b`, "this is a condition", ""},
		{`!5`, CodeType, `5`, "! needs a condition, this is a number", ""},
		{`!(a + 1)`, CodeType, `a + 1`, "this is a number", ""},
		{`-true`, CodeType, `true`, "- needs a number, this is a condition", ""},
		{`-"a"`, CodeType, `"a"`, "this is a string", ""},
		{`a * "2"`, CodeType, `"2"`, "* needs numbers, this is a string", ""},
		{`a + "x" - 1`, CodeType, `a + "x"`, "- needs numbers, this is a string", ""},
		{`a / null`, CodeType, `null`, "this is null", "null is only compared"},
		{`a && 1`, CodeType, `1`, "&& needs conditions, this is a number", ""},
		{`"x" || a`, CodeType, `"x"`, "|| needs conditions, this is a string", ""},
		{`a && null`, CodeType, `null`, "this is null", ""},
		{`a in "abc"`, CodeType, `"abc"`, "in needs a list, set or map on its right, this is a string", "text.contains(part)"},
		{`a in 5`, CodeType, `5`, "this is a number", ""},
		{`null in a`, CodeType, `null`, "this is null", ""},
		{`has(1)`, CodeType, `1`, "has needs an attribute", "write has(a)"},
		{`has(a + b)`, CodeType, `a + b`, "has needs an attribute", ""},
		{`has(a[1:2])`, CodeType, `a[1:2]`, "has needs an attribute", ""},
		{`has([1][0])`, CodeType, `[1][0]`, "has needs an attribute", ""},
		{`a.startsWith(1)`, CodeType, `1`, "startsWith needs a string, this is a number", ""},
		{`(5).startsWith("a")`, CodeType, `5`, "startsWith needs a string before it", ""},
		{`[1].contains("a")`, CodeType, `[1]`, "this is a list", "write x in list"},
		{`"abc"[0]`, CodeType, `"abc"`, "this is a string", "x[0:1]"},
		{`5[0]`, CodeType, `5`, "this is a number", ""},
		{`"a".b`, CodeType, `"a"`, "only a map has fields", ""},
		{`a[-1]`, CodeType, `-1`, "whole numbers from 0 up", "counted from 0"},
		{`a[1.5]`, CodeType, `1.5`, "whole numbers from 0 up", ""},
		{`a[true]`, CodeType, `true`, "a position or a field's name", ""},
		{`[1][b + "x"]`, CodeType, `b + "x"`, "a position", ""},
		{`a[-1:]`, CodeType, `-1`, "whole numbers from 0 up", ""},
		{`a["x":]`, CodeType, `"x"`, "positions, this is a string", ""},
		{`5[1:]`, CodeType, `5`, "a string or a list", ""},

		{`123456789012345678901234567890123456789`, CodeNumber, `123456789012345678901234567890123456789`, "does not fit", "at most 38 digits"},
		{`a > 1e126`, CodeNumber, `1e126`, "does not fit", ""},
		{`1e99999999999999999999`, CodeNumber, `1e99999999999999999999`, "not", ""},
		{`1` + strings.Repeat("0", 300), CodeNumber, `1` + strings.Repeat("0", 300), "", ""},
		{`5apples`, CodeNumber, `5apples`, "not a number", "does not begin with a digit"},
		{`0x1F`, CodeNumber, `0x1F`, "not a number", ""},
		{`1e`, CodeNumber, `1e`, "not a number", ""},
		{`1.`, CodeSyntax, `$`, "expected a field's name", ""},
		{`.5`, CodeSyntax, `.`, "expected a value", ""},

		{`"abc`, CodeString, `"abc`, "does not end", `close it with "`},
		{`'abc"`, CodeString, `'abc"`, "does not end", `close it with '`},
		{"'a\nb'", CodeString, "'a", "end on its line", `write \n`},
		{`"\q"`, CodeString, `\q`, "not an escape", `\uXXXX`},
		{`"\é"`, CodeString, `\é`, "not an escape", ""},
		{`"\`, CodeString, `\`, "does not end", ""},
		{`"\u12"`, CodeString, `\u`, "four hexadecimal digits", ""},
		{`"\u+123"`, CodeString, `\u`, "four hexadecimal digits", ""},
		{`"\uD83D"`, CodeString, `\uD83D`, "half a character", ""},
		{`"\uDE00\uD83D"`, CodeString, `\uDE00`, "half a character", ""},
		{"'\xff'", CodeString, "\xff", "not UTF-8", ""},
	} {
		_, err := Compile(row.source)
		var problem *Error
		if !errors.As(err, &problem) {
			t.Errorf("%s: got %v, want %s", row.source, err, row.code)
			continue
		}
		if problem.Code != row.code || !strings.Contains(problem.Message, row.message) || !strings.Contains(problem.Hint, row.hint) {
			t.Errorf("%s: got %s %q (%q), want %s %q (%q)", row.source, problem.Code, problem.Message, problem.Hint, row.code, row.message, row.hint)
		}
		want := row.place
		if want == "$" {
			want = ""
			if problem.Offset != len(row.source) {
				t.Errorf("%s: at byte %d, want the end", row.source, problem.Offset)
			}
		}
		if got := row.source[problem.Offset : problem.Offset+problem.Length]; got != want {
			t.Errorf("%s: points at %q, want %q", row.source, got, want)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	repeat := strings.Repeat
	for name, build := range map[string]func(n int) string{
		"parentheses": func(n int) string { return repeat("(", n) + "a" + repeat(")", n) },
		"nots":        func(n int) string { return repeat("!", n) + "a" },
		"minuses":     func(n int) string { return repeat("-", n) + "a" },
		"lists":       func(n int) string { return repeat("[", n) + repeat("]", n) },
		"indexes":     func(n int) string { return repeat("a[", n) + "0" + repeat("]", n) },
		"calls":       func(n int) string { return repeat("size(", n-1) + "a[0]" + repeat(")", n-1) },
		"arguments":   func(n int) string { return repeat("a.contains(", n) + "a" + repeat(")", n) },
		"fields":      func(n int) string { return "a" + repeat(".b", n) },
		"subscripts":  func(n int) string { return "a" + repeat("[0]", n) },
	} {
		deep := build(DepthMax)
		if _, err := Compile(deep); err != nil && errorCode(err) == CodeTooDeep {
			t.Errorf("%s: %d deep is refused: %v", name, DepthMax, err)
		}
		for _, n := range []int{DepthMax + 1, SourceBytesMax} {
			source := build(n)
			if _, err := Compile(source[:min(len(source), SourceBytesMax)]); err == nil || errorCode(err) != CodeTooDeep {
				t.Errorf("%s: %d deep: got %v, want %s", name, n, err, CodeTooDeep)
			}
		}
	}
}

func TestLengthIsBounded(t *testing.T) {
	longest := "a" + strings.Repeat(" ", SourceBytesMax-1)
	if _, err := Compile(longest); err != nil {
		t.Errorf("%d bytes: %v", len(longest), err)
	}
	if _, err := Compile(longest + " "); err == nil || errorCode(err) != CodeTooLong {
		t.Errorf("%d bytes: got %v, want %s", len(longest)+1, err, CodeTooLong)
	}
}

func TestLongChainsAreNotDeep(t *testing.T) {
	for _, op := range []string{"+", "*", "&&", "||", "-"} {
		source := strings.TrimSuffix(strings.Repeat("a"+op, 1300), op)
		if _, err := Compile(source); err != nil {
			t.Errorf("a%sa%s... : %v", op, op, err)
		}
	}
}

func TestTheErrorTextCarriesTheHint(t *testing.T) {
	_, err := Compile("a = b")
	if want := `"=" has no meaning here (write == to compare)`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Compile("a # b")
	if want := `'#' has no meaning here`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
