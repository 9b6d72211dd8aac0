package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// event is a stream record as Lambda delivers it, but for the size, which nothing needs.
type event struct {
	EventID      string    `json:"eventID"`
	EventName    string    `json:"eventName"`
	EventVersion string    `json:"eventVersion"`
	EventSource  string    `json:"eventSource"`
	Region       string    `json:"awsRegion,omitempty"`
	DynamoDB     body      `json:"dynamodb"`
	UserIdentity *identity `json:"userIdentity,omitempty"`
	SourceARN    string    `json:"eventSourceARN"`
}

type body struct {
	Created        int64          `json:"ApproximateCreationDateTime,omitempty"` // seconds
	Keys           map[string]any `json:"Keys"`
	New            map[string]any `json:"NewImage,omitempty"`
	Old            map[string]any `json:"OldImage,omitempty"`
	SequenceNumber string         `json:"SequenceNumber"`
	StreamViewType string         `json:"StreamViewType"`
}

type identity struct {
	Type        string `json:"type"`
	PrincipalID string `json:"principalId"`
}

// encode writes records as lines of JSON.
func (c *Config) encode(records []change.Record) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, record := range records {
		if err := encoder.Encode(c.event(record)); err != nil {
			return nil, fmt.Errorf("record %s of item %s: %w", record.Position.SequenceNumber(), record.Key, err)
		}
	}
	return text.Bytes(), nil
}

func (c *Config) event(record change.Record) event {
	out := event{
		EventID: record.Position.SequenceNumber(), EventName: "MODIFY", EventVersion: "1.1", EventSource: "aws:dynamodb",
		SourceARN: c.StreamARN,
		DynamoDB: body{
			Keys: c.keys(record), New: imageJSON(record.New), Old: imageJSON(record.Old),
			SequenceNumber: record.Position.SequenceNumber(), StreamViewType: "NEW_AND_OLD_IMAGES",
		},
	}
	if parts := strings.Split(c.StreamARN, ":"); len(parts) > 3 {
		out.Region = parts[3]
	}
	if !record.Created.IsZero() {
		out.DynamoDB.Created = record.Created.Unix()
	}
	switch {
	case record.Old == nil:
		out.EventName = "INSERT"
	case record.New == nil:
		out.EventName = "REMOVE"
	}
	if record.Expired {
		out.UserIdentity = &identity{"Service", "dynamodb.amazonaws.com"}
	}
	return out
}

// keys writes the key's attributes with the types that they have in the images.
func (c *Config) keys(record change.Record) map[string]any {
	keys := map[string]any{c.PartitionKey: keyJSON(record, c.PartitionKey, record.Key.Partition)}
	if c.SortKey != "" {
		keys[c.SortKey] = keyJSON(record, c.SortKey, record.Key.Sort)
	}
	return keys
}

func keyJSON(record change.Record, name, text string) any {
	for _, image := range []change.Image{record.New, record.Old} {
		if image != nil && image.Lookup(name).Kind() == change.KindNumber {
			return valueJSON(change.Number(text))
		}
	}
	return valueJSON(change.String(text))
}

func imageJSON(image change.Image) map[string]any {
	if image == nil {
		return nil
	}
	fields := map[string]any{}
	for name, value := range image.All() {
		fields[name] = valueJSON(value)
	}
	return fields
}

// valueJSON writes a value in DynamoDB's JSON: {"S": "text"}.
func valueJSON(v change.Value) map[string]any {
	var content any
	switch v.Kind() {
	case change.KindBinary:
		content = []byte(v.Text())
	case change.KindBool:
		content = v.Bool()
	case change.KindNull:
		content = true
	case change.KindStringSet, change.KindNumberSet:
		content = listOf(v, change.Value.Text)
	case change.KindBinarySet:
		content = listOf(v, func(member change.Value) []byte { return []byte(member.Text()) })
	case change.KindList:
		content = listOf(v, valueJSON)
	case change.KindMap:
		fields := make(map[string]any, len(v.Map()))
		for name, field := range v.Map() {
			fields[name] = valueJSON(field)
		}
		content = fields
	default: // S and N; nothing absent is in an image
		content = v.Text()
	}
	return map[string]any{v.Kind().String(): content}
}

func listOf[T any](v change.Value, f func(change.Value) T) []T {
	list := make([]T, 0, len(v.List()))
	for _, member := range v.List() {
		list = append(list, f(member))
	}
	return list
}
