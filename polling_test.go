package dynamill

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
	"github.com/dynamill/dynamill/rules"
)

const latencyRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Group: { key: { pk: "GROUP#${groupId}", sk: METADATA } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-count: { count: Member, as: Group.memberCount }
  group-name: { copy: name as groupName, from: Group, to: Member }
`

// requestTime is what every request takes in these tests.
const requestTime = 5 * time.Millisecond

// slowTable is a table and its stream, within a synctest bubble, whose requests take requestTime.
type slowTable struct {
	testing.TB
	sim *dynamosim.Sim

	mu       sync.Mutex
	calls    map[string]int
	creation time.Duration        // of one of dynamill's own tables
	usable   map[string]time.Time // when they are, by name
}

func newSlowTable(t testing.TB, shards int) *slowTable {
	s := &slowTable{TB: t, calls: map[string]int{}, usable: map[string]time.Time{}}
	s.sim = dynamosim.New(dynamosim.Options{Shards: shards, Before: s.before})
	_, err := s.sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: ddb.BillingModePayPerRequest,
		KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddb.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: ddb.KeyTypeRange}},
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"},
			{AttributeName: aws.String("sk"), AttributeType: "S"}},
		StreamSpecification: &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// free marks the test's own calls, which take no time and are not counted.
const free = ddb.ReturnConsumedCapacityIndexes

func (s *slowTable) before(op string, input any) error {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		if in.ReturnConsumedCapacity == free {
			return nil
		}
	case *dynamodb.PutItemInput:
		if in.ReturnConsumedCapacity == free {
			return nil
		}
	}
	s.mu.Lock()
	s.calls[op]++
	wait := requestTime
	switch in := input.(type) {
	case *dynamodb.CreateTableInput:
		s.usable[*in.TableName] = time.Now().Add(s.creation)
	case *dynamodb.DescribeTableInput: // the first description shows the table when it is usable
		wait = max(wait, time.Until(s.usable[*in.TableName]))
	}
	s.mu.Unlock()
	time.Sleep(wait)
	return nil
}

// count returns how often each call was made since the last time.
func (s *slowTable) count() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := maps.Clone(s.calls)
	clear(s.calls)
	return calls
}

func (s *slowTable) put(pk, sk, name string) {
	s.Helper()
	_, err := s.sim.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String("app"), ReturnConsumedCapacity: free,
		Item: map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: pk}, "sk": &ddb.AttributeValueMemberS{Value: sk},
			"name": &ddb.AttributeValueMemberS{Value: name}},
	})
	if err != nil {
		s.Error(err)
	}
}

// see returns an attribute of an item, as a text.
func (s *slowTable) see(pk, sk, attribute string) string {
	out, err := s.sim.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String("app"), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: free,
		Key: map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: pk}, "sk": &ddb.AttributeValueMemberS{Value: sk}},
	})
	if err != nil {
		s.Error(err)
		return ""
	}
	switch v := out.Item[attribute].(type) {
	case *ddb.AttributeValueMemberN:
		return v.Value
	case *ddb.AttributeValueMemberS:
		return v.Value
	}
	return ""
}

// follow follows the table until the returned function is called.
func (s *slowTable) follow(change ...func(*Config)) (stop func()) {
	s.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(latencyRules))
	if err != nil {
		s.Fatal(err)
	}
	cfg := Config{Tables: s.sim, Streams: s.sim, Table: "app", Rules: set, Worker: "worker", Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error)
	go func() { ended <- Follow(ctx, cfg) }()
	return func() {
		s.Helper()
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	}
}

// await returns the time that passes until an attribute has a value.
func (s *slowTable) await(pk, sk, attribute, want string) time.Duration {
	s.Helper()
	began := time.Now()
	for s.see(pk, sk, attribute) != want {
		if time.Sleep(time.Millisecond); time.Since(began) > time.Minute {
			s.Fatalf("%s of %s %s is not %s after a minute", attribute, pk, sk, want)
		}
	}
	return time.Since(began)
}

// A change is visible soon after it is written, whether there is one a second or many.
func TestAChangeShowsWithinAFractionOfASecond(t *testing.T) {
	for perSecond, seconds := range map[int]int{1: 100, 200: worldsize.Of(20, 5)} {
		t.Run(fmt.Sprintf("%d a second", perSecond), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowTable(t, 1)
				s.put("GROUP#g", "METADATA", "Group")
				s.put("GROUP#g", "USER#first", "U")
				stop := s.follow()
				defer stop()
				s.await("GROUP#g", "METADATA", "memberCount", "1")
				time.Sleep(10 * time.Second)
				s.count()
				writes := seconds * perSecond
				written := make(chan time.Time, writes)
				began := time.Now()
				go func() {
					for i := range writes {
						// A little slower, so that the writes meet every phase of the polls.
						time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(perSecond) * 1009 / 1000)))
						written <- time.Now()
						s.put("GROUP#g", fmt.Sprintf("USER#%d", i), "U")
					}
				}()
				took := make([]time.Duration, 0, writes)
				for seen := 1; len(took) < writes; time.Sleep(time.Millisecond) {
					if _, err := fmt.Sscan(s.see("GROUP#g", "METADATA", "memberCount"), &seen); err != nil {
						t.Fatal(err)
					}
					for len(took) < seen-1 {
						took = append(took, time.Since(<-written))
					}
				}
				polls := float64(s.count()["GetRecords"]) / time.Since(began).Seconds()
				slices.Sort(took)
				p50, p99 := took[len(took)/2], took[len(took)*99/100]
				t.Logf("p50 %s, p99 %s, longest %s; %.1f GetRecords a second", p50, p99, took[len(took)-1], polls)
				if p50 > 200*time.Millisecond || p99 > 450*time.Millisecond {
					t.Errorf("p50 %s, p99 %s, want at most 200ms and 450ms", p50, p99)
				}
				if polls > 5 {
					t.Errorf("%.1f GetRecords a second of one shard, want at most 5", polls)
				}
			})
		})
	}
}

// With a long PollInterval an idle shard is read seldom, and a busy one as often as ever.
func TestPollIntervalIsThatOfIdleShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowTable(t, 1)
		s.put("GROUP#g", "METADATA", "Group")
		defer s.follow(func(c *Config) { c.PollInterval = 20 * time.Second })()
		time.Sleep(time.Hour)
		s.count()
		time.Sleep(time.Hour)
		if polls := s.count()["GetRecords"]; polls < 180 || polls > 230 {
			t.Errorf("%d GetRecords in an idle hour, want one each 16 to 20 s", polls)
		}
		for i := range 20 {
			s.put("GROUP#g", fmt.Sprintf("USER#%d", i), "U")
			took := s.await("GROUP#g", "METADATA", "memberCount", strconv.Itoa(i+1))
			if i > 0 && took > 450*time.Millisecond {
				t.Errorf("a change shows after %s", took)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// What a fan-out writes comes back as records. The reader takes them in few pages.
func TestARenameIsReadBackInFewPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := worldsize.Of(5000, 1000)
		s := newSlowTable(t, 1)
		s.put("GROUP#g", "METADATA", "Old")
		for i := range children {
			s.put("GROUP#g", fmt.Sprintf("USER#%04d", i), "U")
		}
		stop := s.follow()
		defer stop()
		for i := range children {
			s.await("GROUP#g", fmt.Sprintf("USER#%04d", i), "groupName", "Old")
		}
		time.Sleep(time.Minute)
		s.count()
		s.put("GROUP#g", "METADATA", "New")
		took := time.Duration(0)
		for i := range children {
			took += s.await("GROUP#g", fmt.Sprintf("USER#%04d", i), "groupName", "New")
		}
		time.Sleep(time.Second) // what was written last comes back
		polls := s.count()["GetRecords"]
		t.Logf("%d children after %s: %d GetRecords", children, took, polls)
		if polls > 40 {
			t.Errorf("%d GetRecords, want at most 5 a second and the full pages", polls)
		}
	})
}

// A start waits for few requests one after the other, for DynamoDB to make the tables side by side, and for
// little more. A restart waits for requests only.
func TestAStartIsSoonAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const creation = 8 * time.Second
		s := newSlowTable(t, 1)
		s.creation = creation
		s.put("GROUP#g", "METADATA", "Name 0")
		s.put("GROUP#g", "USER#1", "U")
		stop := s.follow()
		took := s.await("GROUP#g", "METADATA", "memberCount", "1")
		t.Logf("cold start: %s", took)
		if took > creation+600*time.Millisecond {
			t.Errorf("a new rule shows %s after a cold start, want little more than the %s of a table's creation", took, creation)
		}
		for i := range 3 {
			time.Sleep(time.Minute)
			stop()
			name := fmt.Sprintf("Name %d", i+1)
			s.put("GROUP#g", "METADATA", name)
			stop = s.follow()
			took := s.await("GROUP#g", "USER#1", "groupName", name)
			t.Logf("restart: %s", took)
			if took > 14*requestTime {
				t.Errorf("what waited in the stream shows %s after a restart, want the time of at most 14 requests", took)
			}
		}
		stop()
	})
}
