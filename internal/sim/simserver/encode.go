package simserver

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// memberPrefix begins the names of the SDK's types for attribute values; its end is the type's tag, such as "S".
const memberPrefix = "AttributeValueMember"

// field is a field of a struct as the protocol names it.
type field struct {
	index  int
	prefix string // the name in quotes, and a colon
}

var fieldsOf sync.Map // by type: []field

// fields returns the fields of a type of the SDK that the protocol has.
func fields(t reflect.Type) []field {
	if known, ok := fieldsOf.Load(t); ok {
		return known.([]field)
	}
	var all []field
	for f := range t.Fields() {
		if !f.IsExported() || f.Anonymous || f.Name == "ResultMetadata" || f.Name == "ErrorCodeOverride" {
			continue
		}
		name := f.Name
		if t == reflect.TypeFor[types.Record]() {
			name = strings.ToLower(name[:1]) + name[1:]
		}
		all = append(all, field{f.Index[0], strconv.Quote(name) + ":"})
	}
	fieldsOf.Store(t, all)
	return all
}

// encode appends a value of the SDK as JSON.
func encode(to []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		return encode(to, v.Elem())
	case reflect.Interface:
		return encodeAttribute(to, v.Elem().Elem())
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			return strconv.AppendFloat(to, float64(t.UnixMilli())/1000, 'f', -1, 64)
		}
		return encodeStruct(to, v)
	case reflect.Map:
		return encodeMap(to, v)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(base64.StdEncoding.AppendEncode(append(to, '"'), v.Bytes()), '"')
		}
		to = append(to, '[')
		for i := range v.Len() {
			if i > 0 {
				to = append(to, ',')
			}
			to = encode(to, v.Index(i))
		}
		return append(to, ']')
	case reflect.String:
		return appendString(to, v.String())
	case reflect.Bool:
		return strconv.AppendBool(to, v.Bool())
	case reflect.Int32, reflect.Int64:
		return strconv.AppendInt(to, v.Int(), 10)
	case reflect.Float64:
		return strconv.AppendFloat(to, v.Float(), 'f', -1, 64)
	}
	panic("simserver: the protocol has no " + v.Type().String())
}

// encodeStruct leaves out what is not set.
func encodeStruct(to []byte, v reflect.Value) []byte {
	to = append(to, '{')
	first := true
	for _, f := range fields(v.Type()) {
		value := v.Field(f.index)
		if value.IsZero() {
			continue
		}
		if !first {
			to = append(to, ',')
		}
		first = false
		to = encode(append(to, f.prefix...), value)
	}
	return append(to, '}')
}

func encodeMap(to []byte, v reflect.Value) []byte {
	to = append(to, '{')
	first := true
	for key, value := range v.Seq2() {
		if !first {
			to = append(to, ',')
		}
		first = false
		to = encode(append(appendString(to, key.String()), ':'), value)
	}
	return append(to, '}')
}

// encodeAttribute appends an attribute value, {"S": "text"}.
func encodeAttribute(to []byte, v reflect.Value) []byte {
	to = append(to, `{"`...)
	to = append(to, strings.TrimPrefix(v.Type().Name(), memberPrefix)...)
	to = append(to, `":`...)
	return append(encode(to, v.FieldByName("Value")), '}')
}

// appendString appends a text in quotes. Most hold nothing that JSON escapes.
func appendString(to []byte, text string) []byte {
	if slices.ContainsFunc([]byte(text), func(b byte) bool { return b < ' ' || b >= 0x7f || b == '"' || b == '\\' }) {
		quoted, _ := json.Marshal(text) // a string always becomes JSON
		return append(to, quoted...)
	}
	return append(append(append(to, '"'), text...), '"')
}
