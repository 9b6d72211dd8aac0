package expr

import "github.com/dynamill/dynamill/internal/rules/expr/internal/scanner"

// path parses a primary and the steps behind it: .field, .method(x), [index],
// [from:to]. Steps count as depth: a path is as deep a tree as it has steps,
// and DynamoDB nests documents 32 deep at most.
func (p *parser) path() node {
	start := p.peek().Start
	n := p.primary()
	for steps := 1; ; steps++ {
		t, ok := p.take(".", "[")
		switch {
		case !ok:
			return n
		case steps > DepthMax:
			return p.fail(t.Span, CodeTooDeep, "", "a path has at most %d steps", DepthMax)
		case t.Kind == ".":
			n = p.dot(n, start)
		default:
			n = p.nested(t, func() node { return p.subscript(n, start, t) })
		}
	}
}

// dot parses a field's name or a method call, from behind the dot. Words like
// in and true are names here.
func (p *parser) dot(of node, start int) node {
	name, ok := p.take(scanner.Name, scanner.QuotedName, "in")
	if !ok {
		return p.unexpected("a field's name", "")
	}
	if name.Kind == scanner.QuotedName {
		return p.field(p.since(start), of, name.Text)
	}
	if open, ok := p.take("("); ok {
		return p.nested(open, func() node { return p.call(name, open, of, start) })
	}
	return p.field(p.since(start), of, name.Text)
}

func (p *parser) field(at scanner.Span, of node, name string) node {
	if got := of.static(); got != Any {
		p.mistype(of, "", "only a map has fields, this is %s", got)
	}
	return &field{base{at, Any}, of, name}
}

// subscript parses an index, a field's name in quotes, or a slice, from behind the bracket.
func (p *parser) subscript(of node, start int, open scanner.Token) node {
	var from node
	if p.peek().Kind != ":" {
		from = p.or()
	}
	if _, sliced := p.take(":"); sliced {
		return p.slice(of, from, start, open)
	}
	p.expect("]", open)
	place := p.since(start)
	if name, ok := from.(*literal); ok && name.typ == String {
		return p.field(place, of, name.value.Text())
	}
	return p.index(place, of, from)
}

func (p *parser) index(at scanner.Span, of, position node) node {
	switch got := of.static(); got {
	case Any:
		p.want(position, "[ ]", "a position or a field's name", Number, String)
	case List:
		p.want(position, "[ ]", "a position", Number)
	case String:
		p.mistype(of, "write x[0:1] for a part of a string", "[ ] needs a list or a map, this is %s", got)
	default:
		p.mistype(of, nullHint(got), "[ ] needs a list or a map, this is %s", got)
	}
	p.position(position)
	return &index{base{at, Any}, of, position}
}

// slice parses the second bound, from behind the colon.
func (p *parser) slice(of, from node, start int, open scanner.Token) node {
	p.want(of, "[ : ]", "a string or a list", String, List)
	p.bound(from)
	var to node
	if p.peek().Kind != "]" {
		to = p.or()
	}
	p.bound(to)
	p.expect("]", open)
	return &slice{base{p.since(start), of.static()}, of, from, to}
}

func (p *parser) bound(n node) {
	if n != nil {
		p.want(n, "[ : ]", "positions", Number)
		p.position(n)
	}
}

// isPath reports whether a node names a place in the item.
func isPath(n node) bool {
	switch step := n.(type) {
	case *attribute:
		return true
	case *field:
		return isPath(step.of)
	case *index:
		return isPath(step.of)
	}
	return false
}
