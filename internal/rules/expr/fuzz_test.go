package expr

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// FuzzCompile compiles any text, and evaluates what compiles over items that
// have its attributes in every type.
func FuzzCompile(f *testing.F) {
	for _, group := range tables {
		for row := range strings.SplitSeq(strings.TrimSpace(group.rows), "\n") {
			source, _, _ := strings.Cut(row, " => ")
			f.Add(source)
		}
	}
	for _, seed := range []string{
		strings.Repeat("(", 4096), strings.Repeat("!", 4096), strings.Repeat("-", 4096), strings.Repeat("[", 4096),
		"a" + strings.Repeat(".a", 2000), strings.Repeat("s+", 2000) + "s", "\"\\", "'\\u", "item[", "a[:", "1e400000000", "\x00", "\xf0\x9f",
	} {
		f.Add(seed)
	}
	it := item(f, everything)
	values := make([]change.Value, 0, len(it)+1)
	for _, v := range it {
		values = append(values, v)
	}
	values = append(values, change.Value{})
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Compile(source)
		if err != nil {
			checkError(t, source, err)
			return
		}
		if !slices.IsSorted(p.Reads()) {
			t.Errorf("%q reads %q, which is not sorted", source, p.Reads())
		}
		checkEvaluation(t, p, it.Lookup)
		for _, v := range values {
			checkEvaluation(t, p, func(string) change.Value { return v })
		}
	})
}

// reporter is what *testing.T and *rapid.T have in common.
type reporter interface {
	Helper()
	Errorf(format string, arguments ...any)
	Fatalf(format string, arguments ...any)
}

// checkError fails the test unless a compile error has a code, words, and a place inside the source.
func checkError(t reporter, source string, err error) {
	t.Helper()
	var problem *Error
	if !errors.As(err, &problem) {
		t.Fatalf("%q: %T is not an *Error", source, err)
	}
	if problem.Offset < 0 || problem.Length < 0 || problem.Offset+problem.Length > len(source) {
		t.Errorf("%q: the place %d+%d is outside", source, problem.Offset, problem.Length)
	}
	if !(strings.HasPrefix(problem.Code, "expr.") || strings.HasPrefix(problem.Code, "template.")) || problem.Message == "" {
		t.Errorf("%q: no code or message: %+v", source, problem)
	}
}

// checkEvaluation fails the test unless a program gives the same twice, keeps
// to the type that Compile found, reads what it said it would, and fails with
// reasons.
func checkEvaluation(t reporter, p *Program, get Lookup) {
	t.Helper()
	watched := func(name string) change.Value {
		if _, ok := slices.BinarySearch(p.reads, name); !ok {
			t.Errorf("%q reads %q unannounced", p, name)
		}
		return get(name)
	}
	m, n := machine{source: p.source, get: watched}, machine{source: p.source, get: watched}
	first, again := m.eval(p.root), n.eval(p.root)
	if err, errAgain := m.err, n.err; err != nil || errAgain != nil {
		var reason *EvalError
		if !errors.As(err, &reason) || errAgain == nil || err.Error() != errAgain.Error() || reason.Reason == "" {
			t.Errorf("%q fails with %v, then with %v", p, err, errAgain)
		}
		return
	}
	a, b := first.Plain(), again.Plain()
	if !a.Equal(b) {
		t.Errorf("%q gives %s, then %s", p, written(a), written(b))
	}
	static := map[change.Kind]Type{change.KindBool: Bool, change.KindNumber: Number, change.KindString: String, change.KindList: List}
	if p.Type() != Any && !a.Missing() && static[a.Kind()] != p.Type() {
		t.Errorf("%q was to be %s and is %s", p, p.Type(), written(a))
	}
	condition, err := p.Condition(watched)
	switch {
	case a.Kind() == change.KindBool && (err != nil || condition != a.Bool()),
		a.Missing() && (err != nil || condition),
		a.Kind() != change.KindBool && !a.Missing() && err == nil:
		t.Errorf("%q is %s, as a condition %t, %v", p, written(a), condition, err)
	}
	amount, ok, err := p.Amount(watched)
	switch {
	case a.Missing() && (ok || err != nil),
		ok && amount.String() != first.Written().Text(),
		!ok && err == nil && !a.Missing(),
		a.Kind() != change.KindNumber && ok:
		t.Errorf("%q is %s, as an amount %s, %t, %v", p, written(a), amount, ok, err)
	}
}
