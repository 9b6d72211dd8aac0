package dynamill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/projections"
	compiled "github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/internal/tablescan"
	told "github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
	public "github.com/dynamill/dynamill/streamreader"
)

const hotHead = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Like: { key: { pk: "LIKE#${likeId}", sk: "LIKE" } }
rules:
`

const hotRules = hotHead + `  likes:  { count: Like, as: Post.likes, by: postId, hot: true }
  weight: { sum: weight, of: Like, as: Post.weight, by: postId, where: weight > 0, hot: true }
`

// hotPosts are so many that some get no like for a while.
const hotPosts = 20

// hotTable is a simulated table with hot rules, an application that writes to it, and processes that follow it.
type hotTable struct {
	*testing.T
	sim     *dynamosim.Sim
	tables  told.Client // of processes that follow
	streams public.Streams
	beside  bool // they leave other rules to a function
	rules   *rules.Set
	r       *rand.Rand
	ended   chan error
	work    sync.WaitGroup

	started func(*Running)

	mu   sync.Mutex
	slow time.Duration   // the longest time that a request takes
	seen func(input any) // is told of each request; nil: not
	dice *rand.Rand
}

// delay has a request take some time, and sometimes much: other requests overtake it.
func (h *hotTable) delay(op string, input any) error {
	h.mu.Lock()
	seen := h.seen
	h.mu.Unlock()
	if seen != nil {
		seen(input)
		if op == "PutItem" {
			return nil // the application has many clients
		}
	}
	h.mu.Lock()
	wait := time.Duration(0)
	if h.slow > 0 {
		if wait = time.Duration(h.dice.Int64N(int64(h.slow))); h.dice.IntN(30) == 0 {
			wait *= 20
		}
	}
	h.mu.Unlock()
	time.Sleep(wait)
	return nil
}

// watch has seen be told of each request from now on.
func (h *hotTable) watch(seen func(input any)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = seen
}

// slowDown sets the longest time of a usual request.
func (h *hotTable) slowDown(most time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = most
}

func newHotTable(t *testing.T, seed uint64) *hotTable { return newHotTableOf(t, seed, 2) }

func newHotTableOf(t *testing.T, seed uint64, shards int) *hotTable {
	set, err := rules.Load("dynamill.yaml", []byte(hotRules))
	if err != nil {
		t.Fatal(err)
	}
	h := &hotTable{T: t, rules: set, r: rand.New(rand.NewPCG(seed, 7)), dice: rand.New(rand.NewPCG(seed, 8)), ended: make(chan error, 100)}
	h.sim = dynamosim.New(dynamosim.Options{Seed: seed, Shards: shards, Before: h.delay})
	h.tables, h.streams = h.sim, h.sim
	_, err = h.sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: new("app"), BillingMode: ddb.BillingModePayPerRequest,
		KeySchema: []ddb.KeySchemaElement{{AttributeName: new("pk"), KeyType: ddb.KeyTypeHash},
			{AttributeName: new("sk"), KeyType: ddb.KeyTypeRange}},
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: new("pk"), AttributeType: ddb.ScalarAttributeTypeS},
			{AttributeName: new("sk"), AttributeType: ddb.ScalarAttributeTypeS}},
		StreamSpecification: &ddb.StreamSpecification{StreamEnabled: new(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range hotPosts {
		h.put(map[string]change.Value{"pk": change.String(fmt.Sprint("POST#", i)), "sk": change.String("METADATA")})
	}
	return h
}

func (h *hotTable) put(item change.Item) {
	if _, err := h.sim.PutItem(h.Context(), &dynamodb.PutItemInput{TableName: new("app"), Item: attributes.ItemToTable(item)}); err != nil {
		h.Error(err)
	}
}

// write has the application put, change or delete so many likes, one every so often.
func (h *hotTable) write(n int, every time.Duration) {
	for range n {
		key := change.Item{"pk": change.String(fmt.Sprint("LIKE#", h.r.IntN(60))), "sk": change.String("LIKE")}
		if h.r.IntN(4) == 0 {
			_, err := h.sim.DeleteItem(h.Context(), &dynamodb.DeleteItemInput{TableName: new("app"), Key: attributes.ItemToTable(key)})
			if err != nil {
				h.Error(err)
			}
		} else {
			key["postId"], key["weight"] = change.String(fmt.Sprint(h.r.IntN(hotPosts))), change.Number(fmt.Sprint(h.r.IntN(3)))
			h.put(key)
		}
		if h.r.IntN(40) == 0 {
			h.reshape()
		}
		time.Sleep(every)
	}
}

// reshape has a shard end: a child goes on, or two.
func (h *hotTable) reshape() {
	open, err := h.sim.OpenShards("app")
	if err == nil && h.r.IntN(2) == 0 {
		_, err = h.sim.RollOver("app", open[h.r.IntN(len(open))])
	} else if err == nil && len(open) < 6 {
		_, err = h.sim.SplitShard("app", open[h.r.IntN(len(open))])
	}
	if err != nil {
		h.Error(err)
	}
}

// follow starts a process. It returns what stops it, and waits until it has ended.
func (h *hotTable) follow(name string) (stop func()) {
	ctx, cancel := context.WithCancel(h.Context())
	done := make(chan struct{})
	h.work.Go(func() {
		defer close(done)
		h.ended <- Follow(ctx, Config{Tables: h.tables, Streams: h.streams, Table: "app", Rules: h.rules, Worker: name,
			LeaseTerm: 5 * time.Second, BesideFunction: h.beside, Started: h.started, Logger: slog.New(slog.DiscardHandler)})
	})
	return func() { cancel(); <-done }
}

// want is what each post must show, by the items.
func (h *hotTable) want() map[string]string {
	likes, weight := map[string]int{}, map[string]int{}
	for _, it := range h.items("app") {
		if post := it["postId"].Text(); post != "" {
			n := 0
			_, _ = fmt.Sscan(it["weight"].Text(), &n)
			likes[post], weight[post] = likes[post]+1, weight[post]+n
		}
	}
	all := map[string]string{}
	for i := range hotPosts {
		post := fmt.Sprint(i)
		all[post] = fmt.Sprint(likes[post], " ", weight[post])
	}
	return all
}

// shown is what each post shows. Posts are numbered from 0 on.
func (h *hotTable) shown() map[string]string {
	all := map[string]string{}
	for i := 0; ; i++ {
		post := fmt.Sprint(i)
		key := change.Item{"pk": change.String("POST#" + post), "sk": change.String("METADATA")}
		out, err := h.sim.GetItem(h.Context(), &dynamodb.GetItemInput{TableName: new("app"), Key: attributes.ItemToTable(key),
			ConsistentRead: new(true)})
		if err != nil {
			h.Fatal(err)
		}
		if out.Item == nil {
			return all
		}
		it := attributes.ItemFromTable(out.Item)
		all[post] = it["likes"].Text() + " " + it["weight"].Text()
	}
}

func (h *hotTable) items(table string) (all []change.Item) {
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: new(true)}
	for {
		out, err := h.sim.Scan(h.Context(), in)
		if err != nil {
			h.Fatal(err)
		}
		for _, it := range out.Items {
			all = append(all, attributes.ItemFromTable(it))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return all
		}
	}
}

// expect waits until all is applied, and compares.
func (h *hotTable) expect(when string) {
	h.Helper()
	for waited := 0; ; waited++ {
		want, got := h.want(), h.shown()
		if fmt.Sprint(want) == fmt.Sprint(got) {
			return
		}
		if waited == 120 {
			h.Errorf("%s, posts show %v, want %v", when, got, want)
			for len(h.ended) > 0 {
				h.Errorf("a process has ended: %v", <-h.ended)
			}
			return
		}
		time.Sleep(time.Second)
	}
}

// forgetLeases has a person delete all rows of the lease table.
func (h *hotTable) forgetLeases() {
	for _, row := range h.items("app-dynamill-leases") {
		_, err := h.sim.DeleteItem(h.Context(), &dynamodb.DeleteItemInput{TableName: new("app-dynamill-leases"),
			Key: attributes.ItemToTable(change.Item{"leaseKey": row["leaseKey"]})})
		if err != nil {
			h.Error(err)
		}
	}
}

func (h *hotTable) compiled() *compiled.Set {
	set, err := compile(h.rules)
	if err != nil {
		h.Fatal(err)
	}
	return set
}

// attach opens an engine on the rules in force.
func (h *hotTable) attach() *projections.Engine {
	e, err := projections.OpenAttached(h.Context(), projections.Config{Client: h.sim, Table: "app", Rules: h.compiled()})
	if err != nil {
		h.Fatal(err)
	}
	return e
}

// count verifies or repairs the generation of each rule.
func (h *hotTable) count(purpose counting.Purpose) (all []counting.Result) {
	h.Helper()
	e, keys := h.attach(), h.compiled().Table
	arns, err := h.sim.DescribeTable(h.Context(), &dynamodb.DescribeTableInput{TableName: new("app")})
	if err != nil {
		h.Fatal(err)
	}
	for _, g := range e.Generations() {
		result, err := counting.Run(h.Context(), counting.Config{
			Generation: g, Purpose: purpose, Streams: h.sim, StreamARN: *arns.Table.LatestStreamArn, PartitionKey: "pk", SortKey: "sk",
			Leases: streamreader.NewLeaseTable(h.sim, "app-dynamill-leases"), Logger: slog.New(slog.DiscardHandler), TempDir: h.TempDir(),
			Items: func(ctx context.Context, f func(change.Key, change.Image) error) error {
				return (&tablescan.Table{Client: h.sim, TableName: "app"}).Each(ctx, func(it change.Item) error {
					return f(keys.KeyOf(it), it)
				})
			},
		})
		if err != nil {
			h.Error(err)
		}
		all = append(all, result)
	}
	return all
}

func TestHotRulesStayTrueUnderTraffic(t *testing.T) {
	for seed := range uint64(worldsize.Of(3, 1)) {
		synctest.Test(t, func(t *testing.T) {
			h := newHotTable(t, seed)
			h.write(80, 0)
			h.slowDown(time.Duration(seed%3) * 30 * time.Millisecond)
			stopA, stopB := h.follow("a"), h.follow("b")
			h.write(300, 100*time.Millisecond)
			h.expect("seeded beside traffic")
			stopA()
			h.write(100, 50*time.Millisecond)
			stopA = h.follow("c")
			h.write(100, 50*time.Millisecond)
			h.expect("after a process was replaced")

			go h.write(300, 100*time.Millisecond)
			for _, r := range h.count(counting.Verify) {
				if len(r.Findings) > 0 || r.Undecided != "" || r.Groups == 0 {
					t.Errorf("verify finds %+v in what is right", r)
				}
			}
			time.Sleep(time.Minute)
			h.expect("after verify")
			stopA()
			stopB()
			close(h.ended)
			for err := range h.ended {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestFunctionLeavesHotRulesOut has a process keep hot rules beside a function, which refuses them unless it is told so.
func TestFunctionLeavesHotRulesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 11)
		_, err := NewHandler(t.Context(), HandlerConfig{Tables: h.sim, Rules: h.rules, Table: "app", Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "likes (`hot: true`)") || !strings.Contains(err.Error(), "HandlerConfig.BesideRun") {
			t.Errorf("a function of hot rules starts with %v", err)
		}
		_, err = NewHandler(t.Context(), HandlerConfig{Tables: h.sim, Rules: h.rules, Table: "app", Logger: slog.New(slog.DiscardHandler),
			BesideRun: true})
		if err != nil {
			t.Error(err)
		}
		h.write(80, 0)
		h.beside = true
		stop := h.follow("a")
		h.write(100, 100*time.Millisecond)
		h.expect("kept beside a function")
		stop()
		h.beside = false
		h.follow("b")
		if err := <-h.ended; err != nil {
			t.Errorf("the process beside the function ended with %v", err)
		}
		if err := <-h.ended; err == nil || !strings.Contains(err.Error(), "records that the function has not applied yet would be skipped") {
			t.Errorf("a process that takes over from the function, at the checkpoints of the other, ends with %v", err)
		}
		if _, err := h.sim.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: new("app-dynamill-leases")}); err != nil {
			t.Fatal(err)
		}
		stop = h.follow("c")
		h.write(20, 100*time.Millisecond)
		h.expect("kept by one that has read the stream from its start")
		stop()
	})
}

// TestRulesAreCountedAnewUnderTraffic has rules counted anew, and then the leases deleted: workers read records again that are older
// than the generation.
func TestRulesAreCountedAnewUnderTraffic(t *testing.T) {
	for seed := range uint64(worldsize.Of(3, 1)) {
		synctest.Test(t, func(t *testing.T) {
			h := newHotTable(t, 40+seed)
			h.write(80, 0)
			stopA, stopB := h.follow("a"), h.follow("b")
			h.write(100, 100*time.Millisecond)
			h.expect("seeded")
			h.slowDown(time.Duration(seed%3) * 30 * time.Millisecond)
			for range 2 {
				if err := h.attach().Recount(t.Context(), []string{"likes", "weight"}); !errors.Is(err, projections.ErrEpochMoved) {
					t.Errorf("a recount begins with %v", err)
				}
				h.write(20+h.r.IntN(200), 100*time.Millisecond)
				h.forgetLeases()
				h.write(150, 100*time.Millisecond)
			}
			h.expect("counted anew")
			h.forgetLeases()
			h.write(100, 100*time.Millisecond)
			h.expect("leases deleted behind that")
			h.slowDown(0)
			for _, r := range h.count(counting.Verify) {
				if len(r.Findings) > 0 || r.Undecided != "" {
					t.Errorf("verify finds %+v in what is right", r)
				}
			}
			stopA()
			stopB()
		})
	}
}

// TestAFormerHotRuleFileEndsAsAnyFormerFile has another process bring a changed file into force: a process with the former one ends as one
// that a supervisor starts again, with the file that is there by then.
func TestAFormerHotRuleFileEndsAsAnyFormerFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 1)
		h.write(20, 0)
		stop := h.follow("a")
		h.write(50, 100*time.Millisecond)
		text := strings.Replace(hotRules, "where: weight > 0", "where: weight > 1", 1)
		newer, err := compiled.Load("dynamill.yaml", []byte(text), projections.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		found, err := projections.Compare(t.Context(), h.sim, "app-dynamill", newer)
		if err != nil {
			t.Fatal(err)
		}
		cfg := projections.Config{Client: h.sim, Table: "app", Rules: newer}
		if _, err := projections.OpenChanging(t.Context(), cfg, found.Epoch); err != nil {
			t.Fatal(err)
		}
		h.write(50, 100*time.Millisecond)
		if err := <-h.ended; !errors.Is(err, projections.ErrEpochMoved) || errors.As(err, new(*told.RulesChangedError)) {
			t.Errorf("the process with the former file ends with %v", err)
		}
		stop()
	})
}

// TestHotRulesOutliveDeletedLeases has a person delete the lease table's rows, while a rule is counted and while it is live.
func TestHotRulesOutliveDeletedLeases(t *testing.T) {
	for seed := range uint64(worldsize.Of(3, 1)) {
		synctest.Test(t, func(t *testing.T) {
			h := newHotTable(t, 20+seed)
			h.write(80, 0)
			h.slowDown(time.Duration(seed%3) * 30 * time.Millisecond)
			stop := h.follow("a")
			h.write(30, 100*time.Millisecond)
			h.forgetLeases()
			h.write(200, 100*time.Millisecond)
			h.expect("leases deleted while the rule is counted")
			h.forgetLeases()
			h.write(100, 100*time.Millisecond)
			h.expect("leases deleted while the rule is live")
			stop()
			if err := <-h.ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}
