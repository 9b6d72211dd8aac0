package handlers

import (
	"encoding/base64"

	"github.com/dynamill/dynamill/change"
)

// nestingMax is how deep lists and maps may be nested (DynamoDB developer
// guide, quotas: 32 levels).
const nestingMax = 32

// value reads one {"TYPE": content}. With a nil out it only validates: the same
// code does both, so what was found good once can be decoded later without fail.
func (s *scanner) value(depth int, out *change.Value) bool {
	// Most attributes are strings and numbers without white space.
	if p := s.pos; len(s.src)-p > 6 && out == nil && s.src[p] == '{' && s.src[p+1] == '"' &&
		s.src[p+3] == '"' && s.src[p+4] == ':' && s.src[p+5] == '"' {
		switch s.src[p+2] {
		case 'S':
			s.pos = p + 5
			return s.scalar(change.KindString, nil) && s.ended()
		case 'N':
			s.pos = p + 5
			return s.scalar(change.KindNumber, nil) && s.ended()
		}
	}
	if s.next() != '{' {
		return s.fail(codeValue, `want a DynamoDB value like {"S": "text"}`)
	}
	s.pos++
	if s.next() == '}' {
		return s.fail(codeValue, "a value without a type")
	}
	name, ok := s.text()
	return ok && s.take(':') && s.content(name, depth, out) && s.ended()
}

// ended reads the end of a value: it has one type only.
func (s *scanner) ended() bool {
	switch s.next() {
	case '}':
		s.pos++
		return true
	case ',':
		return s.fail(codeValue, "a value with two types")
	}
	return s.unexpected("}")
}

func (s *scanner) content(name text, depth int, out *change.Value) bool {
	switch string(s.bytes(name)) {
	case "S":
		return s.scalar(change.KindString, out)
	case "N":
		return s.scalar(change.KindNumber, out)
	case "B":
		return s.scalar(change.KindBinary, out)
	case "BOOL":
		return s.boolean(out)
	case "NULL":
		if !s.literal("true") {
			return s.fail(codeValue, "want true in a NULL")
		}
		assign(out, change.Null())
		return true
	case "SS":
		return s.set(change.KindStringSet, change.KindString, out)
	case "NS":
		return s.set(change.KindNumberSet, change.KindNumber, out)
	case "BS":
		return s.set(change.KindBinarySet, change.KindBinary, out)
	case "L":
		return s.list(depth+1, out)
	case "M":
		return s.fields(depth+1, out)
	}
	return s.fail(codeValue, "unknown type %.40q", s.bytes(name))
}

func assign(out *change.Value, v change.Value) {
	if out != nil {
		*out = v
	}
}

func (s *scanner) boolean(out *change.Value) bool {
	switch {
	case s.literal("true"):
		assign(out, change.Bool(true))
	case s.literal("false"):
		assign(out, change.Bool(false))
	default:
		return s.fail(codeValue, "want true or false in a BOOL")
	}
	return true
}

// scalar reads the text of an S or N, or the base64 of a B.
func (s *scanner) scalar(kind change.Kind, out *change.Value) bool {
	if s.next() != '"' {
		return s.fail(codeValue, "want a string in a value of type %s", kind)
	}
	t, ok := s.text()
	if !ok {
		return false
	}
	if t.half {
		return s.halfText()
	}
	if kind == change.KindString && out == nil {
		return true
	}
	content := s.bytes(t)
	switch kind {
	case change.KindString:
		*out = change.String(string(content))
	case change.KindNumber:
		if !numeric(content) {
			return s.fail(codeValue, "%.40q is not a number", content)
		}
		if out != nil {
			*out = change.Number(string(content))
		}
	case change.KindBinary:
		if !isBase64(content) {
			return s.fail(codeValue, "%.40q is not base64", content)
		}
		if out != nil {
			*out = change.Binary(fromBase64(content))
		}
	}
	return true
}

func (s *scanner) halfText() bool {
	return s.fail(codeValue, "a text with half of a surrogate pair")
}

// isBase64 reports whether fromBase64 can decode a text: whole groups of four
// of the standard alphabet, with padding at the end only.
func isBase64(b []byte) bool {
	if len(b)%4 != 0 {
		return false
	}
	for range 2 {
		if len(b) > 0 && b[len(b)-1] == '=' {
			b = b[:len(b)-1]
		}
	}
	for _, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

func fromBase64(b []byte) []byte {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	n, err := base64.StdEncoding.Decode(out, b)
	if err != nil {
		panic("handlers: base64 was validated: " + err.Error())
	}
	return out[:n]
}

func (s *scanner) set(kind, of change.Kind, out *change.Value) bool {
	if s.next() != '[' {
		return s.fail(codeValue, "want a list in a value of type %s", kind)
	}
	var members []string
	ok := s.array(func() bool {
		if out == nil {
			return s.scalar(of, nil)
		}
		var member change.Value
		if !s.scalar(of, &member) {
			return false
		}
		members = append(members, member.Text())
		return true
	})
	if ok && out != nil {
		*out = change.Set(kind, members)
	}
	return ok
}

func (s *scanner) list(depth int, out *change.Value) bool {
	if depth > nestingMax {
		return s.fail(codeValue, "nested deeper than %d levels", nestingMax)
	}
	if s.next() != '[' {
		return s.fail(codeValue, "want a list in a value of type L")
	}
	members := []change.Value{}
	ok := s.array(func() bool {
		if out == nil {
			return s.value(depth, nil)
		}
		members = append(members, change.Value{})
		return s.value(depth, &members[len(members)-1])
	})
	if ok && out != nil {
		*out = change.List(members)
	}
	return ok
}

func (s *scanner) fields(depth int, out *change.Value) bool {
	if depth > nestingMax {
		return s.fail(codeValue, "nested deeper than %d levels", nestingMax)
	}
	if s.next() != '{' {
		return s.fail(codeValue, "want an object in a value of type M")
	}
	var fields map[string]change.Value
	if out != nil {
		fields = map[string]change.Value{}
	}
	ok := s.object(func(name text) bool {
		if name.half {
			return s.halfText()
		}
		if out == nil {
			return s.value(depth, nil)
		}
		var field change.Value
		if !s.value(depth, &field) {
			return false
		}
		// As in Image.Lookup, the first of two fields of one name counts.
		if _, twice := fields[string(s.bytes(name))]; !twice {
			fields[string(s.bytes(name))] = field
		}
		return true
	})
	if ok && out != nil {
		*out = change.Map(fields)
	}
	return ok
}
