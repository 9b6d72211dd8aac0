package expression

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Step is one part of a document path: a name, or an index where Name is "".
type Step struct {
	Name  string
	Index int
}

// Path leads to an attribute or into it.
type Path []Step

// String writes the path as [a, b, [0]].
func (p Path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		if parts[i] = s.Name; s.Name == "" {
			parts[i] = fmt.Sprintf("[%d]", s.Index)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Equal reports whether the paths are the same.
func (p Path) Equal(q Path) bool { return len(p) == len(q) && p.prefixes(q) }

// prefixes reports whether q begins with p.
func (p Path) prefixes(q Path) bool {
	if len(p) > len(q) {
		return false
	}
	for i := range p {
		if p[i] != q[i] {
			return false
		}
	}
	return true
}

// conflicts reports whether p and q need different types at the same place.
func (p Path) conflicts(q Path) bool {
	for i := range min(len(p), len(q)) {
		if p[i] != q[i] {
			return (p[i].Name == "") != (q[i].Name == "")
		}
	}
	return false
}

// Get returns what the path leads to; nil if there is nothing.
func (p Path) Get(item values.Item) types.AttributeValue {
	av := item[p[0].Name]
	for _, s := range p[1:] {
		av = s.into(av)
	}
	return av
}

func (s Step) into(av types.AttributeValue) types.AttributeValue {
	if s.Name != "" {
		if m, ok := av.(*types.AttributeValueMemberM); ok {
			return m.Value[s.Name]
		}
		return nil
	}
	if l, ok := av.(*types.AttributeValueMemberL); ok && s.Index < len(l.Value) {
		return l.Value[s.Index]
	}
	return nil
}

// checkDisjoint refuses paths of which one leads into another.
func checkDisjoint(kind string, paths []Path) error {
	for i, p := range paths {
		for _, q := range paths[:i] {
			if p.prefixes(q) || q.prefixes(p) {
				return values.Invalid("Invalid %s: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: "+
					"%v, path two: %v", kind, q, p)
			}
			if p.conflicts(q) {
				return values.Invalid("Invalid %s: Two document paths conflict with each other; must remove or rewrite one of these paths; path "+
					"one: %v, path two: %v", kind, q, p)
			}
		}
	}
	return nil
}
