package streamreader

import (
	"context"
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

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// line is what one worker has between itself and the simulated DynamoDB: it
// can be cut, and it can be frozen, with all that is on its way.
type line struct {
	*dynamosim.Sim
	mu     sync.Mutex
	cut    bool
	thawed chan struct{} // nil: not frozen
	onSave bool          // freezes with the next checkpoint on its way
	lists  int
}

var errCut = errors.New("connection refused")

func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.thawed = make(chan struct{})
}

func (l *line) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.thawed)
	l.thawed = nil
}

func (l *line) wait() error {
	l.mu.Lock()
	thawed, cut := l.thawed, l.cut
	l.mu.Unlock()
	if thawed != nil {
		<-thawed
	}
	if cut {
		return errCut
	}
	return nil
}

func (l *line) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.Sim.Scan(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

func (l *line) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.Sim.GetItem(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

func (l *line) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.Sim.PutItem(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

func (l *line) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput,
	error) {
	l.mu.Lock()
	if l.onSave && l.saves(ctx, in) {
		l.onSave, l.thawed = false, make(chan struct{})
	}
	l.mu.Unlock()
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.Sim.UpdateItem(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

// saves reports whether a write changes a checkpoint.
func (l *line) saves(ctx context.Context, in *dynamodb.UpdateItemInput) bool {
	row, err := l.Sim.GetItem(ctx, &dynamodb.GetItemInput{TableName: in.TableName, Key: in.Key, ConsistentRead: aws.Bool(true)})
	next, ok := in.ExpressionAttributeValues[":checkpoint"].(*ddb.AttributeValueMemberS)
	was, known := row.Item["checkpoint"].(*ddb.AttributeValueMemberS)
	return err == nil && ok && known && was.Value != next.Value
}

func (l *line) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput,
	error) {
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.Sim.DeleteItem(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

// listed is how often the worker has listed shards.
func (l *line) listed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists
}

func (l *line) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.lists++
	l.mu.Unlock()
	out, err := l.Sim.DescribeStream(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

func (l *line) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.Sim.GetShardIterator(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

func (l *line) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	ctx, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.Sim.GetRecords(ctx, in)
	if broken := l.wait(); broken != nil {
		return nil, broken
	}
	return out, err
}

// enter lets a call out on the line. What was frozen on its way arrives all the
// same, although no caller waits for it any more.
func (l *line) enter(ctx context.Context) (context.Context, error) {
	l.mu.Lock()
	frozen := l.thawed != nil
	l.mu.Unlock()
	if err := l.wait(); err != nil {
		return ctx, err
	}
	if frozen {
		ctx = context.WithoutCancel(ctx)
	}
	return ctx, nil
}

// crew is several workers on the stream of one simWorld.
type crew struct {
	*simWorld
	t       *testing.T
	work    *shift
	members map[string]*member
}

type member struct {
	name   string
	line   *line
	reader *Reader
	cancel context.CancelFunc
	ended  chan error
}

func newCrew(t *testing.T, options dynamosim.Options) *crew {
	w := newSimWorld(t, options)
	return &crew{simWorld: w, t: t, work: newShift(), members: map[string]*member{}}
}

func (c *crew) prepare(name string, change ...func(*Config)) *member {
	m := &member{name: name, line: &line{Sim: c.sim}, ended: make(chan error, 1)}
	change = append([]func(*Config){func(cfg *Config) { cfg.StreamARN, cfg.WorkerID = c.arn, name }}, change...)
	m.reader = newTestReader(c.t, m.line, NewLeaseTable(m.line, "leases"), c.work.by(m), change...)
	c.members[name] = m
	return m
}

// join starts a worker.
func (c *crew) join(name string, change ...func(*Config)) *member {
	m := c.prepare(name, change...)
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	go func() { m.ended <- m.reader.Run(ctx) }()
	return m
}

func (c *crew) joinAll(names ...string) {
	for _, name := range names {
		c.join(name)
	}
}

// leave stops a worker and waits for its end.
func (c *crew) leave(m *member) {
	c.t.Helper()
	m.cancel()
	if err := <-m.ended; err != nil {
		c.t.Errorf("%s: %v", m.name, err)
	}
	delete(c.members, m.name)
}

// kill cuts a worker off for good.
func (c *crew) kill(m *member) {
	m.line.mu.Lock()
	m.line.cut = true
	m.line.mu.Unlock()
	m.cancel()
	delete(c.members, m.name)
}

func (c *crew) dismiss() {
	for _, m := range c.members {
		c.leave(m)
	}
}

// finish ends the writing, leaves the workers time to do what is written, and judges.
func (c *crew) finish(stopWriting func(), repetition bool) {
	c.t.Helper()
	stopWriting()
	time.Sleep(5 * time.Second)
	c.dismiss()
	c.judge(repetition)
}

// owners returns the unfinished shards of each owner, and checks that each is in the hands of the living.
func (c *crew) owners() map[string][]string {
	c.t.Helper()
	rows, err := NewLeaseTable(c.sim, "leases").Load(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	owners := map[string][]string{}
	for _, l := range rows {
		if l.OfShard() && !l.Finished() {
			owners[l.Owner] = append(owners[l.Owner], l.Shard)
		}
	}
	return owners
}

func loadsOf(owners map[string][]string) string {
	var loads []int
	for _, shards := range owners {
		loads = append(loads, len(shards))
	}
	slices.Sort(loads)
	return strings.Trim(fmt.Sprint(loads), "[]")
}

// shift is what the workers of a crew do together: it holds each item to its
// order, sees when two work on one item at the same time, and what waits for how long.
type shift struct {
	mu      sync.Mutex
	seen    map[string]int
	times   map[string]int // how often each version of each item was done
	working map[string]string
	last    map[string]time.Time // when the item's last record was done
	took    time.Duration        // what one batch takes
	slowest time.Duration        // from a record's creation, floored to the second, to its end
	by2     []string             // two workers at the same time
	bad     []string
	byWho   map[string]int
	onDone  func(item string)
}

func newShift() *shift {
	return &shift{seen: map[string]int{}, times: map[string]int{}, working: map[string]string{}, last: map[string]time.Time{},
		byWho: map[string]int{}, took: 20 * time.Millisecond}
}

func (s *shift) by(m *member) Processor {
	return processorFunc(func(ctx context.Context, records []change.Record) (int, error) {
		s.begin(m, records)
		time.Sleep(s.took)
		if err := m.line.wait(); err != nil || ctx.Err() != nil {
			s.end(m, records, false)
			return 0, errors.Join(err, ctx.Err())
		}
		s.end(m, records, true)
		return len(records), nil
	})
}

func (s *shift) begin(m *member, records []change.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		if other := s.working[r.Key.Partition]; other != "" && other != m.name {
			s.by2 = append(s.by2, fmt.Sprintf("%s and %s on %s", other, m.name, r.Key.Partition))
		}
		s.working[r.Key.Partition] = m.name
	}
}

func (s *shift) end(m *member, records []change.Record, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		item := r.Key.Partition
		delete(s.working, item)
		if !done {
			continue
		}
		var version int
		if _, err := fmt.Sscan(r.New.Lookup("version").Text(), &version); err != nil {
			s.bad = append(s.bad, err.Error())
		}
		if version > s.seen[item]+1 {
			s.bad = append(s.bad, fmt.Sprintf("%s: version %d after %d", item, version, s.seen[item]))
		}
		s.seen[item] = max(s.seen[item], version)
		s.times[fmt.Sprintf("%s version %d", item, version)]++
		s.slowest = max(s.slowest, time.Since(r.Created))
		s.byWho[m.name]++
		if s.onDone != nil {
			s.onDone(item)
		}
	}
}

// judge says what went wrong. Repetition is allowed only after crashes.
func (c *crew) judge(repetition bool) {
	c.t.Helper()
	c.work.mu.Lock()
	defer c.work.mu.Unlock()
	for _, bad := range append(c.work.bad, c.work.by2...) {
		c.t.Error(bad)
	}
	for item, n := range c.written {
		if c.work.seen[item] != n {
			c.t.Errorf("%s: seen up to version %d of %d", item, c.work.seen[item], n)
		}
	}
	for what, n := range c.work.times {
		if n > 1 && !repetition {
			c.t.Errorf("%s was processed %d times", what, n)
		}
	}
}

// keepWriting writes an item each so often until the returned function is called.
func (c *crew) keepWriting(every time.Duration, items int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := 0; ctx.Err() == nil; i++ {
			c.write(c.t, fmt.Sprintf("item%d", i%items))
			time.Sleep(every)
		}
	}()
	return func() { cancel(); <-over }
}
