package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// stage is a simulated table with a Mapping whose function is a Go function.
type stage struct {
	*testing.T
	sim *dynamosim.Sim
	Mapping

	mu       sync.Mutex
	batches  []string // values of each invocation, in the order of their ends
	answer   func(values []string) (failed string, err error)
	slow     func(values []string) // waits as it likes
	sequence map[string]string     // by value
	order    map[string][]string   // values done by partition key
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, sim: dynamosim.New(dynamosim.Options{}), sequence: map[string]string{}, order: map[string][]string{}}
	out, err := s.sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: ddb.BillingModePayPerRequest,
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddb.KeyTypeHash}},
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: ddb.ScalarAttributeTypeS}},
		StreamSpecification:  &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	})
	s.must(err)
	s.Streams, s.StreamARN, s.PartitionKey = s.sim, *out.TableDescription.LatestStreamArn, "pk"
	s.PollInterval = time.Millisecond
	s.Function, s.ReportBatchItemFailures = s, true
	s.Attempted = func(a Attempt) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range a.Records[:a.Done] {
			pk := text(r.Dynamodb.Keys["pk"])
			s.order[pk] = append(s.order[pk], text(r.Dynamodb.NewImage["v"]))
		}
	}
	return s
}

func text(av any) string {
	raw, _ := json.Marshal(av)
	var s struct{ Value string }
	_ = json.Unmarshal(raw, &s)
	return s.Value
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// put writes one item for each value, under the partition key that is the value's first letter.
func (s *stage) put(values ...string) {
	s.Helper()
	for _, v := range values {
		_, err := s.sim.PutItem(s.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: map[string]ddb.AttributeValue{
			"pk": &ddb.AttributeValueMemberS{Value: v[:1]}, "v": &ddb.AttributeValueMemberS{Value: v},
		}})
		s.must(err)
	}
}

// Invoke is the function.
func (s *stage) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	var event struct {
		Records []struct {
			Dynamodb struct {
				SequenceNumber string
				NewImage       map[string]struct{ S string }
			}
		}
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	var values []string
	s.mu.Lock()
	for _, r := range event.Records {
		v := r.Dynamodb.NewImage["v"].S
		values = append(values, v)
		s.sequence[v] = r.Dynamodb.SequenceNumber
	}
	s.mu.Unlock()
	if s.slow != nil {
		s.slow(values)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, strings.Join(values, " "))
	if s.answer == nil {
		return nil, nil
	}
	failed, err := s.answer(values)
	if err != nil || failed == "" {
		return nil, err
	}
	return fmt.Appendf(nil, `{"batchItemFailures":[{"itemIdentifier":%q}]}`, s.sequence[failed]), nil
}

// settle runs the mapping until everything is delivered.
func (s *stage) settle() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- s.Mapping.Run(ctx) }()
	_, err := s.Settle(ctx)
	s.must(err)
	cancel()
	s.must(<-ran)
}

func (s *stage) expect(batches ...string) {
	s.Helper()
	if !slices.Equal(s.batches, batches) {
		s.Errorf("the function was invoked with\n%s\nwant\n%s", strings.Join(s.batches, "\n"), strings.Join(batches, "\n"))
	}
}

func TestBatchesAreRetriedBisectedAndDiscarded(t *testing.T) {
	failed := &FunctionError{"T", "as told"}
	bad := func(bad string) func([]string) (string, error) { // a whole batch fails if it holds a value
		return func(values []string) (string, error) {
			if slices.Contains(values, bad) {
				return "", failed
			}
			return "", nil
		}
	}
	from := func(bad string) func([]string) (string, error) { // the batch is done up to a value
		return func(values []string) (string, error) {
			if slices.Contains(values, bad) {
				return bad, nil
			}
			return "", nil
		}
	}
	whole := func(bad string) func([]string) (string, error) { // the same, but a batch of which nothing is done fails
		return func(values []string) (string, error) {
			if values[0] == bad {
				return "", failed
			}
			return from(bad)(values)
		}
	}
	for name, c := range map[string]struct {
		set       func(s *stage)
		answer    func([]string) (string, error)
		batches   []string
		discarded int
	}{
		"all goes well": {batches: []string{"a1 a2 a3 a4", "a5"}},
		"a batch that fails is retried as a whole, then discarded": {
			set: func(s *stage) { s.RetriesMax = 1 }, answer: bad("a2"),
			batches: []string{"a1 a2 a3 a4", "a1 a2 a3 a4", "a5"}, discarded: 4,
		},
		"without retries it is discarded at once": {
			answer: bad("a2"), batches: []string{"a1 a2 a3 a4", "a5"}, discarded: 4,
		},
		"splitting in halves costs no retry": {
			set: func(s *stage) { s.RetriesMax, s.BisectBatch = 1, true }, answer: bad("a2"),
			batches: []string{"a1 a2 a3 a4", "a1 a2", "a1", "a2", "a2", "a3 a4", "a5"}, discarded: 1,
		},
		"what comes before the failed record is done": {
			set: func(s *stage) { s.RetriesMax = 2 }, answer: from("a3"),
			batches: []string{"a1 a2 a3 a4", "a3 a4", "a3 a4", "a5"}, discarded: 2,
		},
		"a batch is split at the failed record": {
			set: func(s *stage) { s.RetriesMax, s.BisectBatch = 1, true }, answer: whole("a3"),
			batches: []string{"a1 a2 a3 a4", "a3 a4", "a3", "a3", "a4", "a5"}, discarded: 1,
		},
		"an answer does not halve a batch of which nothing is done": {
			set: func(s *stage) { s.RetriesMax, s.BisectBatch = 1, true }, answer: from("a3"),
			batches: []string{"a1 a2 a3 a4", "a3 a4", "a3 a4", "a5"}, discarded: 2,
		},
		"without ReportBatchItemFailures every answer is success": {
			set: func(s *stage) { s.ReportBatchItemFailures = false }, answer: from("a3"), batches: []string{"a1 a2 a3 a4", "a5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.BatchSize, s.OnFailure, s.answer = 4, &Destination{}, c.answer
			if c.set != nil {
				c.set(s)
			}
			s.put("a1", "a2", "a3", "a4", "a5")
			s.settle()
			if s.changes != 5 {
				t.Errorf("%d records were done or discarded, want 5", s.changes)
			}
			s.expect(c.batches...)
			kept := 0
			for object := s.OnFailure.Take(); object != nil; object = s.OnFailure.Take() {
				kept += sizeOf(t, object)
			}
			if kept != c.discarded {
				t.Errorf("%d records were discarded, want %d", kept, c.discarded)
			}
		})
	}
}

