package expr

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// functions are called as f(x), methods as x.f(y).
var (
	functions = map[string]bool{"has": true, "size": true}
	methods   = map[string]bool{"startsWith": true, "endsWith": true, "contains": true}
)

var usages = map[string]string{
	"has": "has(x)", "size": "size(x)",
	"startsWith": "x.startsWith(y)", "endsWith": "x.endsWith(y)", "contains": "x.contains(y)",
}

const usagesHint = "the functions are has(x), size(x), x.startsWith(y), x.endsWith(y) and x.contains(y)"

// others are functions of other languages that have a counterpart here.
var others = map[string]string{
	"exists": "has", "defined": "has", "attribute_exists": "has", "exist": "has",
	"length": "size", "len": "size", "count": "size",
	"begins_with": "startsWith", "beginsWith": "startsWith", "hasPrefix": "startsWith", "prefix": "startsWith",
	"hasSuffix": "endsWith", "suffix": "endsWith", "includes": "contains", "like": "contains",
}

// knownFunction refuses a name that is no function, or is one that is called
// the other way, and says what was perhaps meant.
func knownFunction(name token, method bool) error {
	known := functions
	if method {
		known = methods
	}
	if known[name.text] {
		return nil
	}
	err := &Error{name.start, name.end - name.start, CodeUnknownFunction,
		fmt.Sprintf("there is no function %s", clip(name.text)), usagesHint}
	if usage, ok := usages[name.text]; ok {
		err.Message = fmt.Sprintf("%s is not called like this", name.text)
		err.Hint = "write " + usage
	} else if near := nearest(name.text); near != "" {
		err.Hint = "did you mean " + usages[near] + "?"
	}
	return err
}

// nearest returns the function that a name was perhaps meant to be, or "".
func nearest(name string) string {
	if other, ok := others[name]; ok {
		return other
	}
	best, bestDistance := "", 3 // two slips at most, and at most half the letters
	for _, f := range []string{"has", "size", "startsWith", "endsWith", "contains"} {
		if len(name) > 2*len(f) {
			continue
		}
		d := spelling.Distance(strings.ToLower(strings.ReplaceAll(name, "_", "")), strings.ToLower(f))
		if d < bestDistance && 2*d <= len(f) {
			best, bestDistance = f, d
		}
	}
	return best
}
