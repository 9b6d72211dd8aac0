package streamreader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testARN = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-01-01T00:00:00.000"

// fakeStream is one stream in memory, as the API reference describes it.
type fakeStream struct {
	mu         sync.Mutex
	arn        string
	status     streams.StreamStatus
	view       streams.StreamViewType
	shards     []*fakeShard
	shardsPage int // shards on one page of DescribeStream
	pageMax    int // records on one page of GetRecords
	sequence   *big.Int
	iteratorMax,
	latency time.Duration

	fault    func(call, shard string) error // asked before each call
	log      []string                       // call, shard and, for iterators, type and sequence number
	reading  map[string]int                 // GetRecords in flight
	together int                            // most GetRecords in flight on one shard
}

type fakeShard struct {
	id, parent string
	records    []streams.Record
	start      string
	trimmed    int // records gone from the front
	empties    int // pages without a record before the next one with some
	closed     bool
	hidden     bool // not listed
	gone       bool // ResourceNotFoundException
}

// testTerm is the default LeaseTerm.
const testTerm = 10 * time.Second

func text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }
func number(n int64) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func newFakeStream() *fakeStream {
	f := &fakeStream{
		arn:         testARN,
		status:      streams.StreamStatusEnabled,
		view:        streams.StreamViewTypeNewAndOldImages,
		shardsPage:  100,
		pageMax:     1000,
		iteratorMax: 15 * time.Minute,
		reading:     map[string]int{},
		// Soon to get one digit more.
		sequence: new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(25), nil), big.NewInt(5)),
	}
	return f
}

func (f *fakeStream) nextSequence() string {
	f.sequence.Add(f.sequence, big.NewInt(1))
	return f.sequence.String()
}

// open adds an open shard.
func (f *fakeStream) open(id, parent string) *fakeShard {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &fakeShard{id: id, parent: parent, start: f.nextSequence()}
	f.shards = append(f.shards, s)
	return s
}

// write adds n records of the given item to a shard; their new images count up.
func (f *fakeStream) write(s *fakeShard, item string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		seq := f.nextSequence()
		if len(s.records) == 0 && s.trimmed == 0 {
			seq = s.start
		}
		s.records = append(s.records, streams.Record{
			EventName: streams.OperationTypeInsert,
			Dynamodb: &streams.StreamRecord{
				SequenceNumber:              aws.String(seq),
				ApproximateCreationDateTime: aws.Time(time.Now().Truncate(time.Second)),
				Keys:                        map[string]streams.AttributeValue{"pk": avS(item), "sk": avN(strconv.Itoa(len(s.records)))},
				NewImage:                    map[string]streams.AttributeValue{"pk": avS(item), "sk": avN(strconv.Itoa(len(s.records)))},
			},
		})
	}
}

func (f *fakeStream) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fakeStream) close(s *fakeShard) { f.change(func() { s.closed = true }) }

func (f *fakeStream) calls(prefix string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []string
	for _, c := range f.log {
		if strings.HasPrefix(c, prefix) {
			found = append(found, c)
		}
	}
	return found
}

func avS(s string) streams.AttributeValue { return &streams.AttributeValueMemberS{Value: s} }
func avN(n string) streams.AttributeValue { return &streams.AttributeValueMemberN{Value: n} }

// enter logs a call and lets the fault hook speak. It returns with mu held.
func (f *fakeStream) enter(call, shard, detail string) error {
	f.mu.Lock()
	f.log = append(f.log, strings.TrimSpace(call+" "+shard+" "+detail))
	if f.fault != nil {
		return f.fault(call, shard)
	}
	return nil
}

func (f *fakeStream) find(id string) (*fakeShard, error) {
	for _, s := range f.shards {
		if s.id == id && !s.gone {
			return s, nil
		}
	}
	return nil, &streams.ResourceNotFoundException{}
}

func (f *fakeStream) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	err := f.enter("DescribeStream", "", "")
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if *in.StreamArn != f.arn {
		return nil, &streams.ResourceNotFoundException{}
	}
	_, label, _ := strings.Cut(f.arn, "/stream/")
	d := &streams.StreamDescription{
		StreamArn:      &f.arn,
		StreamLabel:    &label,
		StreamStatus:   f.status,
		StreamViewType: f.view,
		KeySchema: []streams.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: streams.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: streams.KeyTypeRange},
		},
	}
	after := in.ExclusiveStartShardId == nil
	for _, s := range f.shards {
		switch {
		case !after:
			after = s.id == *in.ExclusiveStartShardId
			continue
		case s.hidden || s.gone:
			continue
		case len(d.Shards) == f.shardsPage:
			d.LastEvaluatedShardId = d.Shards[len(d.Shards)-1].ShardId
			return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
		}
		shard := streams.Shard{ShardId: &s.id, SequenceNumberRange: &streams.SequenceNumberRange{StartingSequenceNumber: &s.start}}
		if s.parent != "" {
			shard.ParentShardId = &s.parent
		}
		if s.closed {
			shard.SequenceNumberRange.EndingSequenceNumber = aws.String(f.sequence.String())
		}
		d.Shards = append(d.Shards, shard)
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (f *fakeStream) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	err := f.enter("GetShardIterator", *in.ShardId, strings.TrimSpace(string(in.ShardIteratorType)+" "+aws.ToString(in.SequenceNumber)))
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s, err := f.find(*in.ShardId)
	if err != nil {
		return nil, err
	}
	index := s.trimmed
	switch in.ShardIteratorType {
	case streams.ShardIteratorTypeTrimHorizon:
	case streams.ShardIteratorTypeAtSequenceNumber:
		index = 0 // what the reader asks for is the first record, or trimmed
		for index < len(s.records) && compareSequences(*s.records[index].Dynamodb.SequenceNumber, *in.SequenceNumber) < 0 {
			index++
		}
	case streams.ShardIteratorTypeAfterSequenceNumber:
		index = 0
		for index < len(s.records) && compareSequences(*s.records[index].Dynamodb.SequenceNumber, *in.SequenceNumber) <= 0 {
			index++
		}
	default:
		return nil, fmt.Errorf("iterator type %s loses records", in.ShardIteratorType)
	}
	if index < s.trimmed {
		return nil, &streams.TrimmedDataAccessException{}
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: iterator(s.id, index)}, nil
}

