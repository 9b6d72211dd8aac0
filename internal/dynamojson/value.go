package dynamojson

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
)

// NestingMax is how deep lists and maps may be nested (DynamoDB developer guide, quotas).
const NestingMax = 32

// wanted shows the form of a value.
const wanted = `want one DynamoDB value like {"S": "text"} or {"N": "1"}`

// Decode reads a text that is one value; path is its place for an error.
func Decode(path string, src []byte) (v change.Value, err error) {
	s := Scanner{Src: src}
	switch {
	case !utf8.Valid(src):
		return change.Value{}, fmt.Errorf("%s: it is not UTF-8", path)
	case !s.Value(0, &v):
		return change.Value{}, fmt.Errorf("%s%s: %s", path, s.Fault.path, s.Fault.problem)
	case !s.AtEnd():
		return change.Value{}, fmt.Errorf("%s: something follows the value", path)
	}
	return v, nil
}

// Value reads one {"TYPE": content}. With a nil out it only validates: the same
// code does both, so what was found good once can be decoded later without fail.
func (s *Scanner) Value(depth int, out *change.Value) bool {
	// Most attributes are strings and numbers without white space.
	if p := s.Pos; len(s.Src)-p > 6 && out == nil && s.Src[p] == '{' && s.Src[p+1] == '"' &&
		s.Src[p+3] == '"' && s.Src[p+4] == ':' && s.Src[p+5] == '"' && (s.Src[p+2] == 'S' || s.Src[p+2] == 'N') {
		kind := change.KindString
		if s.Src[p+2] == 'N' {
			kind = change.KindNumber
		}
		if s.Pos = p + 5; s.scalar(kind, nil) && s.ended() {
			return true
		}
		s.Pos = p // the fault is found again, with its path
	}
	if s.Next() != '{' {
		return s.Fail(CodeValue, wanted)
	}
	s.Pos++
	if s.Next() == '}' {
		return s.Fail(CodeValue, "a value without a type: "+wanted)
	}
	name, ok := s.Text()
	if !ok || !s.take(':') {
		return false
	}
	if !s.content(name, depth, out) {
		return s.inside("." + string(s.Bytes(name)))
	}
	return s.ended()
}

// ended reads the end of a value: it has one type only.
func (s *Scanner) ended() bool {
	switch s.Next() {
	case '}':
		s.Pos++
		return true
	case ',':
		return s.Fail(CodeValue, "a value with two types: "+wanted)
	}
	return s.unexpected("}")
}

func (s *Scanner) content(name Text, depth int, out *change.Value) bool {
	switch string(s.Bytes(name)) {
	case "S":
		return s.scalar(change.KindString, out)
	case "N":
		return s.scalar(change.KindNumber, out)
	case "B":
		return s.scalar(change.KindBinary, out)
	case "BOOL":
		return s.word("true", change.Bool(true), out) || s.word("false", change.Bool(false), out) ||
			s.Fail(CodeValue, "want true or false in a BOOL")
	case "NULL":
		return s.word("true", change.Null(), out) || s.Fail(CodeValue, "want true in a NULL")
	case "SS":
		return s.set(change.KindStringSet, change.KindString, out)
	case "NS":
		return s.set(change.KindNumberSet, change.KindNumber, out)
	case "BS":
		return s.set(change.KindBinarySet, change.KindBinary, out)
	case "L":
		return s.nests(depth) && s.list(depth+1, out)
	case "M":
		return s.nests(depth) && s.fields(depth+1, out)
	}
	return s.Fail(CodeValue, "unknown type %.40q, want S, N, B, BOOL, NULL, L, M, SS, NS or BS", s.Bytes(name))
}

// word reads the word that stands for a value, if it is there.
func (s *Scanner) word(word string, v change.Value, out *change.Value) bool {
	found := s.Literal(word)
	if found && out != nil {
		*out = v
	}
	return found
}

// scalar reads the text of an S or N, or the base64 of a B.
func (s *Scanner) scalar(kind change.Kind, out *change.Value) bool {
	if s.Next() != '"' {
		return s.Fail(CodeValue, "want a string in a value of type %s", kind)
	}
	t, ok := s.Text()
	if !ok {
		return false
	}
	if t.Half {
		return s.HalfText()
	}
	if kind == change.KindString && out == nil {
		return true
	}
	content := s.Bytes(t)
	switch {
	case kind == change.KindNumber && !numeric(content):
		return s.Fail(CodeValue, "%.40q is not a number", content)
	case kind == change.KindBinary && !s.base64(content):
		return s.Fail(CodeValue, "%.40q is not base64", content)
	case out == nil:
	case kind == change.KindString:
		*out = change.String(string(content))
	case kind == change.KindNumber:
		*out = change.Number(string(content))
	default:
		*out = change.Binary(s.binary)
	}
	return true
}

// base64 decodes a text into s.binary. It allows no line breaks, which package base64 passes over.
func (s *Scanner) base64(text []byte) bool {
	var err error
	s.binary, err = base64.StdEncoding.AppendDecode(s.binary[:0], text)
	return err == nil && !bytes.ContainsAny(text, "\r\n")
}

// HalfText refuses a text that DynamoDB cannot store.
func (s *Scanner) HalfText() bool {
	return s.Fail(CodeValue, "a text with half of a surrogate pair")
}

func (s *Scanner) set(kind, of change.Kind, out *change.Value) bool {
	var texts []string
	ok := s.members(kind, func() bool {
		if out == nil {
			return s.scalar(of, nil)
		}
		var member change.Value
		ok := s.scalar(of, &member)
		texts = append(texts, member.Text())
		return ok
	})
	if ok && out != nil {
		*out = change.Set(kind, texts)
	}
	return ok
}

func (s *Scanner) list(depth int, out *change.Value) bool {
	values := []change.Value{}
	ok := s.members(change.KindList, func() bool {
		if out == nil {
			return s.Value(depth, nil)
		}
		values = append(values, change.Value{})
		return s.Value(depth, &values[len(values)-1])
	})
	if ok && out != nil {
		*out = change.List(values)
	}
	return ok
}

// members reads the values of a list or set. It notes the index of one that is wrong.
func (s *Scanner) members(kind change.Kind, read func() bool) bool {
	if s.Next() != '[' {
		return s.Fail(CodeValue, "want a list in a value of type %s", kind)
	}
	i := -1
	return s.Array(func() bool {
		i++
		return read() || s.inside(fmt.Sprintf("[%d]", i))
	})
}

func (s *Scanner) nests(depth int) bool {
	return depth < NestingMax || s.Fail(CodeValue, "nested deeper than %d levels", NestingMax)
}

func (s *Scanner) fields(depth int, out *change.Value) bool {
	if s.Next() != '{' {
		return s.Fail(CodeValue, "want an object in a value of type M")
	}
	var fields map[string]change.Value
	if out != nil {
		fields = map[string]change.Value{}
	}
	ok := s.Object(func(name Text) bool {
		if name.Half {
			return s.HalfText()
		}
		var field *change.Value
		if out != nil {
			field = new(change.Value)
		}
		if !s.Value(depth, field) {
			return s.inside("." + string(s.Bytes(name)))
		}
		// As in Image.Lookup, the first of two fields of one name counts.
		if out != nil && fields[string(s.Bytes(name))].Kind() == change.KindAbsent {
			fields[string(s.Bytes(name))] = *field
		}
		return true
	})
	if ok && out != nil {
		*out = change.Map(fields)
	}
	return ok
}
