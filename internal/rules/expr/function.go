package expr

import (
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// function is called as f(x), or as x.f(y) if it is a method.
type function struct {
	name, usage string
	gives       Type
	method      func(text, part string) bool // nil of f(x)
}

var functions = []function{
	{"has", "has(x)", Bool, nil},
	{"size", "size(x)", Number, nil},
	{"startsWith", "x.startsWith(y)", Bool, strings.HasPrefix},
	{"endsWith", "x.endsWith(y)", Bool, strings.HasSuffix},
	{"contains", "x.contains(y)", Bool, strings.Contains},
}

const usagesHint = "the functions are has(x), size(x), x.startsWith(y), x.endsWith(y) and x.contains(y)"

// others are functions of other languages that have a counterpart here.
var others = map[string]string{
	"exists": "has", "defined": "has", "attribute_exists": "has", "exist": "has",
	"length": "size", "len": "size", "count": "size",
	"begins_with": "startsWith", "beginsWith": "startsWith", "hasPrefix": "startsWith", "prefix": "startsWith",
	"hasSuffix": "endsWith", "suffix": "endsWith", "includes": "contains", "like": "contains",
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
