package lambdatest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const someARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/app/stream/2026-01-01T00:00:00.000"

func someRecord() types.Record {
	return types.Record{
		EventID: aws.String("e1"), EventName: types.OperationTypeRemove, EventVersion: aws.String("1.1"),
		EventSource: aws.String("aws:dynamodb"), AwsRegion: aws.String("eu-west-1"),
		UserIdentity: &types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")},
		Dynamodb: &types.StreamRecord{
			ApproximateCreationDateTime: aws.Time(time.Unix(1700000000, 0)),
			SequenceNumber:              aws.String("000000000000000000017"), SizeBytes: aws.Int64(26),
			StreamViewType: types.StreamViewTypeNewAndOldImages,
			Keys:           map[string]types.AttributeValue{"pk": &types.AttributeValueMemberN{Value: "12345678901234567890123456789012345678"}},
			OldImage: map[string]types.AttributeValue{
				"s": &types.AttributeValueMemberS{Value: "<a> & \"b\" \u2028 \U0001F600"}, "b": &types.AttributeValueMemberB{Value: []byte{0, 255}},
				"bool": &types.AttributeValueMemberBOOL{Value: true}, "null": &types.AttributeValueMemberNULL{Value: true},
				"ss": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1.5"}},
				"bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}}},
				"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{}, &types.AttributeValueMemberS{}}},
				"m":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"n": &types.AttributeValueMemberN{Value: "-1"}}},
			},
		},
	}
}

// The field names and forms are those of the Lambda developer guide's example.
func TestARecordIsWrittenAsDocumented(t *testing.T) {
	got, err := Event(someARN, []types.Record{someRecord()})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Records":[{"eventID":"e1","eventName":"REMOVE","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",` +
		`"dynamodb":{"ApproximateCreationDateTime":1700000000,"Keys":{"pk":{"N":"12345678901234567890123456789012345678"}},` +
		`"OldImage":{"b":{"B":"AP8="},"bool":{"BOOL":true},"bs":{"BS":["AQ=="]},"l":{"L":[{"M":{}},{"S":""}]},"m":{"M":{"n":{"N":"-1"}}},` +
		`"ns":{"NS":["1.5"]},"null":{"NULL":true},"s":{"S":"<a> & \"b\" \u2028 ` + "\U0001F600" + `"},"ss":{"SS":["x","y"]}},` +
		`"SequenceNumber":"000000000000000000017","SizeBytes":26,"StreamViewType":"NEW_AND_OLD_IMAGES"},` +
		`"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"eventSourceARN":"` + someARN + `"}]}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnEventIsReadByTheLibraryForFunctions(t *testing.T) {
	payload, err := Event(someARN, []types.Record{someRecord(), someRecord()})
	if err != nil {
		t.Fatal(err)
	}
	var event events.DynamoDBEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		t.Fatal(err)
	}
	r := event.Records[1]
	if len(event.Records) != 2 || r.Change.OldImage["s"].String() != "<a> & \"b\" \u2028 \U0001F600" ||
		r.Change.OldImage["b"].Binary()[1] != 255 || r.Change.Keys["pk"].Number() != "12345678901234567890123456789012345678" ||
		r.Change.ApproximateCreationDateTime.Unix() != 1700000000 || r.UserIdentity.PrincipalID != "dynamodb.amazonaws.com" ||
		r.Change.NewImage != nil {
		t.Errorf("it read %+v", event)
	}
}

func TestWhatIsNoRecordIsAnError(t *testing.T) {
	for name, spoil := range map[string]func(*types.Record){
		"no change":     func(r *types.Record) { r.Dynamodb = nil },
		"unknown value": func(r *types.Record) { r.Dynamodb.OldImage["x"] = &types.UnknownUnionMember{Tag: "X"} },
	} {
		r := someRecord()
		spoil(&r)
		if _, err := Event(someARN, []types.Record{r}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAMalformedRecordIsTheSameWheneverItComes(t *testing.T) {
	s := newStage(t)
	s.put("a1", "a2", "b1")
	s.Corrupt = func(r types.Record, record []byte) []byte {
		if text(r.Dynamodb.NewImage["v"]) != "a2" {
			return record
		}
		return bytes.Replace(record, []byte(`"a2"`), []byte(`"spoilt"`), 1)
	}
	s.OnFailure, s.RetriesMax = &Destination{}, 1
	s.answer = func([]string) (string, error) { return "", &FunctionError{"Unhandled", "as told"} }
	s.settle()
	s.expect("a1 spoilt b1", "a1 spoilt b1")
	if object := s.OnFailure.Take(); !bytes.Contains(object, []byte("spoilt")) || bytes.Contains(object, []byte(`\"a2\"`)) {
		t.Errorf("the discarded batch holds %s", object)
	}
}
