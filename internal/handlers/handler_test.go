package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

var _ lambda.Handler = (*Handler)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const streamARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/app/stream/2026-01-01T00:00:00.000"

// engine stands for the engine: it notes what it is asked to do, in order.
type engine struct {
	calls   []string
	records []change.Record
	names   []string // what Lookup("name") of the new image gave
	doneMax int      // records that succeed in all; after that failure is returned
	failure error
	parked  []parkedRecord
	parking error
	derive  error // from the call behind deriveMax on

	deriveMax, derived int // calls
}

func newEngine() *engine { return &engine{doneMax: 1 << 30} }

func (e *engine) Process(_ context.Context, records []change.Record) (int, error) {
	var numbers []string
	for i, r := range records {
		if len(e.records) == e.doneMax {
			e.calls = append(e.calls, "process "+strings.Join(numbers, " "))
			return i, e.failure
		}
		e.records = append(e.records, r)
		numbers = append(numbers, r.Position.SequenceNumber())
		if r.New != nil {
			e.names = append(e.names, r.New.Lookup("name").Text())
		}
	}
	e.calls = append(e.calls, "process "+strings.Join(numbers, " "))
	return len(records), nil
}

// RederiveRecords notes each record's key, sequence number ("?" for none) and images.
func (e *engine) RederiveRecords(_ context.Context, records []change.Record) error {
	call := "rederive"
	for _, r := range records {
		call += " " + r.Key.String() + "@"
		if r.Position.IsZero() {
			call += "?"
		} else {
			call += r.Position.SequenceNumber()
		}
		if r.Old != nil {
			call += " from " + r.Old.Lookup("name").Text()
		}
		if r.New != nil {
			call += " to " + r.New.Lookup("name").Text()
		}
	}
	e.calls = append(e.calls, call)
	if e.derived++; e.derived <= e.deriveMax {
		return nil
	}
	return e.derive
}

// parkedRecord is what ParkRecord was given.
type parkedRecord struct {
	ID, Code, Reason string
	Raw              []byte
}

func (e *engine) ParkRecord(_ context.Context, id, code, reason string, raw []byte) error {
	if e.parking != nil {
		return e.parking
	}
	e.calls = append(e.calls, "park "+code)
	e.parked = append(e.parked, parkedRecord{id, code, reason, raw})
	return nil
}

