package expr

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// anyValue draws a value of any type, a few levels deep.
func anyValue(depth int) *rapid.Generator[change.Value] {
	number := rapid.Custom(func(t *rapid.T) change.Value {
		return change.Number(fmt.Sprintf("%se%d", rapid.StringMatching(`-?[0-9]{1,38}`).Draw(t, "digits"),
			rapid.IntRange(-90, 80).Draw(t, "exponent")))
	})
	text := rapid.Map(rapid.SampledFrom([]string{"", "a", "ab", "1", "é", "\xff", "banned"}), change.String)
	kinds := []*rapid.Generator[change.Value]{
		number, rapid.Map(rapid.IntRange(-3, 3), func(n int) change.Value { return change.Number(fmt.Sprint(n)) }),
		text, rapid.Map(rapid.Bool(), change.Bool), rapid.Just(change.Null()), rapid.Just(change.Value{}),
		rapid.Just(change.Number("not a number")), rapid.Map(rapid.SliceOf(rapid.Byte()), change.Binary),
		rapid.Map(rapid.SliceOf(rapid.StringMatching(`[ab1]{1,2}`)),
			func(s []string) change.Value { return change.Set(change.KindStringSet, s) }),
		rapid.Map(rapid.SliceOf(rapid.StringMatching(`[0-9]\.?[0-9]`)),
			func(s []string) change.Value { return change.Set(change.KindNumberSet, s) }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), change.List),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "x-y"}), anyValue(depth-1), 0, 3), change.Map))
	}
	return rapid.OneOf(kinds...)
}

// anySource draws an expression that parses, though its types may not fit.
func anySource(t *rapid.T, depth int) string {
	if depth == 0 {
		return rapid.SampledFrom([]string{"a", "b", "c", "0", "1", "2.5", `"a"`, `''`, "true", "null", `item["x-y"]`, "a.b", "b[0]",
			"[]"}).Draw(t, "leaf")
	}
	sub := func() string { return anySource(t, depth-1) }
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0:
		return "!(" + sub() + ")"
	case 1:
		return "-(" + sub() + ")"
	case 2:
		return rapid.SampledFrom([]string{"size", "lower", "upper", "trim"}).Draw(t, "function") + "(" + sub() + ")"
	case 3:
		return "has(" + rapid.SampledFrom([]string{"a", "a.b", "b[0]", `c["x-y"]`, "c[a]"}).Draw(t, "path") + ")"
	case 4:
		return "(" + sub() + ")." + rapid.SampledFrom([]string{"startsWith", "endsWith", "contains"}).Draw(t, "method") + "(" + sub() + ")"
	case 5:
		return "(" + sub() + ")[" + sub() + "]"
	case 6:
		return "(" + sub() + ")[" + sub() + ":" + sub() + "]"
	case 7:
		return "[" + sub() + ", " + sub() + "]"
	}
	op := rapid.SampledFrom([]string{"||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/"}).Draw(t, "operator")
	return "(" + sub() + ") " + op + " (" + sub() + ")"
}

func TestEvaluatingNeverPanicsAndIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := anySource(t, rapid.IntRange(0, 4).Draw(t, "depth"))
		p, err := Compile(source)
		if err != nil {
			checkError(t, source, err)
			return
		}
		it := change.Item{}
		for _, name := range p.Reads() {
			it[name] = anyValue(3).Draw(t, name)
		}
		checkEvaluation(t, p, it.Lookup)
	})
}

func TestComparisonsAgreeWithEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := change.Item{"a": anyValue(2).Draw(t, "a"), "b": anyValue(2).Draw(t, "b")}
		holds := func(source string) bool { return run(source, it) == "true" }
		if holds("a == b") == holds("a != b") {
			t.Error("a == b and a != b are the same")
		}
		if holds("a == b") != holds("b == a") {
			t.Error("== depends on the order of its operands")
		}
		if it["a"].Missing() || it["b"].Missing() {
			for _, op := range []string{"==", "<", "<=", ">", ">=", "in"} {
				if holds("a " + op + " b") {
					t.Errorf("a missing value %s something", op)
				}
			}
			return
		}
		if !holds("a == a") || !holds("a in [b, a]") {
			t.Error("a value is not equal to itself")
		}
		if holds("a == b") != holds("a in [b]") {
			t.Error("a in [b] is not a == b")
		}
		if run("a < b", it) == "error value.type" {
			return
		}
		if holds("a < b") == holds("a >= b") || holds("a > b") == holds("a <= b") || holds("a < b") != holds("b > a") ||
			holds("a <= b") != (holds("a < b") || holds("a == b")) {
			t.Error("the orders disagree")
		}
	})
}

func TestSumsAreThoseOfDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.StringMatching(`-?[0-9]{1,12}\.[0-9]{1,6}`), 2, 20).Draw(t, "numbers")
		var sum decimal.Decimal
		for _, text := range numbers {
			n, err := decimal.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if sum, err = sum.Add(n); err != nil {
				t.Fatal(err)
			}
		}
		if got := run(strings.Join(numbers, " + "), nil); got != sum.String() {
			t.Errorf("got %s, want %s", got, sum)
		}
	})
}

func TestSlicesJoinAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := rapid.IntRange(0, 40).Draw(t, "n")
		it := change.Item{"s": change.String(s), "n": change.Number(fmt.Sprint(n))}
		for _, source := range []string{"s[:n] + s[n:] == s", "size(s[:n]) <= n", "size(s[:n]) + size(s[n:]) == size(s)", "s.startsWith(s[:n])",
			"s.endsWith(s[n:])", "s.contains(s[1:n])"} {
			if got := run(source, it); got != "true" {
				t.Errorf("%s is %s for %q, %d", source, got, s, n)
			}
		}
	})
}

func TestConcatenationIsBoundedAndLinear(t *testing.T) {
	it := change.Item{"s": change.String(strings.Repeat("x", 300)), "big": change.String(strings.Repeat("y", StringBytesMax))}
	chain := strings.TrimSuffix(strings.Repeat("s+", 1000), "+")
	if got := run("size("+chain+")", it); got != "300000" {
		t.Errorf("a chain of 1000 strings has size %s", got)
	}
	for source, want := range map[string]string{
		`size(big + "")`: fmt.Sprint(StringBytesMax), `big + "z"`: "error value.size", `"z" + big`: "error value.size",
		chain + "+" + strings.Repeat("s+", 400) + "s": "error value.size",
	} {
		if got := run(source, it); got != want {
			t.Errorf("%.20s...: got %s, want %s", source, got, want)
		}
	}
}

// The dearest expressions that a source of 4096 bytes allows, over operands of
// DynamoDB's greatest size, end in a time that no test machine exceeds.
func TestTheDearestExpressionsEnd(t *testing.T) {
	members := make([]string, 40000)
	for i := range members {
		members[i] = fmt.Sprint(i)
	}
	it := change.Item{
		"s": change.String(strings.Repeat("x", 400_000)), "p": change.String(strings.Repeat("x", 200_000) + "y"),
		"n": change.Set(change.KindNumberSet, members), "o": change.Set(change.KindNumberSet, members),
	}
	for _, unit := range []string{"s[1:]==s||", "s.contains(p)||", "n!=o||", "-1 in n||"} {
		source := strings.Repeat(unit, 20) + "false"
		begin := time.Now()
		if got := run(source, it); got != "false" {
			t.Errorf("%s...: %s", unit, got)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s... takes %s", unit, took)
		}
	}
}
