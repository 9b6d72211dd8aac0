package change

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// Kind is the DynamoDB type of a Value.
type Kind uint8

// The DynamoDB attribute types. The zero Kind means that there is no value.
const (
	KindAbsent Kind = iota
	KindString
	KindNumber
	KindBinary
	KindBool
	KindNull
	KindList
	KindMap
	KindStringSet
	KindNumberSet
	KindBinarySet
)

var kindNames = [...]string{"absent", "S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}

// String returns DynamoDB's descriptor of the type: S, N, B, BOOL, NULL, L, M, SS, NS or BS.
func (k Kind) String() string { return kindNames[k] }

// Value is one immutable DynamoDB attribute value. The zero Value is absent.
type Value struct {
	kind    Kind
	boolean bool
	text    string // S, N (as DynamoDB writes it) and B (as bytes)
	list    []Value
	fields  map[string]Value
}

// String makes an S.
func String(s string) Value { return Value{kind: KindString, text: s} }

// Number makes an N from its decimal text.
func Number(s string) Value { return Value{kind: KindNumber, text: s} }

// Binary makes a B.
func Binary(b []byte) Value { return Value{kind: KindBinary, text: string(b)} }

// Bool makes a BOOL.
func Bool(b bool) Value { return Value{kind: KindBool, boolean: b} }

// Null makes a NULL.
func Null() Value { return Value{kind: KindNull} }

// List makes an L. It keeps vs: the caller must not change it afterwards.
func List(vs []Value) Value { return Value{kind: KindList, list: vs} }

// Map makes an M. It keeps m: the caller must not change it afterwards.
func Map(m map[string]Value) Value { return Value{kind: KindMap, fields: m} }

// Set makes a set of the given kind from its members' texts. The order of members has no meaning.
func Set(kind Kind, members []string) Value {
	member := map[Kind]Kind{KindStringSet: KindString, KindNumberSet: KindNumber, KindBinarySet: KindBinary}[kind]
	vs := make([]Value, len(members))
	for i, m := range members {
		vs[i] = Value{kind: member, text: m}
	}
	return Value{kind: kind, list: vs}
}

// Kind returns the value's type; KindAbsent for the zero Value.
func (v Value) Kind() Kind { return v.kind }

// Text returns the text of an S or N and the bytes of a B, else "".
func (v Value) Text() string { return v.text }

// Bool returns the truth of a BOOL.
func (v Value) Bool() bool { return v.boolean }

// List returns the members of an L or of a set. It must not be changed.
func (v Value) List() []Value { return v.list }

// Map returns the fields of an M. It must not be changed.
func (v Value) Map() map[string]Value { return v.fields }

// Missing reports whether the value is absent or NULL.
func (v Value) Missing() bool { return v.kind == KindAbsent || v.kind == KindNull }

// Equal reports whether two values are the same to DynamoDB: same type, same
// content, sets in any order. Numbers compare by their text, which DynamoDB
// normalizes.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind || v.boolean != w.boolean || v.text != w.text ||
		len(v.list) != len(w.list) || len(v.fields) != len(w.fields) {
		return false
	}
	vl, wl := v.list, w.list
	if v.isSet() {
		vl, wl = sorted(vl), sorted(wl)
	}
	for i := range vl {
		if !vl[i].Equal(wl[i]) {
			return false
		}
	}
	return maps.EqualFunc(v.fields, w.fields, Value.Equal)
}

func (v Value) isSet() bool { return v.kind >= KindStringSet }

func sorted(vs []Value) []Value {
	vs = slices.Clone(vs)
	slices.SortFunc(vs, func(a, b Value) int { return strings.Compare(a.text, b.text) })
	return vs
}

// digestLength is the length of a Digest in hexadecimal characters: 64 bits,
// enough to tell one value of one attribute from another.
const digestLength = 16

// Digest returns the first 64 bits of a SHA-256 over the values in their order, as 16 hexadecimal characters. Equal values
// have equal digests.
func Digest(vs ...Value) string {
	var room [digestRoom]byte
	text := room[:0]
	for _, v := range vs {
		text = v.appendTo(text)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:digestLength/2])
}

// digestRoom holds the bytes of most values that are digested.
const digestRoom = 512

// appendTo appends bytes that no other value has.
func (v Value) appendTo(text []byte) []byte {
	flag := byte(0)
	if v.boolean {
		flag = 1
	}
	text = appendText(append(text, byte(v.kind), flag), v.text)
	list := v.list
	if v.isSet() {
		list = sorted(list)
	}
	text = binary.BigEndian.AppendUint64(text, uint64(len(list)))
	for _, m := range list {
		text = m.appendTo(text)
	}
	text = binary.BigEndian.AppendUint64(text, uint64(len(v.fields)))
	for _, name := range slices.Sorted(maps.Keys(v.fields)) {
		text = v.fields[name].appendTo(appendText(text, name))
	}
	return text
}

func appendText(text []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(text, uint64(len(s))), s...)
}