func newHandler(t testing.TB, e *engine, change ...func(*Config)) *Handler {
	t.Helper()
	cfg := Config{
		Processor: e, Rederiver: e, Parker: e,
		PartitionKey: "pk", SortKey: "sk", Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	cfg.PieceFirst = cmp.Or(cfg.PieceFirst, 1<<20)
	return New(cfg)
}

// insert is the JSON of a record that inserts USER#<user>.
func insert(user, sequence string) string {
	return fmt.Sprintf(`{"eventID":"e%[2]s","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",
 "dynamodb":{"ApproximateCreationDateTime":1.7935272E9,"Keys":{"pk":{"S":"USER#%[1]s"},"sk":{"S":"PROFILE"}},
  "NewImage":{"pk":{"S":"USER#%[1]s"},"sk":{"S":"PROFILE"},"name":{"S":"%[1]s at %[2]s"}},
  "SequenceNumber":"%[2]s","SizeBytes":59,"StreamViewType":"NEW_AND_OLD_IMAGES"},
 "eventSourceARN":"`+streamARN+`"}`, user, sequence)
}

// malformed is insert with a type of value that DynamoDB does not have.
func malformed(user, sequence string) string {
	return strings.Replace(insert(user, sequence), `"name":{"S"`, `"name":{"X"`, 1)
}

// keysOnly is a record of a stream that carries no images.
func keysOnly(record string) string {
	before, images, _ := strings.Cut(record, `"NewImage"`)
	_, after, _ := strings.Cut(images, "}},\n")
	return before + strings.Replace(after, "NEW_AND_OLD_IMAGES", "KEYS_ONLY", 1)
}

func message(id, body string) string {
	quoted, _ := json.Marshal(body)
	return `{"messageId":"` + id + `","receiptHandle":"r","body":` + string(quoted) + `,"attributes":{"ApproximateReceiveCount":"1"},
 "messageAttributes":{},"md5OfBody":"x","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:123456789012:q","awsRegion":"eu-west-1"}`
}

func event(records ...string) string { return `{"Records":[` + strings.Join(records, ",") + `]}` }
func list(records ...string) string  { return "[" + strings.Join(records, ", ") + "]" }

func late(payload string) string {
	return `{"requestContext":{"requestId":"316aa6d0","functionArn":"arn:aws:lambda:eu-west-1:123456789012:function:f","condition":"RetryAttemptsExhausted","approximateInvokeCount":1},
 "responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"version":"1.0","timestamp":"2026-11-14T00:13:49.717Z",
 "DDBStreamBatchInfo":{"shardId":"shardId-00000001573689847184-864758bb","startSequenceNumber":"1","endSequenceNumber":"2","batchSize":2,"streamArn":"` + streamARN + `"},
 "payload":` + payload + `}`
}

func quoted(s string) string {
	q, _ := json.Marshal(s)
	return string(q)
}

func failures(ids ...string) string {
	r := response{BatchItemFailures: []failedItem{}}
	for _, id := range ids {
		r.BatchItemFailures = append(r.BatchItemFailures, failedItem{id})
	}
	b, _ := json.Marshal(r)
	return string(b)
}

func TestEveryShapeOfPayloadIsApplied(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		calls   []string
	}{
		"a stream event":           {event(insert("a", "1"), insert("b", "2")), []string{"process 1 2"}},
		"an event without records": {event(), nil},
		"an empty list":            {list(), nil},
		"a queue's messages":       {event(message("m1", insert("a", "1")), message("m2", insert("b", "2"))), []string{"process 1 2"}},
		"messages that overtook":   {event(message("m1", insert("a", "10")), message("m2", insert("a", "9"))), []string{"process 9 10"}},
		"a pipe from a stream":     {list(insert("a", "1"), insert("b", "2")), []string{"process 1 2"}},
		"a pipe from a queue":      {list(message("m1", insert("a", "1"))), []string{"process 1"}},
		"a late batch as JSON": {late(event(insert("a", "1"), insert("b", "2"), insert("a", "3"))),
			[]string{"rederive USER#a/PROFILE@1 to a at 1 USER#b/PROFILE@2 to b at 2 USER#a/PROFILE@3 to a at 3"}},
		"a late batch as a string": {late(quoted(event(insert("a", "1")))), []string{"rederive USER#a/PROFILE@1 to a at 1"}},
		"a late batch, one malformed": {late(event(malformed("a", "1"), insert("b", "2"))),
			[]string{"rederive USER#a/PROFILE@1 USER#b/PROFILE@2 to b at 2"}},
		"a late batch of keys only": {late(event(keysOnly(insert("a", "1")))), []string{"rederive USER#a/PROFILE@1"}},
		"a record without a source": {event(strings.Replace(insert("a", "1"), `"eventSource":"aws:dynamodb",`, "", 1)), []string{"process 1"}},
		"fields nobody knows": {`{"x":[1,{"y":null}],"Records":[` +
			strings.Replace(insert("a", "1"), "{", `{"new":{"a":[-1.5e3,true]},`, 1) + `],"z":"\u00e9"}`, []string{"process 1"}},
		"white space about it": {" \n" + event(insert("a", "1")) + "\t\r\n", []string{"process 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			answer, err := newHandler(t, e).Invoke(t.Context(), []byte(c.payload))
			if err != nil {
				t.Fatal(err)
			}
			if string(answer) != `{"batchItemFailures":[]}` {
				t.Errorf("answer %s", answer)
			}
			if diff := gocmp.Diff(c.calls, e.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARecordSaysWhatTheJSONSays(t *testing.T) {
	const update = `{"eventID":"1","eventName":"MODIFY","dynamodb":{"SequenceNumber":"000000000000000000111","StreamViewType":"NEW_AND_OLD_IMAGES",
 "OldImage":{"pk":{"S":"p"},"sk":{"N":"5"},"l":{"L":[{"S":"x"},{"NULL":true}]}},"ApproximateCreationDateTime":1428537600,
 "NewImage":{"pk":{"S":"p"},"sk":{"N":"5"},"m":{"M":{"a":{"BOOL":false}}},"s\u0074":{"S":"\ud83d\ude00\n\/"},"b":{"B":"\/\/8="}},
 "Keys":{"sk":{"N":"5"},"pk":{"S":"p"}}},"userIdentity":null,"eventSourceARN":"` + streamARN + `"}`
	const expiry = `{"eventName":"REMOVE","userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"},"dynamodb":{
 "ApproximateCreationDateTime":1428537601.0,"Keys":{"pk":{"S":"q"},"sk":{"S":"s"}},"OldImage":{"pk":{"S":"q"}},"SequenceNumber":"112"},"eventSourceARN":"` + streamARN + `"}`
	e := newEngine()
	if _, err := newHandler(t, e).Invoke(t.Context(), []byte(event(update, expiry))); err != nil {
		t.Fatal(err)
	}
	if len(e.records) != 2 {
		t.Fatalf("%d records; parked %+v", len(e.records), e.parked)
	}
	first, second := e.records[0], e.records[1]
	if first.Key != (change.Key{Partition: "p", Sort: "5"}) || first.Position.String() != "2026-01-01T00:00:00.000#"+strings.Repeat("0", 37)+
		"111" {
		t.Errorf("key %v, position %v", first.Key, first.Position)
	}
	if first.Created.Unix() != 1428537600 || second.Created.Unix() != 1428537601 || first.Expired || !second.Expired || second.New != nil {
		t.Errorf("created %v, expired %v and %v, new image %v", first.Created, first.Expired, second.Expired, second.New)
	}
	if got := first.New.Lookup("st").Text(); got != "\U0001F600\n/" {
		t.Errorf("the text is %q", got)
	}
	if got := first.New.Lookup("b").Text(); got != "\xff\xff" {
		t.Errorf("the bytes are %x", got)
	}
	if got := first.New.Lookup("m").Map()["a"]; got.Kind() != change.KindBool || got.Bool() {
		t.Errorf("m.a is %v", got)
	}
	if got := first.Old.Lookup("l").List(); len(got) != 2 || got[1].Kind() != change.KindNull {
		t.Errorf("l is %v", got)
	}
	if first.Old.Lookup("m").Kind() != change.KindAbsent {
		t.Error("the old image has an attribute of the new one")
	}
}

func TestOtherPayloadsAreErrorsThatNameThem(t *testing.T) {
	s3 := `{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"}}}`
	for name, c := range map[string]struct{ payload, want string }{
		"nothing":                  {" ", "empty"},
		"a text":                   {`"hello"`, `found "\"hello\""`},
		"a number":                 {"12", `found "12"`},
		"a schedule's event":       {`{"version":"0","detail-type":"Scheduled Event"}`, `"version", "detail-type"`},
		"records of S3":            {event(s3), `"aws:s3"`},
		"records of nothing":       {event(`{"a":1}`), "something else"},
		"a list of numbers":        {"[1,2]", "something else"},
		"two kinds":                {event(insert("a", "1"), message("m", insert("b", "2"))), "both"},
		"JSON that ends early":     {event(insert("a", "1"))[:300], "ends"},
		"something behind it":      {event(insert("a", "1")) + "x", "follows"},
		"a tumbling window":        {`{"window":{"start":"x","end":"y"},"state":{},"Records":[]}`, "tumbling"},
		"Records twice":            {`{"Records":[],"Records":[` + insert("a", "1") + `]}`, "two fields"},
		"a failure without S3":     {strings.Replace(late(`1`), `"payload":1`, `"x":1`, 1), "without its records"},
		"a failure of a failure":   {late(late(event())), "without its records"},
		"a failure of messages":    {late(event(message("m", "x"))), "SQS"},
		"a failure of a text":      {late(`"hello"`), "hello"},
		"a stream without images":  {event(keysOnly(insert("a", "1"))), `"KEYS_ONLY"`},
		"a value that is no value": {`{"Records":[` + insert("a", "1") + `,{"x":tru}]}`, "a value"},
		"nesting without end":      {strings.Repeat("[", 1<<20), "nested deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			answer, err := newHandler(t, e).Invoke(t.Context(), []byte(c.payload))
			var payload *PayloadError
			if !errors.As(err, &payload) || !strings.Contains(payload.Reason, c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if answer != nil || len(e.calls) > 0 {
				t.Errorf("answer %s, calls %q", answer, e.calls)
			}
		})
	}
}

func TestOneMalformedRecordIsParkedAndTheOthersApplied(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(insert("m", "2"), old, new, 1) }
	image := func(value string) string { return replace(`{"S":"m at 2"}`, value) }
	deep := strings.Repeat(`{"L":[`, dynamojson.NestingMax+1) + `{"S":"x"}` + strings.Repeat(`]}`, dynamojson.NestingMax+1)
	const heals, cannotHeal = true, false
	for name, c := range map[string]struct {
		record, code string
		heals        bool // its key could be read
	}{
		"an unknown type":         {image(`{"X":"1"}`), dynamojson.CodeValue, heals},
		"two types":               {image(`{"S":"1","N":"1"}`), dynamojson.CodeValue, heals},
		"no type":                 {image(`{}`), dynamojson.CodeValue, heals},
		"a plain value":           {image(`"x"`), dynamojson.CodeValue, heals},
		"a number as JSON":        {image(`{"N":1}`), dynamojson.CodeValue, heals},
		"a number that is none":   {image(`{"N":"1x"}`), dynamojson.CodeValue, heals},
		"a text that is null":     {image(`{"S":null}`), dynamojson.CodeValue, heals},
		"bad base64":              {image(`{"B":"!AAA"}`), dynamojson.CodeValue, heals},
		"base64 cut off":          {image(`{"B":"AAA"}`), dynamojson.CodeValue, heals},
		"BOOL as text":            {image(`{"BOOL":"true"}`), dynamojson.CodeValue, heals},
		"NULL false":              {image(`{"NULL":false}`), dynamojson.CodeValue, heals},
		"a set of numbers":        {image(`{"NS":[1]}`), dynamojson.CodeValue, heals},
		"a set that is no list":   {image(`{"SS":"a"}`), dynamojson.CodeValue, heals},
		"a list of plain values":  {image(`{"L":["a"]}`), dynamojson.CodeValue, heals},
		"an L that is no list":    {image(`{"L":{}}`), dynamojson.CodeValue, heals},
		"an M that is no object":  {image(`{"M":[]}`), dynamojson.CodeValue, heals},
		"deeper than DynamoDB":    {image(deep), dynamojson.CodeValue, heals},
		"half a surrogate pair":   {image(`{"S":"\ud83d"}`), dynamojson.CodeValue, heals},
		"half of it in a name":    {replace(`"name"`, `"na\ude00me"`), dynamojson.CodeValue, heals},
		"bytes that are no UTF-8": {image("{\"S\":\"\xff\"}"), dynamojson.CodeJSON, heals},
		"an image that is a list": {replace(`"NewImage":{`, `"NewImage":[],"x":{`), codeImages, heals},
		"an image twice":          {replace(`"NewImage"`, `"NewImage":{"a":{"S":"b"}},"NewImage"`), codeImages, heals},
		"no image":                {replace(`"NewImage"`, `"x"`), codeImages, heals},
		"another event":           {replace(`INSERT`, `MODIFY`), codeImages, heals},
		"an unknown event":        {replace(`INSERT`, `UPSERT`), codeImages, heals},
		"no keys":                 {replace(`"Keys"`, `"x"`), codeKeys, cannotHeal},
		"half a key":              {replace(`,"sk":{"S":"PROFILE"}`, ``), codeKeys, cannotHeal},
		"a key too many":          {replace(`"sk":{"S":"PROFILE"}`, `"sk":{"S":"PROFILE"},"x":{"S":"y"}`), codeKeys, cannotHeal},
		"a binary key":            {replace(`"sk":{"S":"PROFILE"}`, `"sk":{"B":"AAAA"}`), codeKeys, cannotHeal},
		"an empty key":            {replace(`"sk":{"S":"PROFILE"}`, `"sk":{"S":""}`), codeKeys, cannotHeal},
		"no sequence number":      {replace(`"SequenceNumber"`, `"x"`), codePosition, heals},
		"a number that is a text": {replace(`"SequenceNumber":"2"`, `"SequenceNumber":"x"`), codePosition, heals},
		"no stream label":         {replace(`/stream/`, `/`), codePosition, heals},
		"two bodies":              {replace(`"dynamodb"`, `"dynamodb":{},"dynamodb"`), dynamojson.CodeJSON, cannotHeal},
		"no body":                 {`{"eventSource":"aws:dynamodb"}`, dynamojson.CodeJSON, cannotHeal},
		"no object":               {`17`, dynamojson.CodeJSON, cannotHeal},
		"null":                    {`null`, dynamojson.CodeJSON, cannotHeal},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			answer, err := newHandler(t, e).Invoke(t.Context(), []byte(event(insert("a", "1"), c.record, insert("b", "3"))))
			if err != nil || string(answer) != failures() {
				t.Fatalf("answer %s, %v", answer, err)
			}
			want := []string{"park " + c.code, "process 1 3"}
			switch {
			case c.heals && c.code == codePosition: // after those that may be earlier
				want = append(want, "rederive USER#m/PROFILE@?")
			case c.heals:
				want = []string{"park " + c.code, "rederive USER#m/PROFILE@2", "process 1 3"}
			}
			if diff := gocmp.Diff(want, e.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if len(e.parked) == 1 && (string(e.parked[0].Raw) != c.record || e.parked[0].Reason == "" || e.parked[0].ID == "") {
				t.Errorf("parked %+v", e.parked[0])
			}
		})
	}
}