// sizeOf returns how many records an object of the destination holds.
func sizeOf(t *testing.T, object []byte) int {
	t.Helper()
	var got struct {
		DDBStreamBatchInfo struct{ BatchSize int }
		Payload            string
	}
	if err := json.Unmarshal(object, &got); err != nil {
		t.Fatal(err)
	}
	var event struct{ Records []any }
	if err := json.Unmarshal([]byte(got.Payload), &event); err != nil {
		t.Fatal(err)
	}
	if got.DDBStreamBatchInfo.BatchSize != len(event.Records) {
		t.Errorf("batchSize %d, but %d records", got.DDBStreamBatchInfo.BatchSize, len(event.Records))
	}
	return len(event.Records)
}

func TestForeverMeansUntilItSucceeds(t *testing.T) {
	s := newStage(t)
	s.RetriesMax = Forever
	tries := 0
	s.answer = func([]string) (string, error) {
		if tries++; tries <= 20 {
			return "", &FunctionError{"T", "not yet"}
		}
		return "", nil
	}
	s.put("a1")
	s.settle()
	if tries != 21 {
		t.Errorf("%d tries, want 21", tries)
	}
}

func TestABatchMayComeAgain(t *testing.T) {
	s := newStage(t)
	times := 0
	s.Again = func() bool { times++; return times == 1 }
	s.put("a1", "a2")
	s.settle()
	s.expect("a1 a2", "a1 a2")
}

func TestRecordsOfOneKeyStayInTheirOrderWhileLanesOvertakeEachOther(t *testing.T) {
	s := newStage(t)
	s.BatchSize, s.ParallelizationFactor, s.RetriesMax, s.BisectBatch = 3, 4, Forever, true
	calls := map[string]int{}
	s.answer = func(values []string) (string, error) {
		last := values[len(values)-1]
		if calls[last]++; calls[last] == 1 && strings.HasSuffix(last, "3") {
			return last, nil
		}
		return "", nil
	}
	var under, most int
	s.slow = func([]string) {
		s.mu.Lock()
		under++
		most = max(most, under)
		s.mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		s.mu.Lock()
		under--
		s.mu.Unlock()
	}
	keys := strings.Split("abcdefgh", "")
	want := map[string][]string{}
	for n := range 20 {
		if n == 7 {
			s.split()
		}
		if n == 14 {
			s.roll()
		}
		for _, key := range keys {
			v := fmt.Sprintf("%s%d", key, n)
			s.put(v)
			want[key] = append(want[key], v)
		}
	}
	s.settle()
	for _, key := range keys {
		if !slices.Equal(s.order[key], want[key]) {
			t.Errorf("%s: %v", key, s.order[key])
		}
	}
	if most < 2 || most > 2*s.ParallelizationFactor {
		t.Errorf("at most %d invocations at a time", most)
	}
}

func (s *stage) split() {
	s.Helper()
	open, err := s.sim.OpenShards("app")
	s.must(err)
	for _, id := range open {
		_, err := s.sim.SplitShard("app", id)
		s.must(err)
	}
}

func (s *stage) roll() {
	s.Helper()
	open, err := s.sim.OpenShards("app")
	s.must(err)
	for _, id := range open {
		_, err := s.sim.RollOver("app", id)
		s.must(err)
	}
}

func TestAnErrorThatIsNotTheFunctionsEndsTheMapping(t *testing.T) {
	s := newStage(t)
	s.answer = func([]string) (string, error) { return "", context.DeadlineExceeded }
	s.put("a1")
	want := "invoking the function"
	if err := s.Mapping.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := s.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("waiting for it says %v", err)
	}
}

// spoilt is a stream that refuses some iterators.
type spoilt struct {
	Streams
	refusals int
}

func (s *spoilt) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	options ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	if s.refusals--; s.refusals >= 0 {
		return nil, &streams.TrimmedDataAccessException{}
	}
	return s.Streams.GetRecords(ctx, in, options...)
}

func TestAnIteratorThatIsRefusedIsMadeAnewOnce(t *testing.T) {
	s := newStage(t)
	s.Streams = &spoilt{s.sim, 1}
	s.put("a1", "a2")
	s.settle()
	s.expect("a1 a2")

	s = newStage(t)
	s.Streams = &spoilt{s.sim, 2}
	var trimmed *streams.TrimmedDataAccessException
	if err := s.Mapping.Run(t.Context()); !errors.As(err, &trimmed) {
		t.Errorf("lost records end it with %v", err)
	}
}
