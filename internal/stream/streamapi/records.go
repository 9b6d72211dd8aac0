package streamapi

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

// Decoder turns a stream's records into change.Records.
type Decoder struct {
	Label                 string // the stream's label, the epoch of positions
	PartitionKey, SortKey string // the table's key attributes; sortName is "" without a sort key
}

// Mark is a record's place in its shard: to be compared as a position, and to
// be given back to the stream as the text that it came as.
type Mark struct {
	Position change.Position
	Sequence string
}

// Records decodes a page. Images stay as they came and are decoded as they are
// looked up. The marks are the records' places, in the same order.
func (d Decoder) Records(page []streams.Record) ([]change.Record, []Mark, error) {
	records := make([]change.Record, len(page))
	marks := make([]Mark, len(page))
	for i := range page {
		r, err := d.record(&page[i])
		if err != nil {
			return nil, nil, err
		}
		records[i] = r
		marks[i] = Mark{Position: r.Position, Sequence: *page[i].Dynamodb.SequenceNumber}
	}
	return records, marks, nil
}

func (d Decoder) record(raw *streams.Record) (change.Record, error) {
	record, err := attributes.RecordDecoder{Label: d.Label, Partition: d.PartitionKey, Sort: d.SortKey}.Decode(raw)
	if err == nil {
		return record, nil
	}
	bad := &RecordError{Reason: err.Error()}
	if raw.Dynamodb != nil {
		bad.SequenceNumber = aws.ToString(raw.Dynamodb.SequenceNumber)
	}
	return change.Record{}, bad
}

// Position is the place of a sequence number in the stream.
func (d Decoder) Position(sequence string) (change.Position, error) {
	return change.NewPosition(d.Label, sequence)
}
