package lines

import (
	"encoding/json"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// FuzzKeys reads anything as a line in every form. What is read as a key must be one that
// DynamoDB could have, and must be read the same when it is written anew.
func FuzzKeys(f *testing.F) {
	for _, line := range []string{
		`{"pk":{"S":"USER#1"},"sk":{"N":"-5.0"}}`, `{"pk":"a","sk":5e3}`, `{"pk":{"B":"YQ=="},"sk":"x"}`, `{"pk":"\ud800","sk":"` + "\xff" + `"}`,
		`{"Item":{"pk":{"S":"a"},"sk":{"S":"b"}}}`, `{"pk" : 1 , "sk":{ "S" : "\u0000" } }`, `[]`, `null`, ``, `{"pk":-0,"sk":1E130}`,
	} {
		f.Add([]byte(line))
	}
	names := KeyNames{Partition: "pk", Sort: "sk"}
	f.Fuzz(func(t *testing.T, line []byte) {
		fields, err := Object(line)
		if err != nil {
			return
		}
		key, err := KeyOf(fields, names)
		if err != nil {
			return
		}
		if key.Partition == "" || key.Sort == "" {
			t.Fatalf("%q has an empty part: %+v", line, key)
		}
		if parsed := change.ParseKey(key.String()); parsed != key {
			t.Fatalf("%+v is printed as %q and read as %+v", key, key.String(), parsed)
		}
		text, err := json.Marshal(map[string]map[string]string{"pk": {"S": key.Partition}, "sk": {"S": key.Sort}})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Object(text)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := KeyOf(again, names); err != nil || same != key {
			t.Fatalf("%+v is read anew as %+v: %v", key, same, err)
		}
	})
}
