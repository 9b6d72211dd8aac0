// Package lines reads the keys in files of one JSON value per line: exports, archives and lists of keys. Each format says
// where the key lies in a line. Memory is bounded by the longest line.
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
	err := json.Unmarshal(text, &fields)
	if syntax, broken := errors.AsType[*json.SyntaxError](err); broken {
		return nil, fmt.Errorf("it is not JSON: %w (at byte %d)", err, syntax.Offset)
	}
	if err != nil || fields == nil { // nil: the text was null
		return nil, errors.New("it is no JSON object")
	}
	return fields, nil
}

// KeyOf takes the key out of an item in DynamoDB's JSON, {"pk": {"S": "USER#1"}, ...}, or in
// plain JSON, as people write it: {"pk": "USER#1", "sk": 5.0}. Numbers are brought to DynamoDB's form.
func KeyOf(item Fields, names KeyNames) (key change.Key, err error) {
	if key.Partition, err = keyText(item, names.Partition); err == nil && names.Sort != "" {
		key.Sort, err = keyText(item, names.Sort)
	}
	return key, err
}

const keyForm = `want {"S": "text"} or {"N": "1"}`

func keyText(item Fields, name string) (string, error) {
	raw, ok := item[name]
	if !ok {
		return "", fmt.Errorf("it has no key attribute %q", name)
	}
	value, err := valueOf(raw)
	text := value.Text()
	switch {
	case err != nil:
	case value.Kind() == change.KindBinary:
		err = errors.New("it is binary (type B): only string and number keys are supported")
	case value.Kind() == change.KindNumber:
		text, err = number(text)
	case value.Kind() != change.KindString:
		err = errors.New(keyForm)
	case text == "": // DynamoDB has no empty keys
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("key attribute %q: %w", name, err)
	}
	return text, nil
}

// valueOf reads a value in either form.
func valueOf(raw json.RawMessage) (change.Value, error) {
	switch first := raw[0]; {
	case first == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return change.String(text), err
	case first == '-', '0' <= first && first <= '9':
		return change.Number(string(raw)), nil
	}
	value, err := dynamojson.Decode("value", raw)
	if err != nil {
		return change.Value{}, fmt.Errorf("%s (%w)", keyForm, err)
	}
	return value, nil
}

// number brings a number to the form that DynamoDB gives it.
func number(text string) (string, error) {
	n, err := decimal.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%.50q is no number of DynamoDB's: %w", text, err)
	}
	return n.String(), nil
}
