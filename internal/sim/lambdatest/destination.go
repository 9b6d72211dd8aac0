package lambdatest

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Destination is a bucket for what a Mapping discarded. The zero value is empty.
type Destination struct {
	mu      sync.Mutex
	objects [][]byte
	kept    int
}

// Put keeps an object.
func (d *Destination) Put(object []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects = append(d.objects, object)
	d.kept++
}

// Take removes and returns the oldest object, nil if there is none. A caller that could
// do nothing with it puts it back.
func (d *Destination) Take() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.objects) == 0 {
		return nil
	}
	oldest := d.objects[0]
	d.objects = d.objects[1:]
	return oldest
}

// Kept returns how often something was put.
func (d *Destination) Kept() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept
}

// discarded is the object that Lambda writes to S3 (Lambda developer guide,
// "Retain discarded records for a DynamoDB event source").
type discarded struct {
	Request struct {
		ID        string `json:"requestId"`
		Function  string `json:"functionArn"`
		Condition string `json:"condition"`
		Invokes   int    `json:"approximateInvokeCount"`
	} `json:"requestContext"`
	Response struct {
		Status  int    `json:"statusCode"`
		Version string `json:"executedVersion"`
		Error   string `json:"functionError,omitempty"`
	} `json:"responseContext"`
	Version   string    `json:"version"`
	Timestamp string    `json:"timestamp"`
	Batch     batchInfo `json:"DDBStreamBatchInfo"`
	Payload   string    `json:"payload"` // the event as text
}

type batchInfo struct {
	Shard   string `json:"shardId"`
	First   string `json:"startSequenceNumber"`
	Last    string `json:"endSequenceNumber"`
	Oldest  string `json:"approximateArrivalOfFirstRecord"`
	Newest  string `json:"approximateArrivalOfLastRecord"`
	Size    int    `json:"batchSize"`
	Streams string `json:"streamArn"`
}

// discardedObject describes a batch that was given up.
func (m *Mapping) discardedObject(b *batch, failed *FunctionError, now time.Time) ([]byte, error) {
	payload, err := event(m.StreamARN, b.records, m.Corrupt)
	if err != nil {
		return nil, err
	}
	first, last := b.records[0].Dynamodb, b.records[len(b.records)-1].Dynamodb
	object := discarded{
		Version: "1.0", Timestamp: now.UTC().Format("2006-01-02T15:04:05.000Z"), Payload: string(payload),
		Batch: batchInfo{
			Shard: b.shard, Size: len(b.records), Streams: m.StreamARN,
			First: aws.ToString(first.SequenceNumber), Last: aws.ToString(last.SequenceNumber),
			Oldest: arrival(first), Newest: arrival(last),
		},
	}
	object.Request.ID, object.Request.Function = fmt.Sprintf("%s-%d", b.shard, b.attempts), functionARN
	object.Request.Condition, object.Request.Invokes = "RetryAttemptsExhausted", b.attempts
	object.Response.Status, object.Response.Version = 200, "$LATEST"
	if failed != nil {
		object.Response.Error = "Unhandled"
	}
	return json.Marshal(object)
}

func arrival(change *types.StreamRecord) string {
	return aws.ToTime(change.ApproximateCreationDateTime).UTC().Format(time.RFC3339)
}
