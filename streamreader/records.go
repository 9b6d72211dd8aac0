package streamreader

import (
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

// mark is a record's place in its shard: to be compared as a position, and to
// be given back to the stream as the text that it came as.
type mark struct {
	position change.Position
	sequence string
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
	record, err := attributes.RecordDecoder{Label: d.label, Partition: d.partition, Sort: d.sortName}.Decode(raw)
	if err == nil {
		return record, nil
	}
	bad := &RecordError{Reason: err.Error()}
	if raw.Dynamodb != nil {
		bad.SequenceNumber = aws.ToString(raw.Dynamodb.SequenceNumber)
	}
	return change.Record{}, bad
}

func (d decoder) position(sequence string) (change.Position, error) {
	return change.NewPosition(d.label, sequence)
}
