package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamojson"
	"github.com/dynamill/dynamill/internal/rules"
)

var blog = rules.Table{PartitionKey: "pk", SortKey: "sk"}

const insertRecord = `{"eventName":"INSERT","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/t/stream/2026-01-01T00:00:00.000",
 "dynamodb":{"Keys":{"pk":{"S":"USER#u1"},"sk":{"S":"PROFILE"}},"NewImage":{"pk":{"S":"USER#u1"},"name":{"S":"Ada"}},"SequenceNumber":"12"}}`

func TestEveryWrappingGivesTheSameRecord(t *testing.T) {
	for name, src := range map[string]string{
		"a single record":                 insertRecord,
		"a list":                          "[" + insertRecord + "]",
		"a Lambda event":                  `{"Records":[` + insertRecord + `]}`,
		"an answer of GetRecords":         `{"Records":[` + insertRecord + `],"NextShardIterator":"x"}`,
		"a file with a byte order mark":   "\ufeff" + insertRecord,
		"a record with fields unheard of": strings.Replace(insertRecord, "{", `{"eventID":"1","awsRegion":"x",`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			records, err := Decode([]byte(src), blog)
			if err != nil {
				t.Fatal(err)
			}
			if len(records) != 1 {
				t.Fatalf("%d records, want 1", len(records))
			}
			r := records[0]
			if want := (change.Key{Partition: "USER#u1", Sort: "PROFILE"}); r.Key != want {
				t.Errorf("key %v, want %v", r.Key, want)
			}
			if r.Position.Epoch() != "2026-01-01T00:00:00.000" || r.Position.SequenceNumber() != "12" {
				t.Errorf("position %v", r.Position)
			}
			if r.Old != nil || r.New == nil || r.New.Lookup("name").Text() != "Ada" {
				t.Errorf("images %v, %v", r.Old, r.New)
			}
		})
	}
}

func TestEveryTypeOfValueIsRead(t *testing.T) {
	const image = `{"s":{"S":""},"n":{"N":"-1.5e3"},"b":{"B":"AQI="},"t":{"BOOL":false},"z":{"NULL":true},
	 "l":{"L":[{"S":"a"},{"M":{"x":{"N":"1"}}}]},"ss":{"SS":["a","b"]},"ns":{"NS":["1","2"]},"bs":{"BS":["AQ=="]}}`
	records, err := Decode([]byte(`{"dynamodb":{"Keys":{"pk":{"S":"p"},"sk":{"N":"5"}},"NewImage":`+image+`}}`), blog)
	if err != nil {
		t.Fatal(err)
	}
	if records[0].Key.Sort != "5" || !records[0].Position.IsZero() {
		t.Errorf("key %v, position %v", records[0].Key, records[0].Position)
	}
	want := change.Item{
		"s": change.String(""), "n": change.Number("-1.5e3"), "b": change.Binary([]byte{1, 2}), "t": change.Bool(false),
		"z": change.Null(), "l": change.List([]change.Value{change.String("a"), change.Map(map[string]change.Value{"x": change.Number("1")})}),
		"ss": change.Set(change.KindStringSet, []string{"b", "a"}), "ns": change.Set(change.KindNumberSet, []string{"1", "2"}),
		"bs": change.Set(change.KindBinarySet, []string{"\x01"}),
	}
	if diff := cmp.Diff(want, records[0].New); diff != "" {
		t.Error(diff)
	}
}

func TestATimeToLiveDeletionIsSeenInBothSpellings(t *testing.T) {
	for _, identity := range []string{
		`{"type":"Service","principalId":"dynamodb.amazonaws.com"}`,
		`{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"}`,
	} {
		records, err := Decode([]byte(`{"userIdentity":`+identity+
			`,"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"p"},"sk":{"S":"s"}},"OldImage":{"pk":{"S":"p"}}}}`), blog)
		if err != nil {
			t.Fatal(err)
		}
		if !records[0].Expired {
			t.Errorf("%s: not seen as expired", identity)
		}
	}
}

