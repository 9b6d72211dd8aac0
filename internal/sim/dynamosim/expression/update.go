package expression

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Update is a parsed UpdateExpression.
type Update struct{ actions []action }

// action is one change; term is nil for REMOVE.
type action struct {
	clause string // SET, REMOVE, ADD, DELETE
	path   Path
	term   term
}

// term is the right side of an action: it may fail on what the item holds.
type term interface {
	value(item values.Item) (types.AttributeValue, error)
}

type (
	plain       struct{ of operand }
	ifNotExists struct {
		path Path
		or   term
	}
	listAppend struct{ head, tail term }
	arithmetic struct {
		minus       bool
		left, right term
	}
)

// Paths returns the paths that the update changes.
func (u Update) Paths() Projection {
	paths := make(Projection, len(u.actions))
	for i, a := range u.actions {
		paths[i] = a.path
	}
	return paths
}

// ParseUpdate parses an UpdateExpression.
func ParseUpdate(text string, attrs *Attributes) (Update, error) {
	p, err := newParser("UpdateExpression", text, attrs)
	if err != nil {
		return Update{}, err
	}
	var u Update
	seen := map[string]bool{}
	for p.err == nil && (len(seen) == 0 || p.peek().kind != tokenEnd) {
		t := p.next()
		clause := strings.ToUpper(t.text)
		if t.kind != tokenWord || clause != "SET" && clause != "REMOVE" && clause != "ADD" && clause != "DELETE" {
			p.fail("Syntax error; token: %q", t.text)
			break
		}
		if seen[clause] {
			p.fail("The %q section can only be used once in an update expression;", clause)
			break
		}
		seen[clause] = true
		u.actions = append(u.actions, p.action(clause))
		for p.err == nil && p.acceptMark(",") {
			u.actions = append(u.actions, p.action(clause))
		}
	}
	if err := p.expectEnd(); err != nil {
		return Update{}, err
	}
	return u, checkDisjoint("UpdateExpression", u.Paths())
}

func (p *parser) action(clause string) action {
	a := action{clause: clause, path: p.path()}
	switch clause {
	case "SET":
		p.expectMark("=")
		if p.err == nil {
			a.term = p.sum()
		}
	case "ADD", "DELETE":
		if p.err == nil && p.peek().kind != tokenValue {
			p.unexpected()
		}
		if p.err == nil {
			c := p.constant()
			a.term = plain{c}
			if kind := values.TypeOf(c.av); p.err == nil && !isSet(kind) && (clause == "DELETE" || kind != "N") {
				p.fail("Incorrect operand type for operator or function; operator: %s, operand type: %s", clause, kind)
			}
		}
	}
	return a
}

func isSet(kind string) bool { return kind == "SS" || kind == "NS" || kind == "BS" }

// sum reads a term, or two joined by + or -.
func (p *parser) sum() term {
	left := p.term()
	op := p.peek()
	if !op.mark("+") && !op.mark("-") {
		return left
	}
	p.next()
	right := p.term()
	for _, t := range []term{left, right} {
		if p.err == nil && constantType(t) != "" && constantType(t) != "N" {
			p.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", op.text, constantType(t))
		}
	}
	return arithmetic{op.mark("-"), left, right}
}

func constantType(t term) string {
	if l, ok := t.(plain); ok {
		if c, ok := l.of.(constant); ok {
			return values.TypeOf(c.av)
		}
	}
	return ""
}

func (p *parser) term() term {
	t := p.peek()
	if t.mark("(") {
		p.next()
		if p.depth++; p.depth > depthMax {
			p.fail("The expression is nested too deeply;")
			return nil
		}
		inner := p.sum()
		p.depth--
		p.expectMark(")")
		return inner
	}
	if t.kind != tokenWord || !p.tokens[p.at+1].mark("(") {
		if t.kind == tokenValue {
			return plain{p.constant()}
		}
		return plain{p.path()}
	}
	if p.depth++; p.depth > depthMax {
		p.fail("The expression is nested too deeply;")
		return nil
	}
	defer func() { p.depth-- }()
	switch t.text {
	case "if_not_exists":
		p.at += 2
		path := p.path()
		p.expectMark(",")
		or := p.term()
		p.expectMark(")")
		return ifNotExists{path, or}
	case "list_append":
		p.at += 2
		head := p.term()
		p.expectMark(",")
		tail := p.term()
		p.expectMark(")")
		for _, t := range []term{head, tail} {
			if p.err == nil && constantType(t) != "" && constantType(t) != "L" {
				p.fail("Incorrect operand type for operator or function; operator or function: list_append, operand type: %s", constantType(t))
			}
		}
		return listAppend{head, tail}
	}
	if _, ok := functions[t.text]; ok || t.text == "size" {
		p.fail("The function is not allowed in an update expression; function: %s", t.text)
		return nil
	}
	p.fail("Invalid function name; function: %s", t.text)
	return nil
}
