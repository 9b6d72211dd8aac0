package simserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attributeTypes are the SDK's types of attribute values, by their tags.
var attributeTypes = map[string]reflect.Type{
	"S": reflect.TypeFor[types.AttributeValueMemberS](), "SS": reflect.TypeFor[types.AttributeValueMemberSS](),
	"N": reflect.TypeFor[types.AttributeValueMemberN](), "NS": reflect.TypeFor[types.AttributeValueMemberNS](),
	"B": reflect.TypeFor[types.AttributeValueMemberB](), "BS": reflect.TypeFor[types.AttributeValueMemberBS](),
	"BOOL": reflect.TypeFor[types.AttributeValueMemberBOOL](), "NULL": reflect.TypeFor[types.AttributeValueMemberNULL](),
	"M": reflect.TypeFor[types.AttributeValueMemberM](), "L": reflect.TypeFor[types.AttributeValueMemberL](),
}

// decode reads the JSON of a request into an input of the SDK.
func decode(body []byte, into reflect.Value) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var parsed any
	if err := decoder.Decode(&parsed); err != nil {
		return fmt.Errorf("the request is not JSON: %w", err)
	}
	return fill(into, parsed)
}

// fill sets a value of the SDK to what was parsed.
func fill(into reflect.Value, parsed any) error {
	switch from := parsed.(type) {
	case nil:
		return nil
	case map[string]any:
		return fillMembers(into, from)
	case []any:
		return fillSlice(into, from)
	}
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		return fill(into.Elem(), parsed)
	}
	switch from := parsed.(type) {
	case string:
		return fillText(into, from)
	case bool:
		if into.Kind() == reflect.Bool {
			into.SetBool(from)
			return nil
		}
	case json.Number:
		if n, err := from.Int64(); err == nil && into.CanInt() {
			into.SetInt(n)
			return nil
		}
	}
	return fmt.Errorf("%v is no %s", parsed, into.Type())
}

func fillText(into reflect.Value, from string) error {
	switch {
	case into.Kind() == reflect.String:
		into.SetString(from)
	case into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Uint8:
		decoded, err := base64.StdEncoding.DecodeString(from)
		if err != nil {
			return fmt.Errorf("binary that is not base64: %w", err)
		}
		into.SetBytes(decoded)
	default:
		return fmt.Errorf("%q is no %s", from, into.Type())
	}
	return nil
}

func fillSlice(into reflect.Value, from []any) error {
	if into.Kind() != reflect.Slice {
		return fmt.Errorf("a list is no %s", into.Type())
	}
	into.Set(reflect.MakeSlice(into.Type(), len(from), len(from)))
	for i, member := range from {
		if err := fill(into.Index(i), member); err != nil {
			return err
		}
	}
	return nil
}

// fillMembers sets a struct, a map or an attribute value.
func fillMembers(into reflect.Value, from map[string]any) error {
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return fillMembers(into.Elem(), from)
	case reflect.Interface:
		return fillAttribute(into, from)
	case reflect.Map:
		into.Set(reflect.MakeMapWithSize(into.Type(), len(from)))
		for name, member := range from {
			value := reflect.New(into.Type().Elem()).Elem()
			if err := fill(value, member); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			into.SetMapIndex(reflect.ValueOf(name), value)
		}
		return nil
	case reflect.Struct:
		for name, member := range from {
			field := into.FieldByName(name)
			if !field.IsValid() {
				return fmt.Errorf("%s has no %s", into.Type(), name)
			}
			if err := fill(field, member); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("an object is no %s", into.Type())
}

func fillAttribute(into reflect.Value, from map[string]any) error {
	if len(from) != 1 {
		return fmt.Errorf("an attribute value has %d types", len(from))
	}
	for tag, content := range from {
		t, ok := attributeTypes[tag]
		if !ok {
			return fmt.Errorf("an attribute value has the type %q", tag)
		}
		value := reflect.New(t)
		if err := fill(value.Elem().FieldByName("Value"), content); err != nil {
			return err
		}
		into.Set(value)
	}
	return nil
}
