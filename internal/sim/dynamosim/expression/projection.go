package expression

import (
	"sort"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Projection is a set of disjoint paths.
type Projection []Path

// ParseProjection parses a ProjectionExpression.
func ParseProjection(text string, attrs *Attributes) (Projection, error) {
	p, err := newParser("ProjectionExpression", text, attrs)
	if err != nil {
		return nil, err
	}
	paths := Projection{p.path()}
	for p.err == nil && p.acceptMark(",") {
		paths = append(paths, p.path())
	}
	if err := p.expectEnd(); err != nil {
		return nil, err
	}
	return paths, checkDisjoint("ProjectionExpression", paths)
}

// Of returns what the paths lead to, in the same nesting; elements of lists close ranks.
func (paths Projection) Of(item values.Item) values.Item {
	ordered := append(Projection(nil), paths...)
	sort.SliceStable(ordered, func(i, j int) bool { return before(ordered[i], ordered[j]) })
	picked := values.Item{}
	at := map[string]int{} // where each list element went, by its path
	for _, p := range ordered {
		if av := p.Get(item); av != nil {
			picked[p[0].Name] = graft(picked[p[0].Name], p, 1, values.CloneValue(av), at)
		}
	}
	return picked
}

// graft puts av at the rest of the path below what was picked so far.
func graft(into types.AttributeValue, p Path, depth int, av types.AttributeValue, at map[string]int) types.AttributeValue {
	if depth == len(p) {
		return av
	}
	if step := p[depth]; step.Name != "" {
		m, ok := into.(*types.AttributeValueMemberM)
		if !ok {
			m = &types.AttributeValueMemberM{Value: values.Item{}}
		}
		m.Value[step.Name] = graft(m.Value[step.Name], p, depth+1, av, at)
		return m
	}
	l, ok := into.(*types.AttributeValueMemberL)
	if !ok {
		l = &types.AttributeValueMemberL{}
	}
	element := p[:depth+1].String()
	i, seen := at[element]
	if !seen {
		i = len(l.Value)
		at[element] = i
		l.Value = append(l.Value, nil)
	}
	l.Value[i] = graft(l.Value[i], p, depth+1, av, at)
	return l
}

// before orders paths by name and then by index.
func before(p, q Path) bool {
	for i := range min(len(p), len(q)) {
		if p[i].Name != q[i].Name {
			return p[i].Name < q[i].Name
		}
		if p[i].Index != q[i].Index {
			return p[i].Index < q[i].Index
		}
	}
	return len(p) < len(q)
}
