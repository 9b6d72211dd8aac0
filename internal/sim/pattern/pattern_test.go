package pattern

import (
	"strings"
	"testing"
)

// item is the DynamoDB event of the Lambda developer guide's chapter on multi-level filtering.
const item = `{"eventName": "INSERT", "dynamodb": {"Keys": {"Id": {"N": "101"}},
	"NewImage": {"Message": {"S": "New item!"}, "Id": {"N": "101"}}, "SequenceNumber": "111", "SizeBytes": 26}}`

// order holds a value for each row of the guide's table of operators.
const order = `{"UserID": null, "LastName": "", "Name": "Alice", "Location": "New York", "Day": "Monday",
	"PaymentType": "Debit", "Weather": "Sunny", "Price": 15, "Region": "us-east-1", "FileName": "cat.png",
	"tags": ["red", "Green"], "inner": {"leaf": true}, "exact": 300}`

func TestDocumentedExamples(t *testing.T) {
	for _, c := range []struct {
		name, event, pattern string
		want                 bool
	}{
		{"null", order, `{"UserID": [null]}`, true},
		{"null is not missing", order, `{"Nobody": [null]}`, false},
		{"empty", order, `{"LastName": [""]}`, true},
		{"equals", order, `{"Name": ["Alice"]}`, true},
		{"equals heeds case", order, `{"Name": ["alice"]}`, false},
		{"equals, ignoring case", order, `{"Name": [{"equals-ignore-case": "alice"}]}`, true},
		{"and", order, `{"Location": ["New York"], "Day": ["Monday"]}`, true},
		{"and, one wrong", order, `{"Location": ["New York"], "Day": ["Sunday"]}`, false},
		{"or", order, `{"PaymentType": ["Credit", "Debit"]}`, true},
		{"or, neither", order, `{"PaymentType": ["Credit", "Cash"]}`, false},
		{"or, several fields", order, `{"$or": [{"Location": ["Paris"]}, {"Day": ["Monday"]}]}`, true},
		{"or, several fields, neither", order, `{"$or": [{"Location": ["Paris"]}, {"Day": ["Sunday"]}]}`, false},
		{"or beside and", order, `{"Name": ["Bob"], "$or": [{"Location": ["Paris"]}, {"Day": ["Monday"]}]}`, false},
		{"or with and inside", order, `{"$or": [{"Location": ["New York"], "Day": ["Sunday"]}, {"Name": ["Bob"]}]}`, false},
		{"anything but", order, `{"Weather": [{"anything-but": ["Raining"]}]}`, true},
		{"anything but itself", order, `{"Weather": [{"anything-but": ["Sunny"]}]}`, false},
		{"anything but a single text", order, `{"Weather": [{"anything-but": "Sunny"}]}`, false},
		{"anything but numbers", order, `{"Price": [{"anything-but": [100, 200]}]}`, true},
		{"anything but a prefix", order, `{"Region": [{"anything-but": {"prefix": "us-"}}]}`, false},
		{"anything but a suffix", order, `{"FileName": [{"anything-but": {"suffix": ".jpg"}}]}`, true},
		{"anything but needs something", order, `{"Nobody": [{"anything-but": ["x"]}]}`, false},
		{"numeric equals", order, `{"Price": [{"numeric": ["=", 100]}]}`, false},
		{"numeric equals by value", order, `{"Price": [{"numeric": ["=", 15.0]}]}`, true},
		{"numeric range", order, `{"Price": [{"numeric": [">", 10, "<=", 20]}]}`, true},
		{"numeric range, outside", order, `{"Price": [{"numeric": [">", 15, "<=", 20]}]}`, false},
		{"plain numbers are compared as written", order, `{"exact": [300.0]}`, false},
		{"plain numbers", order, `{"exact": [300]}`, true},
		{"exists", order, `{"Name": [{"exists": true}]}`, true},
		{"does not exist", order, `{"Nobody": [{"exists": false}]}`, true},
		{"does not exist, but does", order, `{"Name": [{"exists": false}]}`, false},
		{"exists is about leaves only", order, `{"inner": [{"exists": true}]}`, false},
		{"begins with", order, `{"Region": [{"prefix": "us-"}]}`, true},
		{"begins with something else", order, `{"Region": [{"prefix": "eu-"}]}`, false},
		{"begins with, ignoring case", order, `{"Region": [{"prefix": {"equals-ignore-case": "US-"}}]}`, true},
		{"ends with", order, `{"FileName": [{"suffix": ".png"}]}`, true},
		{"ends with something else", order, `{"FileName": [{"suffix": ".jpg"}]}`, false},
		{"an event's array matches by any element", order, `{"tags": ["red"]}`, true},
		{"an event's array, no element", order, `{"tags": ["blue", "green"]}`, false},

		{"a key", item, `{"dynamodb": {"Keys": {"Id": {"N": ["101"]}}}}`, true},
		{"another key", item, `{"dynamodb": {"Keys": {"Id": {"N": ["102"]}}}}`, false},
		{"numbers of DynamoDB are texts", item, `{"dynamodb": {"Keys": {"Id": {"N": [{"numeric": ["=", 101]}]}}}}`, false},
		{"a key of another type", item, `{"dynamodb": {"Keys": {"Id": {"S": ["101"]}}}}`, false},
		{"no old image", item, `{"dynamodb": {"OldImage": {"Id": {"N": [{"exists": false}]}}}}`, true},
		{"an old image", item, `{"dynamodb": {"OldImage": {"Id": {"N": [{"exists": true}]}}}}`, false},
		{"beside the item", item, `{"eventName": ["INSERT", "MODIFY"]}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse([]byte(c.pattern))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Match([]byte(c.event))
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("%s: got %t", c.pattern, got)
			}
		})
	}
}

func TestRefusedPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		`{`:                          "JSON",
		`[]`:                         "object",
		`{}`:                         "empty object",
		`{"a": []}`:                  "empty array",
		`{"a": "x"}`:                 "object or an array",
		`{"a": [["x"]]}`:             "array within",
		`{"a": [{"prefix": 1}]}`:     "wants a text",
		`{"a": [{"exists": "yes"}]}`: "true or false",
		`{"a": [{"begins": "x"}]}`:   `"begins"`,
		`{"a": [{"prefix": "x", "suffix": "y"}]}`: "one field",
		`{"a": [{"numeric": ["=", 1, "<", 2]}]}`:  "comparison",
		`{"a": [{"numeric": ["<", 6e9]}]}`:        "5e9",
		`{"a": [{"anything-but": ["x", 1]}]}`:     "only",
		`{"a": ["x"]} {}`:                         "follows",
	} {
		if _, err := Parse([]byte(pattern)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error about %q", pattern, err, want)
		}
	}
}
