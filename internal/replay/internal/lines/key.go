// Package lines reads files of one JSON value per line: exports, archives and
// lists of keys. Of each line it takes the key only; where that lies in the
// line is for each format to say. Memory is bounded by the longest line.
package lines

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

// KeyNames names the key attributes; Sort is "" in a table without a sort key.
type KeyNames struct{ Partition, Sort string }

// Fields are the members of a JSON object.
type Fields map[string]json.RawMessage

// Object reads a JSON object, and nothing behind it.
func Object(text []byte) (Fields, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	var fields Fields
	if err := json.Unmarshal(text, &fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("it is not JSON: %w (at byte %d)", err, syntax.Offset)
		}
		return nil, errors.New("it is no JSON object")
	}
	if fields == nil { // the text was null
		return nil, errors.New("it is no JSON object")
	}
	return fields, nil
}

// KeyOf takes the key out of an item in DynamoDB's JSON, as DynamoDB wrote it: {"pk": {"S": "USER#1"}, ...}.
func KeyOf(item Fields, names KeyNames) (change.Key, error) {
	return keyOf(item, names, func(raw json.RawMessage) (string, error) {
		_, text, err := typedText(raw)
		return text, err
	})
}

// PlainKeyOf takes the key out of an item in DynamoDB's JSON or in plain JSON,
// as people write it: {"pk": "USER#1", "sk": 5.0}. Numbers are brought to DynamoDB's form.
func PlainKeyOf(item Fields, names KeyNames) (change.Key, error) {
	return keyOf(item, names, func(raw json.RawMessage) (string, error) {
		if text, ok := plainText(raw); ok {
			return checked(text)
		}
		isNumber, text, err := typedText(raw)
		if err != nil || !isNumber {
			return text, err
		}
		return number(text)
	})
}

func keyOf(item Fields, names KeyNames, read func(json.RawMessage) (string, error)) (key change.Key, err error) {
	if key.Partition, err = attribute(item, names.Partition, read); err != nil || names.Sort == "" {
		return key, err
	}
	key.Sort, err = attribute(item, names.Sort, read)
	return key, err
}

func attribute(item Fields, name string, read func(json.RawMessage) (string, error)) (string, error) {
	raw, ok := item[name]
	if !ok {
		return "", fmt.Errorf("it has no key attribute %q", name)
	}
	text, err := read(raw)
	if err != nil {
		return "", fmt.Errorf("key attribute %q: %w", name, err)
	}
	return text, nil
}

func typedText(raw json.RawMessage) (isNumber bool, text string, err error) {
	const form = `want {"S": "text"} or {"N": "1"}`
	value, err := dynamojson.Decode("value", raw)
	switch {
	case err != nil:
		return false, "", fmt.Errorf("%s (%w)", form, err)
	case value.Kind() == change.KindBinary:
		return false, "", errors.New("it is binary (type B): only string and number keys are supported")
	case value.Kind() == change.KindString:
		text, err = checked(value.Text())
		return false, text, err
	case value.Kind() == change.KindNumber:
		_, err = number(value.Text())
		return true, value.Text(), err
	}
	return false, "", errors.New(form)
}

// plainText reads a JSON string or number.
func plainText(raw json.RawMessage) (string, bool) {
	switch raw[0] {
	case '"':
		var text string
		return text, json.Unmarshal(raw, &text) == nil
	case '{', '[', 't', 'f', 'n':
		return "", false
	}
	text, err := number(string(raw))
	return text, err == nil
}

// number brings a number to the form that DynamoDB gives it.
func number(text string) (string, error) {
	n, err := decimal.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%.50q is no number of DynamoDB's: %w", text, err)
	}
	return n.String(), nil
}

// checked refuses the empty text: DynamoDB has no empty keys.
func checked(text string) (string, error) {
	if text == "" {
		return "", errors.New("it is empty")
	}
	return text, nil
}