func TestBadFilesAreRefusedWithThePlace(t *testing.T) {
	record := func(keys, images string) string {
		return `{"dynamodb":{"Keys":` + keys + `,` + images + `}}`
	}
	const keys = `{"pk":{"S":"p"},"sk":{"S":"s"}}`
	deep := strings.Repeat(`{"L":[`, dynamojson.NestingMax+2) + `{"S":"x"}` + strings.Repeat(`]}`, dynamojson.NestingMax+2)
	for name, c := range map[string]struct{ src, want string }{
		"an empty file":          {"", "empty"},
		"no JSON":                {"{\n  nonsense", "2:3: not JSON"},
		"JSON cut off":           {`{"Records":[`, "ends too early"},
		"something after it":     {insertRecord + "x", "something follows"},
		"a text":                 {`"x"`, "want a record"},
		"no records":             {`{"Records":[]}`, "no record"},
		"Records is no list":     {`{"Records":1}`, "list of records"},
		"a record is no object":  {`[1]`, "record 1: want an object"},
		"an item, not a record":  {`{"pk":{"S":"p"}}`, `no field "dynamodb"`},
		"a field of wrong type":  {`{"eventName":1,"dynamodb":{}}`, "a number does not belong there"},
		"no keys":                {record(`{}`, `"NewImage":{"a":{"S":"b"}}`), "holds 0 attributes"},
		"other keys":             {record(`{"PK":{"S":"p"},"SK":{"S":"s"}}`, `"NewImage":{"a":{"S":"b"}}`), `has no "pk"`},
		"a binary key":           {record(`{"pk":{"B":"AQ=="},"sk":{"S":"s"}}`, `"NewImage":{"a":{"S":"b"}}`), "only S and N"},
		"an empty key":           {record(`{"pk":{"S":""},"sk":{"S":"s"}}`, `"NewImage":{"a":{"S":"b"}}`), "never empty"},
		"a plain value":          {record(keys, `"NewImage":{"a":"b"}`), "dynamodb.NewImage.a: want one DynamoDB value"},
		"two types":              {record(keys, `"NewImage":{"a":{"S":"b","N":"1"}}`), "want one DynamoDB value"},
		"an unknown type":        {record(keys, `"NewImage":{"a":{"X":"b"}}`), `unknown type "X"`},
		"a number as JSON":       {record(keys, `"NewImage":{"a":{"N":1}}`), "dynamodb.NewImage.a.N: want a string"},
		"a number that is none":  {record(keys, `"NewImage":{"a":{"N":"1x"}}`), `"1x" is not a number`},
		"bad base64":             {record(keys, `"NewImage":{"a":{"B":"!"}}`), "not base64"},
		"a text as BOOL":         {record(keys, `"NewImage":{"a":{"BOOL":"true"}}`), "true or false"},
		"NULL false":             {record(keys, `"NewImage":{"a":{"NULL":false}}`), "want true"},
		"a null text":            {record(keys, `"NewImage":{"a":{"S":null}}`), "want a string"},
		"a number in a set":      {record(keys, `"NewImage":{"a":{"SS":["x",2]}}`), "SS[1]: want a string"},
		"a bad member of a list": {record(keys, `"NewImage":{"a":{"L":[{"S":"x"},{"N":"y"}]}}`), "L[1].N"},
		"too deep":               {record(keys, `"NewImage":{"a":`+deep+`}`), "nested deeper than 32"},
		"no image":               {record(keys, `"SequenceNumber":"1"`), "NEW_AND_OLD_IMAGES"},
		"a bad sequence number":  {record(keys, `"NewImage":{"a":{"S":"b"}},"SequenceNumber":"x1"`), "SequenceNumber"},
		"an unknown event":       {`{"eventName":"UPSERT","dynamodb":{"Keys":` + keys + `,"NewImage":{"a":{"S":"b"}}}}`, `"UPSERT"`},
		"MODIFY with one image": {`{"eventName":"MODIFY","dynamodb":{"Keys":` + keys + `,"NewImage":{"a":{"S":"b"}}}}`,
			"MODIFY with NewImage only"},
		"INSERT with old image": {`{"eventName":"INSERT","dynamodb":{"Keys":` + keys + `,"OldImage":{"a":{"S":"b"}}}}`,
			"INSERT with OldImage only"},
		"REMOVE with new image": {`{"eventName":"REMOVE","dynamodb":{"Keys":` + keys + `,"OldImage":{"a":{"S":"b"}},"NewImage":{"a":{"S":"b"}}}}`,
			"REMOVE with both images"},
		"the second record bad": {`[` + insertRecord + `,{}]`, "record 2:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(c.src), blog)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestATableWithoutASortKeyHasOneKeyAttribute(t *testing.T) {
	records, err := Decode([]byte(`{"dynamodb":{"Keys":{"id":{"S":"p"}},"NewImage":{"id":{"S":"p"}}}}`), rules.Table{PartitionKey: "id"})
	if err != nil || records[0].Key != (change.Key{Partition: "p"}) {
		t.Errorf("got %v, %v", records, err)
	}
	if _, err := Decode([]byte(insertRecord), rules.Table{PartitionKey: "pk"}); err == nil {
		t.Error("a record with a sort key was taken for one of a table without")
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add([]byte(insertRecord))
	f.Add([]byte(`[{"dynamodb":{"Keys":{"pk":{"S":"a"},"sk":{"N":"1"}},"OldImage":{"x":{"L":[{"M":{}}]}}}}]`))
	f.Fuzz(func(t *testing.T, src []byte) {
		records, err := Decode(src, blog)
		if err != nil {
			return
		}
		for _, r := range records {
			if r.Key.Partition == "" || r.Key.Sort == "" || r.Old == nil && r.New == nil {
				t.Errorf("an incomplete record was accepted: %v", r)
			}
		}
	})
}
