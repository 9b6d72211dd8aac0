package streamapi

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

// Decoder turns a stream's records into change.Records.
type Decoder = attributes.RecordDecoder

// Mark is a record's place in its shard: to be compared as a position, and to
// be given back to the stream as the text that it came as.
type Mark struct {
	Position change.Position
	Sequence string
}

// Records decodes a page. The marks are the records' places, in the same order. The error is a *RecordError.
func Records(d Decoder, page []streams.Record) ([]change.Record, []Mark, error) {
	records := make([]change.Record, len(page))
	marks := make([]Mark, len(page))
	for i := range page {
		record, err := d.Decode(&page[i])
		if err != nil {
			bad := &RecordError{Reason: err.Error()}
			if body := page[i].Dynamodb; body != nil {
				bad.SequenceNumber = aws.ToString(body.SequenceNumber)
			}
			return nil, nil, bad
		}
		records[i], marks[i] = record, Mark{Position: record.Position, Sequence: *page[i].Dynamodb.SequenceNumber}
	}
	return records, marks, nil
}
