package recordjson

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/dynamill/dynamill/change"
)

// nestingMax is how deep lists and maps may be nested (DynamoDB developer
// guide, quotas: 32 levels).
const nestingMax = 32

// numberForm is what DynamoDB's N type may hold as text, its 38 digits aside.
var numberForm = regexp.MustCompile(`^-?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$`)

func decodeKey(keys map[string]json.RawMessage, table Table) (change.Key, error) {
	want := 1
	if table.Sort != "" {
		want = 2
	}
	if len(keys) != want {
		return change.Key{}, fmt.Errorf("dynamodb.Keys holds %d attributes, but the rule file's table has %s", len(keys), table.describe())
	}
	partition, err := keyText(keys, table.Partition, table)
	if err != nil || table.Sort == "" {
		return change.Key{Partition: partition}, err
	}
	sort, err := keyText(keys, table.Sort, table)
	return change.Key{Partition: partition, Sort: sort}, err
}

func keyText(keys map[string]json.RawMessage, name string, table Table) (string, error) {
	raw, ok := keys[name]
	if !ok {
		return "", fmt.Errorf("dynamodb.Keys has no %q, but the rule file's table has %s", name, table.describe())
	}
	path := "dynamodb.Keys." + name
	value, err := decodeValue(path, raw, 0)
	if err != nil {
		return "", err
	}
	if kind := value.Kind(); kind != change.KindString && kind != change.KindNumber {
		return "", fmt.Errorf("%s: a key of type %s is not supported, only S and N", path, kind)
	}
	if value.Text() == "" {
		return "", fmt.Errorf("%s: a key is never empty", path)
	}
	return value.Text(), nil
}

func (t Table) describe() string {
	if t.Sort == "" {
		return fmt.Sprintf("the key %q", t.Partition)
	}
	return fmt.Sprintf("the keys %q and %q", t.Partition, t.Sort)
}

// decodeImage returns a nil Image for an image that is not there.
func decodeImage(name string, fields map[string]json.RawMessage) (change.Image, error) {
	if len(fields) == 0 { // an item always has its key
		return nil, nil
	}
	item, err := decodeFields("dynamodb."+name, fields, 0)
	if err != nil {
		return nil, err
	}
	return change.Item(item), nil
}

func decodeFields(path string, fields map[string]json.RawMessage, depth int) (map[string]change.Value, error) {
	values := make(map[string]change.Value, len(fields))
	for name, raw := range fields {
		value, err := decodeValue(path+"."+name, raw, depth)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

// decodeValue reads one {"TYPE": value}.
func decodeValue(path string, raw json.RawMessage, depth int) (change.Value, error) {
	if depth > nestingMax {
		return change.Value{}, fmt.Errorf("%s: nested deeper than %d levels", path, nestingMax)
	}
	var typed map[string]json.RawMessage
	if err := json.Unmarshal(raw, &typed); err != nil || len(typed) != 1 {
		return change.Value{}, fmt.Errorf(`%s: want one DynamoDB value like {"S": "text"} or {"N": "1"}`, path)
	}
	for kind, content := range typed {
		value, err := decodeTyped(path, kind, content, depth)
		if err != nil {
			return change.Value{}, err
		}
		return value, nil
	}
	panic("unreachable: the map has one member")
}

func decodeTyped(path, kind string, content json.RawMessage, depth int) (change.Value, error) {
	path += "." + kind
	switch kind {
	case "S", "N", "B":
		text, err := decodeScalar(path, kind, content)
		if err != nil {
			return change.Value{}, err
		}
		return scalar(kind, text), nil
	case "BOOL", "NULL":
		var truth bool
		if err := unmarshal(path, content, &truth, "true or false"); err != nil {
			return change.Value{}, err
		}
		if kind == "BOOL" {
			return change.Bool(truth), nil
		}
		if !truth {
			return change.Value{}, fmt.Errorf("%s: want true", path)
		}
		return change.Null(), nil
	case "SS", "NS", "BS":
		return decodeSet(path, kind, content)
	case "L":
		return decodeList(path, content, depth)
	case "M":
		var fields map[string]json.RawMessage
		if err := unmarshal(path, content, &fields, "an object of DynamoDB values"); err != nil {
			return change.Value{}, err
		}
		values, err := decodeFields(path, fields, depth+1)
		return change.Map(values), err
	}
	return change.Value{}, fmt.Errorf("%s: unknown type %q, want S, N, B, BOOL, NULL, L, M, SS, NS or BS", path, kind)
}

func scalar(kind, text string) change.Value {
	switch kind {
	case "N":
		return change.Number(text)
	case "B":
		return change.Binary([]byte(text))
	}
	return change.String(text)
}

// decodeScalar reads the text of an S or N or the bytes of a B.
func decodeScalar(path, kind string, content json.RawMessage) (string, error) {
	var text string
	if err := unmarshal(path, content, &text, "a string"); err != nil {
		return "", err
	}
	switch kind {
	case "N":
		if !numberForm.MatchString(text) {
			return "", fmt.Errorf("%s: %q is not a number", path, text)
		}
	case "B":
		bytes, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return "", fmt.Errorf("%s: not base64: %w", path, err)
		}
		return string(bytes), nil
	}
	return text, nil
}

func decodeSet(path, kind string, content json.RawMessage) (change.Value, error) {
	var raws []json.RawMessage
	if err := unmarshal(path, content, &raws, "a list of strings"); err != nil {
		return change.Value{}, err
	}
	members := make([]string, len(raws))
	for i, raw := range raws {
		member, err := decodeScalar(fmt.Sprintf("%s[%d]", path, i), kind[:1], raw)
		if err != nil {
			return change.Value{}, err
		}
		members[i] = member
	}
	kinds := map[string]change.Kind{"SS": change.KindStringSet, "NS": change.KindNumberSet, "BS": change.KindBinarySet}
	return change.Set(kinds[kind], members), nil
}

func decodeList(path string, content json.RawMessage, depth int) (change.Value, error) {
	var raws []json.RawMessage
	if err := unmarshal(path, content, &raws, "a list of DynamoDB values"); err != nil {
		return change.Value{}, err
	}
	members := make([]change.Value, len(raws))
	for i, raw := range raws {
		member, err := decodeValue(fmt.Sprintf("%s[%d]", path, i), raw, depth+1)
		if err != nil {
			return change.Value{}, err
		}
		members[i] = member
	}
	return change.List(members), nil
}

// unmarshal decodes content into target, which null never fits.
func unmarshal(path string, content json.RawMessage, target any, want string) error {
	err := json.Unmarshal(content, target)
	if string(content) == "null" {
		err = errors.New("null")
	}
	if err != nil {
		return fmt.Errorf("%s: want %s", path, want)
	}
	return nil
}
