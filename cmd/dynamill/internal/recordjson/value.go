package recordjson

import (
	"encoding/json"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

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
	value, err := dynamojson.Decode(path, raw)
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
	item := make(change.Item, len(fields))
	for attribute, raw := range fields {
		value, err := dynamojson.Decode("dynamodb."+name+"."+attribute, raw)
		if err != nil {
			return nil, err
		}
		item[attribute] = value
	}
	return item, nil
}
