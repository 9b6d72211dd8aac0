package lambdatest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

// Event returns stream records as the payload that an event source mapping
// invokes a function with (Lambda developer guide, "Using AWS Lambda with Amazon
// DynamoDB"; the names of fields are those of the API, but for the identity's, which
// are lower case).
func Event(streamARN string, records []types.Record) ([]byte, error) {
	return event(streamARN, records, nil)
}

// event has what corrupt makes of each record's JSON, if it is not nil.
func event(streamARN string, records []types.Record, corrupt func(types.Record, []byte) []byte) ([]byte, error) {
	document := eventDocument[json.RawMessage]{Records: make([]json.RawMessage, 0, len(records))}
	for _, r := range records {
		text, err := recordText(streamARN, r)
		if err != nil {
			return nil, fmt.Errorf("encoding record %s: %w", aws.ToString(r.EventID), err)
		}
		if corrupt != nil {
			text = corrupt(r, text)
		}
		document.Records = append(document.Records, text)
	}
	text, err := encode(document)
	if err != nil {
		return nil, fmt.Errorf("encoding an event: %w", err)
	}
	return text, nil
}

func recordText(streamARN string, r types.Record) ([]byte, error) {
	record, err := newEventRecord(streamARN, r)
	if err != nil {
		return nil, err
	}
	return encode(record)
}

// encode returns JSON in which texts are as they are.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// eventDocument is the payload for any service's records.
type eventDocument[T any] struct {
	Records []T `json:"Records"`
}

type eventRecord struct {
	EventID        string         `json:"eventID"`
	EventName      string         `json:"eventName"`
	EventVersion   string         `json:"eventVersion"`
	EventSource    string         `json:"eventSource"`
	AWSRegion      string         `json:"awsRegion"`
	DynamoDB       eventChange    `json:"dynamodb"`
	UserIdentity   *eventIdentity `json:"userIdentity,omitempty"`
	EventSourceARN string         `json:"eventSourceARN"`
}

type eventIdentity struct {
	Type        string `json:"type"`
	PrincipalID string `json:"principalId"`
}

type eventChange struct {
	Created  int64          `json:"ApproximateCreationDateTime"` // seconds
	Keys     map[string]any `json:"Keys"`
	New      map[string]any `json:"NewImage,omitempty"`
	Old      map[string]any `json:"OldImage,omitempty"`
	Sequence string         `json:"SequenceNumber"`
	Size     int64          `json:"SizeBytes"`
	View     string         `json:"StreamViewType"`
}

func newEventRecord(streamARN string, r types.Record) (eventRecord, error) {
	body := r.Dynamodb
	if body == nil {
		return eventRecord{}, fmt.Errorf("it says nothing of a change")
	}
	out := eventRecord{
		EventID: aws.ToString(r.EventID), EventName: string(r.EventName), EventVersion: aws.ToString(r.EventVersion),
		EventSource: aws.ToString(r.EventSource), AWSRegion: aws.ToString(r.AwsRegion), EventSourceARN: streamARN,
		DynamoDB: eventChange{
			Sequence: aws.ToString(body.SequenceNumber), Size: aws.ToInt64(body.SizeBytes), View: string(body.StreamViewType),
		},
	}
	if body.ApproximateCreationDateTime != nil {
		out.DynamoDB.Created = body.ApproximateCreationDateTime.Unix()
	}
	if who := r.UserIdentity; who != nil {
		out.UserIdentity = &eventIdentity{aws.ToString(who.Type), aws.ToString(who.PrincipalId)}
	}
	for _, part := range []struct {
		to   *map[string]any
		from attributes.StreamImage
	}{{&out.DynamoDB.Keys, body.Keys}, {&out.DynamoDB.New, body.NewImage}, {&out.DynamoDB.Old, body.OldImage}} {
		for name, value := range part.from.All() {
			if value.Kind() == change.KindAbsent {
				return eventRecord{}, fmt.Errorf("attribute %s: a value of the unknown type %T", name, part.from[name])
			}
		}
		*part.to = dynamojson.EncodeImage(part.from)
	}
	return out, nil
}
