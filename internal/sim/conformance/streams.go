package conformance

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// plain turns a stream's image into an item.
func plain(image map[string]streamtypes.AttributeValue) item {
	if image == nil {
		return nil
	}
	it := item{}
	for name, av := range image {
		switch v := av.(type) {
		case *streamtypes.AttributeValueMemberS:
			it[name] = str(v.Value)
		case *streamtypes.AttributeValueMemberN:
			it[name] = num(v.Value)
		}
	}
	return it
}

func (s *suite) testStreams(t *testing.T) {
	t.Run("insert, modify and remove come in order with both images", func(t *testing.T) { s.testStreamOfOneItem(t) })
	t.Run("a write that changes nothing makes no record", func(t *testing.T) {
		pk := partition(t)
		it := with(pk, "a", item{"n": num("1"), "ss": texts("a", "b")})
		s.put(t, it)
		s.put(t, it)
		it["ss"], it["n"] = texts("b", "a"), num("1.0")
		s.put(t, it)
		_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(pk, "a"),
			UpdateExpression: aws.String("SET n = :n REMOVE z"), ExpressionAttributeValues: item{":n": num("1")}})
		wantNoError(t, err)
		_, err = s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.texts, Key: key(pk, "none")})
		wantNoError(t, err)
		want := 1
		if s.Deviates[NoOpRecorded] {
			want = 4
		}
		if got := len(s.records(t, pk)); got != want {
			t.Errorf("got %d records, want %d", got, want)
		}
	})
	t.Run("a transaction makes a record for each change", func(t *testing.T) {
		pk := partition(t)
		s.put(t, key(pk, "check"))
		wantNoError(t, s.transact(t, s.putAction(key(pk, "a"), ""), s.putAction(key(pk, "b"), ""),
			s.checkAction(key(pk, "check"), "attribute_exists(pk)")))
		wantReasons(t, s.transact(t, s.putAction(key(pk, "c"), ""), s.putAction(key(pk, "a"), "attribute_not_exists(pk)")), "None",
			"ConditionalCheckFailed")
		if got := len(s.records(t, pk)); got != 3 {
			t.Errorf("got %d records, want 3", got)
		}
	})
	t.Run("iterators start at and after a sequence number, and at the end", func(t *testing.T) { s.testIterators(t) })
	t.Run("GetRecords keeps to its limit and goes on from there", func(t *testing.T) { s.testRecordLimit(t) })
	t.Run("the stream is listed and described", func(t *testing.T) {
		out, err := s.Streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &s.texts})
		wantNoError(t, err)
		if len(out.Streams) != 1 || aws.ToString(out.Streams[0].StreamArn) != s.arn {
			t.Fatalf("got %v, want %s", out.Streams, s.arn)
		}
		d, err := s.Streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &s.arn})
		wantNoError(t, err)
		if d.StreamDescription.StreamStatus != streamtypes.StreamStatusEnabled || aws.ToString(d.StreamDescription.TableName) != s.texts ||
			d.StreamDescription.StreamViewType != streamtypes.StreamViewTypeNewAndOldImages || len(d.StreamDescription.Shards) == 0 {
			t.Errorf("got %+v", d.StreamDescription)
		}
		for _, sh := range d.StreamDescription.Shards {
			if sh.SequenceNumberRange == nil || sh.SequenceNumberRange.StartingSequenceNumber == nil ||
				sh.SequenceNumberRange.EndingSequenceNumber != nil {
				t.Errorf("got range %+v for the open shard %s", sh.SequenceNumberRange, aws.ToString(sh.ShardId))
			}
		}
	})
	t.Run("what does not exist is not found", func(t *testing.T) {
		_, err := s.Streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(s.arn + "0")})
		wantCode(t, err, "ResourceNotFoundException")
		_, err = s.Streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &s.arn,
			ShardId: aws.String("shardId-00000000000000000001-00000001"), ShardIteratorType: streamtypes.ShardIteratorTypeLatest})
		wantCode(t, err, "ResourceNotFoundException")
	})
	t.Run("a limit beyond 1000 is refused", func(t *testing.T) {
		it := s.iterator(t, *s.shards(t)[0].ShardId, streamtypes.ShardIteratorTypeLatest, nil)
		_, err := s.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: aws.Int32(1001)})
		wantInvalid(t, err)
	})
	t.Run("a stream that is turned off and on again is another", func(t *testing.T) { s.testNewStream(t) })
}

func (s *suite) testStreamOfOneItem(t *testing.T) {
	pk := partition(t)
	before := time.Now().Add(-2 * time.Second)
	if s.Deviates[CreatedByMinute] {
		before = before.Truncate(time.Minute)
	}
	one, two := with(pk, "a", item{"n": num("1")}), with(pk, "a", item{"n": num("2")})
	s.put(t, one)
	s.put(t, two)
	_, err := s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.texts, Key: key(pk, "a")})
	wantNoError(t, err)
	records := s.records(t, pk)
	want := []struct {
		name     streamtypes.OperationType
		old, now item
	}{{streamtypes.OperationTypeInsert, nil, one}, {streamtypes.OperationTypeModify, one, two}, {streamtypes.OperationTypeRemove, two, nil}}
	if len(records) != len(want) {
		t.Fatalf("got %d records, want %d", len(records), len(want))
	}
	last, events := big.NewInt(-1), map[string]bool{}
	for i, r := range records {
		d := r.Dynamodb
		if r.EventName != want[i].name || r.UserIdentity != nil {
			t.Errorf("record %d: got %s by %v, want %s", i, r.EventName, r.UserIdentity, want[i].name)
		}
		wantItem(t, plain(d.Keys), key(pk, "a"))
		wantItem(t, plain(d.OldImage), want[i].old)
		wantItem(t, plain(d.NewImage), want[i].now)
		sequence, ok := new(big.Int).SetString(aws.ToString(d.SequenceNumber), 10)
		if !ok || sequence.Cmp(last) <= 0 {
			t.Errorf("record %d: sequence number %s does not rise from %s", i, aws.ToString(d.SequenceNumber), last)
		}
		last = sequence
		if at := aws.ToTime(d.ApproximateCreationDateTime); at.Nanosecond() != 0 || at.Before(before) {
			t.Errorf("record %d: created %s", i, at)
		}
		if aws.ToInt64(d.SizeBytes) <= 0 || d.StreamViewType != streamtypes.StreamViewTypeNewAndOldImages {
			t.Errorf("record %d: size %d, view %s", i, aws.ToInt64(d.SizeBytes), d.StreamViewType)
		}
		events[aws.ToString(r.EventID)] = true
	}
	if len(events) != len(records) {
		t.Errorf("event ids are not unique: %v", events)
	}
}

