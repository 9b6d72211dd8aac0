package expr

import "fmt"

// path parses a primary and the steps behind it: .field, .method(x), [index],
// [from:to]. Steps count as depth: a path is as deep a tree as it has steps,
// and DynamoDB nests documents 32 deep at most.
func (p *parser) path() (node, error) {
	start := p.peek().start
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	for steps := 1; ; steps++ {
		t, ok := p.take(tokenDot, tokenOpenBracket)
		if !ok {
			return n, nil
		}
		if steps > DepthMax {
			return nil, &Error{t.start, t.end - t.start, CodeTooDeep, fmt.Sprintf("a path has at most %d steps", DepthMax), ""}
		}
		if t.kind == tokenDot {
			n, err = p.dot(n, start)
		} else {
			n, err = p.subscript(n, start, t)
		}
		if err != nil {
			return nil, err
		}
	}
}

// dot parses a field's name or a method call, from behind the dot. Words like
// in and true are names here.
func (p *parser) dot(of node, start int) (node, error) {
	name, ok := p.take(tokenName, tokenIn)
	if !ok {
		return nil, p.unexpected("a field's name")
	}
	if open, ok := p.take(tokenOpen); ok {
		return p.call(name, open, of, start)
	}
	return &field{p.since(start), of, name.text}, nil
}

// subscript parses an index, a field's name in quotes, or a slice, from behind the bracket.
func (p *parser) subscript(of node, start int, open token) (node, error) {
	if err := p.open(open); err != nil {
		return nil, err
	}
	defer p.close()
	var from, to node
	var err error
	if p.peek().kind != tokenColon {
		if from, err = p.or(); err != nil {
			return nil, err
		}
	}
	_, sliced := p.take(tokenColon)
	if sliced && p.peek().kind != tokenCloseBracket {
		if to, err = p.or(); err != nil {
			return nil, err
		}
	}
	if err := p.expect(tokenCloseBracket, open); err != nil {
		return nil, err
	}
	place := p.since(start)
	if sliced {
		return &slice{place, of, from, to}, nil
	}
	if name, ok := from.(*literal); ok && name.typ == String {
		return &field{place, of, name.value.Text()}, nil
	}
	return &index{place, of, from}, nil
}

// call parses the arguments of a function, or of a method if there is a
// subject, from behind the parenthesis; the whole call begins at start.
func (p *parser) call(name, open token, subject node, start int) (node, error) {
	if err := p.open(open); err != nil {
		return nil, err
	}
	defer p.close()
	if err := knownFunction(name, subject != nil); err != nil {
		return nil, err
	}
	var arguments []node
	for more := p.peek().kind != tokenClose; more; _, more = p.take(tokenComma) {
		argument, err := p.or()
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, argument)
	}
	if err := p.expect(tokenClose, open); err != nil {
		return nil, err
	}
	place := p.since(start)
	if len(arguments) != 1 {
		return nil, &Error{place.start, place.end - place.start, CodeSyntax,
			fmt.Sprintf("%s takes one argument, not %d", name.text, len(arguments)), "write " + usages[name.text]}
	}
	if subject == nil {
		return &call{place, name.text, arguments[0], nil}, nil
	}
	return &call{place, name.text, subject, arguments[0]}, nil
}

// expect consumes a closing token, or says what it was to close.
func (p *parser) expect(k kind, open token) error {
	if _, ok := p.take(k); ok {
		return nil
	}
	err := p.unexpected(k.String())
	err.Hint = fmt.Sprintf("to close the %s at byte %d", open.kind, open.start)
	return err
}

// words are other languages' operators that read as names here.
var words = map[string]string{
	"and": "write && for and", "AND": "write && for and", "or": "write || for or", "OR": "write || for or",
	"not": "write ! for not", "NOT": "write ! for not", "is": "write == to compare", "IN": "write in",
	"contains": "write x.contains(y)", "matches": "there are no regular expressions",
}

// unexpected says that the next token is not what can stand here.
func (p *parser) unexpected(wanted string) *Error {
	t := p.peek()
	hint := ""
	found := fmt.Sprintf("%q", clip(p.source[t.start:t.end]))
	switch t.kind {
	case tokenEnd:
		found = "the end"
	case tokenName:
		hint = words[t.text]
	}
	if p.next > 0 && hint == "" && p.tokens[p.next-1].kind == tokenName {
		hint = words[p.tokens[p.next-1].text]
	}
	return p.errorAt(t, fmt.Sprintf("expected %s, found %s", wanted, found), hint)
}

func (p *parser) errorAt(t token, message, hint string) *Error {
	return &Error{t.start, t.end - t.start, CodeSyntax, message, hint}
}
