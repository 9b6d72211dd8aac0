package streamreader

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

// decoder turns a stream's records into change.Records.
type decoder struct {
	label               string // the stream's label, the epoch of positions
	partition, sortName string // the table's key attributes; sortName is "" without a sort key
}

// records decodes a page. Images stay as they came and are decoded as they are
// looked up. The marks are the records' places, in the same order.
func (d decoder) records(page []streams.Record) ([]change.Record, []mark, error) {
	records := make([]change.Record, len(page))
	marks := make([]mark, len(page))
	for i := range page {
		r, err := d.record(&page[i])
		if err != nil {
			return nil, nil, err
		}
		records[i] = r
		marks[i] = mark{position: r.Position, sequence: *page[i].Dynamodb.SequenceNumber}
	}
	return records, marks, nil
}

func (d decoder) record(raw *streams.Record) (change.Record, error) {
	body := raw.Dynamodb
	if body == nil || body.SequenceNumber == nil {
		return change.Record{}, &RecordError{Reason: "it has no sequence number"}
	}
	position, err := d.position(*body.SequenceNumber)
	if err != nil {
		return change.Record{}, &RecordError{SequenceNumber: *body.SequenceNumber, Reason: err.Error()}
	}
	record := change.Record{
		Position: position,
		Old:      image(body.OldImage),
		New:      image(body.NewImage),
		Created:  aws.ToTime(body.ApproximateCreationDateTime),
		Expired:  expired(raw.UserIdentity),
	}
	if record.Key.Partition, err = keyText(body.Keys, d.partition); err == nil && d.sortName != "" {
		record.Key.Sort, err = keyText(body.Keys, d.sortName)
	}
	if err != nil {
		return change.Record{}, &RecordError{SequenceNumber: *body.SequenceNumber, Reason: err.Error()}
	}
	return record, nil
}

func (d decoder) position(sequence string) (change.Position, error) {
	return change.NewPosition(d.label, sequence)
}

// image returns nil, not an empty Image, where the item did not exist.
func image(av map[string]streams.AttributeValue) change.Image {
	if len(av) == 0 {
		return nil
	}
	return attributes.StreamImage(av)
}

func keyText(keys map[string]streams.AttributeValue, name string) (string, error) {
	switch v := keys[name].(type) {
	case *streams.AttributeValueMemberS:
		return v.Value, nil
	case *streams.AttributeValueMemberN:
		return v.Value, nil
	case *streams.AttributeValueMemberB:
		return "", fmt.Errorf("key attribute %s is binary (type B): only string and number keys are supported", name)
	}
	return "", fmt.Errorf("it has no key attribute %s", name)
}

// expired recognises a deletion by time to live. GetRecords writes the members'
// values with capitals, Lambda without; both count.
func expired(by *streams.Identity) bool {
	return by != nil &&
		strings.EqualFold(aws.ToString(by.Type), "Service") &&
		strings.EqualFold(aws.ToString(by.PrincipalId), "dynamodb.amazonaws.com")
}