// home returns the shard that holds the records of a partition key, and these records.
func (s *suite) home(t *testing.T, pk string) (shard string, records []streamtypes.Record) {
	t.Helper()
	records = s.records(t, pk)
	for _, sh := range s.shards(t) {
		it := s.iterator(t, *sh.ShardId, streamtypes.ShardIteratorTypeTrimHorizon, nil)
		for it != nil {
			out, err := s.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it})
			wantNoError(t, err)
			for _, r := range out.Records {
				if aws.ToString(r.EventID) == aws.ToString(records[0].EventID) {
					return *sh.ShardId, records
				}
			}
			if it = out.NextShardIterator; len(out.Records) == 0 {
				break
			}
		}
	}
	t.Fatalf("no shard holds the records of %s", pk)
	return "", nil
}

func (s *suite) testIterators(t *testing.T) {
	pk := partition(t)
	for i := range 3 {
		s.put(t, with(pk, "a", item{"n": num(fmt.Sprint(i))}))
	}
	shard, records := s.home(t, pk)
	middle := records[1].Dynamodb.SequenceNumber
	read := func(it *string) []string {
		out, err := s.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it})
		wantNoError(t, err)
		if out.NextShardIterator == nil {
			t.Error("an open shard has no next iterator")
		}
		var got []string
		for _, r := range out.Records {
			got = append(got, aws.ToString(r.Dynamodb.SequenceNumber))
		}
		return got
	}
	latest := s.iterator(t, shard, streamtypes.ShardIteratorTypeLatest, nil)
	wantKeys(t, read(s.iterator(t, shard, streamtypes.ShardIteratorTypeAtSequenceNumber, middle)),
		[]string{*middle, *records[2].Dynamodb.SequenceNumber})
	wantKeys(t, read(s.iterator(t, shard, streamtypes.ShardIteratorTypeAfterSequenceNumber, middle)),
		[]string{*records[2].Dynamodb.SequenceNumber})
	wantKeys(t, read(latest), nil)
	s.put(t, with(pk, "a", item{"n": num("3")}))
	if got := read(latest); len(got) != 1 {
		t.Errorf("got %d records from LATEST after one write", len(got))
	}
}

func (s *suite) testRecordLimit(t *testing.T) {
	pk := partition(t)
	for i := range 5 {
		s.put(t, with(pk, "a", item{"n": num(fmt.Sprint(i))}))
	}
	shard, records := s.home(t, pk)
	it := s.iterator(t, shard, streamtypes.ShardIteratorTypeAtSequenceNumber, records[0].Dynamodb.SequenceNumber)
	var sizes []string
	for range 3 {
		out, err := s.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: aws.Int32(2)})
		wantNoError(t, err)
		sizes = append(sizes, fmt.Sprint(len(out.Records)))
		it = out.NextShardIterator
	}
	wantKeys(t, sizes, []string{"2", "2", "1"})
}

func (s *suite) testNewStream(t *testing.T) {
	name := s.texts + "-restarted"
	first := s.create(t, name, types.ScalarAttributeTypeS, true)
	set := func(spec *types.StreamSpecification) error {
		_, err := s.Tables.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &name, StreamSpecification: spec})
		return err
	}
	on := &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly}
	_, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: key("a", "a")})
	wantNoError(t, err)
	wantInvalid(t, set(on))
	wantNoError(t, set(&types.StreamSpecification{StreamEnabled: aws.Bool(false)}))
	_, err = s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: key("a", "unseen")})
	wantNoError(t, err)
	wantNoError(t, set(on))
	out, err := s.Tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	wantNoError(t, err)
	second := aws.ToString(out.Table.LatestStreamArn)
	if second == first {
		t.Fatalf("the stream is %s as before", second)
	}
	_, err = s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: with("a", "b", item{"c": str("d")})})
	wantNoError(t, err)
	other := *s
	other.arn = second
	records := other.records(t, "a")
	if len(records) != 1 || records[0].Dynamodb.NewImage != nil || records[0].Dynamodb.OldImage != nil {
		t.Fatalf("got %d records, want one with keys only", len(records))
	}
	wantItem(t, plain(records[0].Dynamodb.Keys), key("a", "b"))
	d, err := s.Streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &first})
	wantNoError(t, err)
	if d.StreamDescription.StreamStatus != streamtypes.StreamStatusDisabled {
		t.Errorf("the first stream is %s", d.StreamDescription.StreamStatus)
	}
	other.arn = first
	if got := len(other.records(t, "a")); got != 1 {
		t.Errorf("got %d records from the first stream, want 1", got)
	}
}
