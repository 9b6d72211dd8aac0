package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamojson"
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
			Keys: c.keys(record), New: dynamojson.EncodeImage(record.New), Old: dynamojson.EncodeImage(record.Old),
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
			return dynamojson.Encode(change.Number(text))
		}
	}
	return dynamojson.Encode(change.String(text))
}