func iterator(shard string, index int) *string {
	return aws.String(fmt.Sprintf("%s|%d|%d", shard, index, time.Now().UnixNano()))
}

func (f *fakeStream) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	part := strings.Split(*in.ShardIterator, "|")
	err := f.enter("GetRecords", part[0], "")
	f.reading[part[0]]++
	f.together = max(f.together, f.reading[part[0]])
	latency := f.latency
	f.mu.Unlock()
	time.Sleep(latency)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading[part[0]]--
	if err != nil {
		return nil, err
	}
	s, err := f.find(part[0])
	if err != nil {
		return nil, err
	}
	index, _ := strconv.Atoi(part[1])
	issued, _ := strconv.ParseInt(part[2], 10, 64)
	switch {
	case time.Since(time.Unix(0, issued)) > f.iteratorMax:
		return nil, &streams.ExpiredIteratorException{}
	case index < s.trimmed:
		return nil, &streams.TrimmedDataAccessException{}
	}
	if s.empties > 0 {
		s.empties--
		return &dynamodbstreams.GetRecordsOutput{NextShardIterator: iterator(s.id, index)}, nil
	}
	end := min(len(s.records), index+min(f.pageMax, int(*in.Limit)))
	out := &dynamodbstreams.GetRecordsOutput{Records: s.records[index:end]}
	if !s.closed || end < len(s.records) {
		out.NextShardIterator = iterator(s.id, end)
	}
	return out, nil
}

func compareSequences(a, b string) int {
	x, _ := new(big.Int).SetString(a, 10)
	y, _ := new(big.Int).SetString(b, 10)
	return x.Cmp(y)
}

// collector is a Processor that keeps what it is given.
type collector struct {
	mu      sync.Mutex
	records []change.Record
	batches []int
	before  func(ctx context.Context, records []change.Record) (done int, err error) // asked first; an error ends the call
}

func (c *collector) Process(ctx context.Context, records []change.Record) (int, error) {
	done, err := len(records), error(nil)
	if c.before != nil {
		done, err = c.before(ctx, records)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, records[:done]...)
	c.batches = append(c.batches, len(records))
	return done, err
}

// items returns how many records of each item were done, and fails if those of
// one item came out of order or twice.
func (c *collector) items(t *testing.T) map[string]int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	last := map[string]change.Position{}
	for _, r := range c.records {
		item := r.Key.Partition
		if r.Position.Compare(last[item]) <= 0 {
			t.Errorf("record %s of item %s came after %s", r.Position, item, last[item])
		}
		last[item] = r.Position
		counts[item]++
	}
	return counts
}

func wantItems(t *testing.T, c *collector, want map[string]int) {
	t.Helper()
	if got := c.items(t); !maps.Equal(got, want) {
		t.Errorf("records done per item: %v, want %v", got, want)
	}
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.records)
}

func newTestReader(t *testing.T, f Streams, cp Checkpoints, p Processor, change ...func(*Config)) *Reader {
	t.Helper()
	cfg := Config{
		Streams: f, StreamARN: testARN, Checkpoints: cp, Processor: p,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, c := range change {
		c(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type (
	Lease      = leases.Lease
	Worker     = leases.Worker
	LeaseTable = leases.Table
)

const (
	TrimHorizon = leases.TrimHorizon
	ShardEnd    = leases.ShardEnd
	Latest      = leases.Latest
)

// newLeases returns an empty lease table of its own.
func newLeases() *LeaseTable {
	t := leases.NewTable(dynamosim.New(dynamosim.Options{}), "leases")
	if _, err := t.Load(context.Background()); err != nil {
		panic(err)
	}
	return t
}

// leaseOf returns a shard's row.
func leaseOf(t *testing.T, cp Checkpoints, shard string) Lease {
	t.Helper()
	rows, err := cp.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range rows {
		if l.Shard == shard {
			return l
		}
	}
	t.Fatalf("shard %s has no lease", shard)
	return Lease{}
}

// forget deletes every row, as an operator does after a TrimmedError.
func forget(t *testing.T, cp Checkpoints) {
	t.Helper()
	rows, err := cp.Load(t.Context())
	for _, l := range rows {
		err = errors.Join(err, cp.Delete(t.Context(), l))
	}
	if err != nil {
		t.Fatal(err)
	}
}
