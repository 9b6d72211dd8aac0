package dynamojson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

func TestErrorsNameThePlaceInTheValue(t *testing.T) {
	deep := func(levels int) string {
		return strings.Repeat(`{"L":[`, levels) + `{"S":"x"}` + strings.Repeat(`]}`, levels)
	}
	for src, want := range map[string]string{
		`"x"`:                                   `a: want one DynamoDB value like {"S": "text"} or {"N": "1"}`,
		`{"N":"1x"}`:                            `a.N: "1x" is not a number`,
		`{"S":"x","N":"1"}`:                     `a: a value with two types: want one DynamoDB value`,
		`{"L":[{"S":"x"},{"M":{"b":{"X":1}}}]}`: `a.L[1].M.b.X: unknown type "X"`,
		`{"NS":["1","x"]}`:                      `a.NS[1]: "x" is not a number`,
		`{"S":"\ud83d"}`:                        `a.S: a text with half of a surrogate pair`,
		`{"S":"x"} {}`:                          `a: something follows the value`,
		"{\"S\":\"\xff\"}":                      `a: it is not UTF-8`,
		deep(NestingMax + 1):                    `nested deeper than 32 levels`,
		``:                                      `a: want one DynamoDB value`,
	} {
		if _, err := Decode("a", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	if _, err := Decode("a", []byte(deep(NestingMax))); err != nil {
		t.Error(err)
	}
}

// FuzzValue reads anything as a value. A value that is read must be JSON, must be found
// good without being made, and must be read the same when it is written anew.
func FuzzValue(f *testing.F) {
	for _, src := range []string{
		`{"S":"\u00e9\ud83d\ude00"}`, `{"N":"-1.5e3"}`, `{"B":"AAA="}`, `{"BOOL":true}`, `{"NULL":true}`, `{"SS":["a","b"]}`, `{"NS":["1"]}`,
		`{"BS":["AA=="]}`,
		`{"M":{"l":{"L":[{"N":"1."},{"S":""}]},"l":{"S":"twice"}}}`, ` { "S" : "x" } `, `{"S":"x"`, `{}`, `null`, "",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		value, err := Decode("value", src)
		checked := Scanner{Src: src}
		if good := checked.Value(0, nil); err == nil && !good {
			t.Fatalf("%s was read, but not found good: %v", src, checked.Fault)
		}
		if err != nil {
			return
		}
		if !json.Valid(src) {
			t.Fatalf("%s is no JSON", src)
		}
		written, err := json.Marshal(Encode(value))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Decode("value", written); err != nil || !again.Equal(value) {
			t.Fatalf("%s was read as %v, written as %s and read as %v: %v", src, value, written, again, err)
		}
		if value.Kind() == change.KindAbsent {
			t.Fatalf("%s was read as no value", src)
		}
	})
}
