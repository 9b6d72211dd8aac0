package expr

import (
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// function is called as f(x), or as x.f(y) if it is a method.
type function struct {
	name, usage string
	arguments   int // in the parentheses
	gives       Type
	method      func(text, part string) bool // nil of f(x)
	ofText      func(text string) string     // nil unless f(x) makes a string of a string
}

var functions = []function{
	{name: "has", usage: "has(x)", arguments: 1, gives: Bool},
	{name: "size", usage: "size(x)", arguments: 1, gives: Number},
	{name: "lower", usage: "lower(x)", arguments: 1, gives: String, ofText: strings.ToLower},
	{name: "upper", usage: "upper(x)", arguments: 1, gives: String, ofText: strings.ToUpper},
	{name: "trim", usage: "trim(x)", arguments: 1, gives: String, ofText: strings.TrimSpace},
	{name: "pad", usage: "pad(n, width)", arguments: 2, gives: String},
	{name: "startsWith", usage: "x.startsWith(y)", arguments: 1, gives: Bool, method: strings.HasPrefix},
	{name: "endsWith", usage: "x.endsWith(y)", arguments: 1, gives: Bool, method: strings.HasSuffix},
	{name: "contains", usage: "x.contains(y)", arguments: 1, gives: Bool, method: strings.Contains},
}

// PadWidthMax is the greatest width of pad: no number has more digits.
const PadWidthMax = 38

const usagesHint = "the functions are has(x), size(x), lower(x), upper(x), trim(x), pad(n, width), x.startsWith(y), x.endsWith(y) " +
	"and x.contains(y)"

// others are functions of other languages that have a counterpart here.
var others = map[string]string{
	"exists": "has", "defined": "has", "attribute_exists": "has", "exist": "has",
	"length": "size", "len": "size", "count": "size",
	"begins_with": "startsWith", "beginsWith": "startsWith", "hasPrefix": "startsWith", "prefix": "startsWith",
	"hasSuffix": "endsWith", "suffix": "endsWith", "includes": "contains", "like": "contains",
	"toLowerCase": "lower", "toLower": "lower", "lowercase": "lower", "toUpperCase": "upper", "toUpper": "upper", "uppercase": "upper",
	"strip": "trim", "padStart": "pad", "lpad": "pad", "zfill": "pad", "zeropad": "pad", "format": "pad",
}

func named(name string) *function {
	for i := range functions {
		if functions[i].name == name {
			return &functions[i]
		}
	}
	return nil
}

// function returns the function of a name. It refuses a name that is no function, or is
// one that is called the other way, and says what was perhaps meant.
func (p *parser) function(name token, method bool) *function {
	if f := named(name.text); f != nil {
		if (f.method != nil) != method {
			p.fail(name.span, CodeUnknownFunction, "write "+f.usage, "%s is not called like this", name.text)
		}
		return f
	}
	hint := usagesHint
	if near := nearest(name.text); near != nil {
		hint = "did you mean " + near.usage + "?"
	}
	p.fail(name.span, CodeUnknownFunction, hint, "there is no function %s", clip(name.text))
	return &function{}
}

// nearest returns the function that a name was perhaps meant to be, or nil.
func nearest(name string) *function {
	if other, ok := others[name]; ok {
		return named(other)
	}
	var best *function
	bestDistance := 3 // two slips at most, and at most half the letters
	plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
	for i, f := range functions {
		if len(name) > 2*len(f.name) {
			continue
		}
		d := spelling.Distance(plain, strings.ToLower(f.name))
		if d < bestDistance && 2*d <= len(f.name) {
			best, bestDistance = &functions[i], d
		}
	}
	return best
}
