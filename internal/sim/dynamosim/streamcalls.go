package dynamosim

import (
	"context"
	"encoding/base64"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Limits of the streams API (API reference).
const (
	listStreamsMax    = 100
	describeShardsMax = 100
	getRecordsMax     = 1000
	getRecordsBytes   = 1 << 20
	iteratorTTL       = 15 * time.Minute
)

// ListStreams is the SDK client's method.
func (s *Sim) ListStreams(ctx context.Context, in *dynamodbstreams.ListStreamsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.ListStreamsOutput, error) {
	return call(ctx, s, streamService, "ListStreams", in, s.listStreams)
}

func (s *Sim) listStreams(in *dynamodbstreams.ListStreamsInput) (*dynamodbstreams.ListStreamsOutput, error) {
	limit, err := bounded(in.Limit, listStreamsMax)
	if err != nil {
		return nil, err
	}
	matching := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		if (in.TableName == nil || *in.TableName == st.tableName) && (in.ExclusiveStartStreamArn == nil || st.arn > *in.ExclusiveStartStreamArn) {
			matching = append(matching, st)
		}
	}
	sort.Slice(matching, func(i, j int) bool { return matching[i].arn < matching[j].arn })
	out := &dynamodbstreams.ListStreamsOutput{Streams: []streamtypes.Stream{}}
	for i, st := range matching {
		if i == limit {
			out.LastEvaluatedStreamArn = out.Streams[i-1].StreamArn
			break
		}
		out.Streams = append(out.Streams, streamtypes.Stream{StreamArn: aws.String(st.arn), StreamLabel: aws.String(st.label),
			TableName: aws.String(st.tableName)})
	}
	return out, nil
}

func bounded(given *int32, most int) (int, error) {
	if given == nil {
		return most, nil
	}
	if *given < 1 || int(*given) > most {
		return 0, invalid("Limit: must have value between 1 and %d", most)
	}
	return int(*given), nil
}

func (s *Sim) stream(arn *string) (*stream, error) {
	if arn == nil || *arn == "" {
		return nil, invalid("StreamArn: must not be null or empty")
	}
	for _, st := range s.streams {
		if st.arn == *arn {
			return st, nil
		}
	}
	return nil, noStream("Stream: " + *arn + " not found")
}

// DescribeStream is the SDK client's method.
func (s *Sim) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	return call(ctx, s, streamService, "DescribeStream", in, s.describeStream)
}

func (s *Sim) describeStream(in *dynamodbstreams.DescribeStreamInput) (*dynamodbstreams.DescribeStreamOutput, error) {
	st, err := s.stream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	limit, err := bounded(in.Limit, describeShardsMax)
	if err != nil {
		return nil, err
	}
	parent := ""
	if f := in.ShardFilter; f != nil {
		if f.Type != streamtypes.ShardFilterTypeChildShards || aws.ToString(f.ShardId) == "" {
			return nil, invalid("ShardFilter: must have Type CHILD_SHARDS and a ShardId")
		}
		parent = *f.ShardId
	}
	d := &streamtypes.StreamDescription{
		StreamArn: aws.String(st.arn), StreamLabel: aws.String(st.label), TableName: aws.String(st.tableName),
		StreamStatus: streamtypes.StreamStatusEnabled, StreamViewType: st.view,
		CreationRequestDateTime: aws.Time(st.created), Shards: []streamtypes.Shard{},
	}
	if !st.disabled.IsZero() {
		d.StreamStatus = streamtypes.StreamStatusDisabled
	}
	for _, k := range st.keySchema {
		d.KeySchema = append(d.KeySchema, streamtypes.KeySchemaElement{AttributeName: k.AttributeName, KeyType: streamtypes.KeyType(k.KeyType)})
	}
	for _, sh := range st.shards {
		if sh.id <= aws.ToString(in.ExclusiveStartShardId) || parent != "" && sh.parent != parent {
			continue
		}
		if len(d.Shards) == limit {
			d.LastEvaluatedShardId = d.Shards[limit-1].ShardId
			break
		}
		d.Shards = append(d.Shards, sh.describe())
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (sh *shard) describe() streamtypes.Shard {
	d := streamtypes.Shard{
		ShardId:             aws.String(sh.id),
		SequenceNumberRange: &streamtypes.SequenceNumberRange{StartingSequenceNumber: aws.String(sh.start.String())},
	}
	if sh.parent != "" {
		d.ParentShardId = aws.String(sh.parent)
	}
	if !sh.closed.IsZero() {
		d.SequenceNumberRange.EndingSequenceNumber = aws.String(sh.end.String())
	}
	return d
}

func (st *stream) shard(id *string) (*shard, error) {
	for _, sh := range st.shards {
		if sh.id == aws.ToString(id) {
			return sh, nil
		}
	}
	return nil, noStream("Shard: " + aws.ToString(id) + " in Stream: " + st.arn + " not found")
}

// GetShardIterator is the SDK client's method. A sequence number that is not
// within the shard's range is refused with a ValidationException, one at or
// before the trim point with a TrimmedDataAccessException.
func (s *Sim) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return call(ctx, s, streamService, "GetShardIterator", in, s.getShardIterator)
}

func (s *Sim) getShardIterator(in *dynamodbstreams.GetShardIteratorInput) (*dynamodbstreams.GetShardIteratorOutput, error) {
	st, err := s.stream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	sh, err := st.shard(in.ShardId)
	if err != nil {
		return nil, err
	}
	var position int
	switch in.ShardIteratorType {
	case streamtypes.ShardIteratorTypeTrimHorizon:
		position = sh.trimmed
	case streamtypes.ShardIteratorTypeLatest:
		position = sh.trimmed + len(sh.records)
	case streamtypes.ShardIteratorTypeAtSequenceNumber, streamtypes.ShardIteratorTypeAfterSequenceNumber:
		after := in.ShardIteratorType == streamtypes.ShardIteratorTypeAfterSequenceNumber
		if position, err = s.seek(st, sh, aws.ToString(in.SequenceNumber), after); err != nil {
			return nil, err
		}
	default:
		return nil, invalid("ShardIteratorType: %q is not one of AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON",
			in.ShardIteratorType)
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(s.iterator(st, sh, position))}, nil
}

func (s *Sim) seek(st *stream, sh *shard, text string, after bool) (int, error) {
	n, err := parseSequence(text)
	if err != nil {
		return 0, invalid("Invalid SequenceNumber: %v", err)
	}
	if sh.trimmed > 0 && n.compare(sh.trimmedUntil) <= 0 {
		return 0, trimmedError()
	}
	if n.compare(sh.start) < 0 || n.compare(st.last) > 0 || !sh.closed.IsZero() && n.compare(sh.end) > 0 {
		return 0, invalid("Invalid SequenceNumber: %s is not within the range of shard %s", text, sh.id)
	}
	i := sort.Search(len(sh.records), func(i int) bool {
		c := sh.records[i].sequence.compare(n)
		return c > 0 || c == 0 && !after
	})
	return sh.trimmed + i, nil
}

func trimmedError() error {
	return &streamtypes.TrimmedDataAccessException{Message: aws.String("The operation attempted to read past the oldest stream record in a " +
		"shard")}
}

// GetRecords is the SDK client's method. The last records of a closed shard
// come with a nil NextShardIterator.
func (s *Sim) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	return call(ctx, s, streamService, "GetRecords", in, s.getRecords)
}

