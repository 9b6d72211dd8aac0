package dynamill

import (
	"context"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"encoding/json"
	"strings"
	"testing"
)

// bucket has objects by "/" and their bucket and key; one that is nil it refuses.
type bucket map[string]*string

func (b bucket) use(c *HandlerConfig) { c.S3 = b }

func (b bucket) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	content, known := b["/"+*in.Bucket+"/"+*in.Key]
	switch {
	case !known:
		return nil, &s3types.NoSuchKey{}
	case content == nil:
		return nil, &smithy.GenericAPIError{Code: "AccessDenied"}
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader(*content))}, nil
}

func (b bucket) ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return nil, errors.New("no late batch is found by a list")
}

// given is a late batch, as Lambda leaves it in S3.
func given(payload string) string {
	return `{"requestContext":{"requestId":"c9b8fa9f","functionArn":"arn:aws:lambda:us-east-1:000000000000:function:f","condition":"RetryAttemptsExhausted",
"approximateInvokeCount":1},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"version":"1.0",
"timestamp":"2026-11-14T00:38:06.021Z","DDBStreamBatchInfo":{"shardId":"shardId-00000001573689847184-864758bb","startSequenceNumber":"1000",
"endSequenceNumber":"1001","batchSize":2,"streamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/app/stream/2026-01-01T00:00:00.000"},"payload":` + payload + `}`
}

// quoted is a text as JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func lateOf(object string) string { return `{"dynamill":"late","object":"` + object + `"}` }

func TestALateBatchIsReadFromItsObject(t *testing.T) {
	for name, quote := range map[string]func(string) string{"as JSON": func(s string) string { return s }, "as a string": quoted} {
		t.Run(name, func(t *testing.T) {
			stored := bucket{}
			b := newBench(t, groupRules, stored.use)
			records := b.join(2)
			// The second is the record of a member who has left since: it must not be applied as it is.
			report := given(quote(event(records[0], joined("g", "gone", "999"))))
			stored["/bucket/aws/lambda/x/y-1.json"] = &report
			answer, err := b.f.Invoke(t.Context(), []byte(` { "object" : "s3://bucket/aws/lambda/x/y-1.json", "dynamill" : "late" }`+"\n"))
			if err != nil || string(answer) != `{"batchItemFailures":[]}` {
				t.Fatalf("answer %s, %v", answer, err)
			}
			if got := b.count(); got != "1" {
				t.Errorf("the group shows %q members, want 1", got)
			}
			if log := b.log.String(); !strings.Contains(log, `"source":"late batch","records":2,"done":2`) {
				t.Errorf("logged %s", log)
			}
		})
	}
}

// The largest payload of a batch, as a string in which every quote is escaped, is
// more than any invocation can carry.
func TestALateBatchMayBeLargerThanAnInvocation(t *testing.T) {
	const payloadMax = 6 << 20
	stored := bucket{}
	b := newBench(t, groupRules, stored.use)
	records := b.join(1)
	for len(records)*len(records[0]) < payloadMax {
		records = append(records, records[0])
	}
	report := given(quoted(event(records...)))
	if len(report) <= payloadMax || len(report) >= lateObjectMax {
		t.Fatalf("the object has %d bytes", len(report))
	}
	stored["/bucket/x"] = &report
	if answer, err := b.f.Invoke(t.Context(), []byte(lateOf("s3://bucket/x"))); err != nil || string(answer) != `{"batchItemFailures":[]}` {
		t.Errorf("answer %s, %v", answer, err)
	}
	if got := b.count(); got != "1" {
		t.Errorf("the group shows %q members, want 1", got)
	}
}

func TestObjectWithoutLateBatchIsRefused(t *testing.T) {
	text := func(s string) *string { return &s }
	stored := bucket{
		"/bucket/event":    text(event(joined("g", "0", "1000"))),
		"/bucket/keyless":  text(strings.Replace(given("1"), `"payload":1`, `"x":1`, 1)),
		"/bucket/kinesis":  text(strings.Replace(given("{}"), "DDBStreamBatchInfo", "KinesisBatchInfo", 1)),
		"/bucket/denied":   nil,
		"/bucket/too-much": text(strings.Repeat(" ", lateObjectMax+1)),
	}
	b := newBench(t, groupRules, stored.use)
	b.join(1)
	for payload, want := range map[string]string{
		lateOf("s3://bucket/event"):    "no late batch, as an event source mapping leaves it in S3",
		lateOf("s3://bucket/keyless"):  "without its records",
		lateOf("s3://bucket/kinesis"):  "s3://bucket/kinesis is no late batch",
		lateOf("s3://bucket/none"):     "there is no such object, or not any more",
		lateOf("s3://bucket/denied"):   "lacks s3:GetObject",
		lateOf("s3://bucket/too-much"): "more than 33554432 bytes",
		lateOf("s3://bucket"):          `"s3://bucket" is not s3://bucket/key`,
		lateOf("s3:///key"):            "is not s3://bucket/key",
		lateOf("bucket/key"):           `"bucket/key" is not s3://bucket/key`,
		`{"dynamill":"late"}`:          "names no object",
	} {
		b.log.Reset()
		b.metrics.Reset()
		answer, err := b.f.Invoke(t.Context(), []byte(payload))
		if err == nil || !strings.Contains(err.Error(), want) || answer != nil {
			t.Errorf("%.80s: answer %s, %v, want an error about %s", payload, answer, err, want)
		}
		if log := b.log.String(); strings.Count(log, `"level":"ERROR"`) != 1 {
			t.Errorf("%.80s: logged %s", payload, log)
		}
		if !strings.Contains(b.metrics.String(), `"Failed":1,`) {
			t.Errorf("%.80s: metrics %s", payload, b.metrics.String())
		}
	}
	if got := b.count(); got != "" && got != "0" {
		t.Errorf("the group shows %q members: something was applied", got)
	}
}

// A record whose item has an attribute of the command's name is a record.
func TestRecordsMayHoldTheCommand(t *testing.T) {
	b := newBench(t, groupRules)
	records := b.join(1)
	record := strings.Replace(records[0], `"note":{"S":"x"}`, `"dynamill":{"S":"late"},"late":{"S":"late"}`, 1)
	if answer, err := b.f.Invoke(t.Context(), []byte(event(record))); err != nil || string(answer) != `{"batchItemFailures":[]}` {
		t.Errorf("answer %s, %v", answer, err)
	}
	if got := b.count(); got != "1" {
		t.Errorf("the group shows %q members, want 1", got)
	}
}
