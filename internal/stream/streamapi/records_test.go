package streamapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

type avMap = map[string]streams.AttributeValue

func TestDecodingARecord(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := Decoder{Label: "2026-01-01", PartitionKey: "pk", SortKey: "sk"}
	r, err := d.Decode(&streams.Record{
		UserIdentity: &streams.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")},
		Dynamodb: &streams.StreamRecord{
			SequenceNumber:              aws.String("000012345"),
			ApproximateCreationDateTime: &created,
			Keys:                        avMap{"pk": avS("USER#1"), "sk": avN("7")},
			OldImage:                    avMap{"pk": avS("USER#1"), "sk": avN("7"), "name": avS("Ann")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	position, _ := change.NewPosition("2026-01-01", "12345")
	if r.Key != (change.Key{Partition: "USER#1", Sort: "7"}) || r.Position != position || !r.Created.Equal(created) || !r.Expired {
		t.Errorf("record %+v", r)
	}
	if r.New != nil {
		t.Errorf("new image %v of a deletion, want nil", r.New)
	}
	if got := r.Old.Lookup("name"); !got.Equal(change.String("Ann")) {
		t.Errorf("old name %v", got)
	}
}

func TestRecordsThatCannotBeUnderstood(t *testing.T) {
	d := Decoder{Label: "2026-01-01", PartitionKey: "pk", SortKey: "sk"}
	binary := &streams.AttributeValueMemberB{Value: []byte{1}}
	for _, test := range []struct {
		name string
		body *streams.StreamRecord
		want string
	}{
		{"nothing", nil, "no sequence number"},
		{"no sequence number", &streams.StreamRecord{}, "no sequence number"},
		{"sequence number that is no number", &streams.StreamRecord{SequenceNumber: aws.String("12a")}, "not a digit"},
		{"no partition key", &streams.StreamRecord{SequenceNumber: aws.String("1"), Keys: avMap{"sk": avS("x")}}, "no key attribute pk"},
		{"no sort key", &streams.StreamRecord{SequenceNumber: aws.String("1"), Keys: avMap{"pk": avS("x")}}, "no key attribute sk"},
		{"binary key", &streams.StreamRecord{SequenceNumber: aws.String("1"), Keys: avMap{"pk": avS("x"), "sk": binary}}, "sk is binary"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := Records(d, []streams.Record{{Dynamodb: test.body}})
			var bad *RecordError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a RecordError with %q", err, test.want)
			}
		})
	}
}

func avS(s string) streams.AttributeValue { return &streams.AttributeValueMemberS{Value: s} }
func avN(n string) streams.AttributeValue { return &streams.AttributeValueMemberN{Value: n} }