func (s *Sim) getRecords(in *dynamodbstreams.GetRecordsInput) (*dynamodbstreams.GetRecordsOutput, error) {
	limit, err := bounded(in.Limit, getRecordsMax)
	if err != nil {
		return nil, err
	}
	st, sh, position, err := s.parseIterator(aws.ToString(in.ShardIterator))
	if err != nil {
		return nil, err
	}
	if position < sh.trimmed {
		return nil, trimmedError()
	}
	out := &dynamodbstreams.GetRecordsOutput{Records: []streamtypes.Record{}}
	bytes := 0
	for _, r := range sh.records[position-sh.trimmed:] {
		if len(out.Records) == limit || len(out.Records) > 0 && bytes+r.bytes > getRecordsBytes {
			break
		}
		bytes += r.bytes
		out.Records = append(out.Records, r.reply(st.view))
	}
	position += len(out.Records)
	if sh.closed.IsZero() || position < sh.trimmed+len(sh.records) {
		out.NextShardIterator = aws.String(s.iterator(st, sh, position))
	}
	return out, nil
}

// iterator writes an iterator: where to go on and since when.
func (s *Sim) iterator(st *stream, sh *shard, position int) string {
	text := fmt.Sprintf("%s|%d|%d", sh.id, position, s.options.Now().UnixNano())
	return st.arn + "|1|" + base64.StdEncoding.EncodeToString([]byte(text))
}

func (s *Sim) parseIterator(text string) (st *stream, sh *shard, position int, err error) {
	arn, code, _ := strings.Cut(text, "|1|")
	plain, err := base64.StdEncoding.DecodeString(code)
	parts := strings.Split(string(plain), "|")
	if err != nil || len(parts) != 3 {
		return nil, nil, 0, invalid("Invalid ShardIterator")
	}
	position, err = strconv.Atoi(parts[1])
	issued, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || err2 != nil || position < 0 {
		return nil, nil, 0, invalid("Invalid ShardIterator")
	}
	if st, err = s.stream(&arn); err != nil {
		return nil, nil, 0, err
	}
	if sh, err = st.shard(&parts[0]); err != nil {
		return nil, nil, 0, err
	}
	if s.options.Now().Sub(time.Unix(0, issued)) >= iteratorTTL {
		return nil, nil, 0,
			&streamtypes.ExpiredIteratorException{Message: aws.String("The shard iterator has expired: it was made more than 15 minutes ago")}
	}
	if position > sh.trimmed+len(sh.records) {
		return nil, nil, 0, invalid("Invalid ShardIterator")
	}
	return st, sh, position, nil
}
