package lambdatest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
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
	change := r.Dynamodb
	if change == nil {
		return eventRecord{}, fmt.Errorf("it says nothing of a change")
	}
	out := eventRecord{
		EventID: aws.ToString(r.EventID), EventName: string(r.EventName), EventVersion: aws.ToString(r.EventVersion),
		EventSource: aws.ToString(r.EventSource), AWSRegion: aws.ToString(r.AwsRegion), EventSourceARN: streamARN,
		DynamoDB: eventChange{
			Sequence: aws.ToString(change.SequenceNumber), Size: aws.ToInt64(change.SizeBytes), View: string(change.StreamViewType),
		},
	}
	if change.ApproximateCreationDateTime != nil {
		out.DynamoDB.Created = change.ApproximateCreationDateTime.Unix()
	}
	if who := r.UserIdentity; who != nil {
		out.UserIdentity = &eventIdentity{aws.ToString(who.Type), aws.ToString(who.PrincipalId)}
	}
	var err error
	for _, part := range []struct {
		to   *map[string]any
		from map[string]types.AttributeValue
	}{{&out.DynamoDB.Keys, change.Keys}, {&out.DynamoDB.New, change.NewImage}, {&out.DynamoDB.Old, change.OldImage}} {
		if *part.to, err = encodeFields(part.from); err != nil {
			return eventRecord{}, err
		}
	}
	return out, nil
}

func encodeFields(fields map[string]types.AttributeValue) (map[string]any, error) {
	out := make(map[string]any, len(fields))
	for name, field := range fields {
		value, err := encodeValue(field)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		out[name] = value
	}
	return out, nil
}

// encodeValue returns an attribute value in DynamoDB's JSON. encoding/json writes
// bytes in base64, as it has to be.
func encodeValue(av types.AttributeValue) (any, error) {
	type one = map[string]any
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return one{"S": v.Value}, nil
	case *types.AttributeValueMemberN:
		return one{"N": v.Value}, nil
	case *types.AttributeValueMemberB:
		return one{"B": v.Value}, nil
	case *types.AttributeValueMemberBOOL:
		return one{"BOOL": v.Value}, nil
	case *types.AttributeValueMemberNULL:
		return one{"NULL": v.Value}, nil
	case *types.AttributeValueMemberSS:
		return one{"SS": v.Value}, nil
	case *types.AttributeValueMemberNS:
		return one{"NS": v.Value}, nil
	case *types.AttributeValueMemberBS:
		return one{"BS": v.Value}, nil
	case *types.AttributeValueMemberL:
		members := make([]any, len(v.Value))
		for i, member := range v.Value {
			var err error
			if members[i], err = encodeValue(member); err != nil {
				return nil, err
			}
		}
		return one{"L": members}, nil
	case *types.AttributeValueMemberM:
		fields, err := encodeFields(v.Value)
		return one{"M": fields}, err
	}
	return nil, fmt.Errorf("a value of the unknown type %T", av)
}
