package verify_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// world is a simulated table with an application, an engine, and its stream.
type world struct {
	t      testing.TB
	ctx    context.Context
	p      *population.Population
	r      *rand.Rand
	sim    *dynamosim.Sim
	arn    string
	leases streamreader.Checkpoints
	config projections.Config

	slow atomic.Bool // calls take a random time
	mu   sync.Mutex  // guards dice
	dice *rand.Rand
}

// hesitate has calls take a random time if the world is slow: in a bubble, those who work at once take turns only where one waits.
func (w *world) hesitate(string, any) error {
	if w.slow.Load() {
		w.mu.Lock()
		wait := time.Duration(w.dice.Int64N(int64(2 * time.Millisecond)))
		w.mu.Unlock()
		time.Sleep(wait)
	}
	return nil
}

// loadSet compiles a population's rules once more, as every process does.
func loadSet(t testing.TB, p *population.Population) *rules.Set {
	t.Helper()
	set, err := rules.Load(p.Name, []byte(p.File), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func newWorld(t testing.TB, p *population.Population, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, ctx: context.Background(), p: p, r: rand.New(rand.NewPCG(seed, 1)),
		leases: streamreader.NewLeaseTable(dynamosim.New(dynamosim.Options{}), "leases"), dice: rand.New(rand.NewPCG(seed, 2)),
	}
	w.sim = dynamosim.New(dynamosim.Options{Seed: seed, Before: w.hesitate})
	w.config = projections.Config{Client: w.sim, Table: "app", Worker: "one"}
	in := &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: ddb.BillingModePayPerRequest,
		StreamSpecification: &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	}
	for _, key := range []struct {
		name string
		role ddb.KeyType
		kind change.Kind
	}{{p.Set.Table.PartitionKey, ddb.KeyTypeHash, p.PartitionKind}, {p.Set.Table.SortKey, ddb.KeyTypeRange, p.SortKind}} {
		if key.name != "" {
			in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: aws.String(key.name), KeyType: key.role})
			in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{
				AttributeName: aws.String(key.name), AttributeType: ddb.ScalarAttributeType(key.kind.String()),
			})
		}
	}
	out, err := w.sim.CreateTable(w.ctx, in)
	w.must(err)
	w.arn = aws.ToString(out.TableDescription.LatestStreamArn)
	return w
}

// inBubble runs a test beside others, in simulated time: it waits for nothing.
func inBubble(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) engine() *projections.Engine {
	w.t.Helper()
	e, err := projections.Open(w.ctx, w.engineConfig())
	w.must(err)
	return e
}

func (w *world) engineConfig() projections.Config {
	cfg := w.config
	cfg.Rules = loadSet(w.t, w.p)
	return cfg
}

// follow seeds what is new and applies the stream until nothing is left.
func (w *world) follow() {
	w.t.Helper()
	e := w.engine()
	w.must(e.Seed(w.ctx, nil))
	w.read(e)
	_, err := e.WorkTasks(w.ctx)
	w.must(err)
}

// lose has the records of the stream go unread.
func (w *world) lose() { w.read(nobody{}) }

type nobody struct{}

func (nobody) Process(_ context.Context, records []change.Record) (int, error) {
	return len(records), nil
}

func (w *world) read(to streamreader.Processor) {
	w.t.Helper()
	reader, err := streamreader.New(streamreader.Config{
		Streams: w.sim, StreamARN: w.arn, Checkpoints: w.leases, Processor: to, Logger: slog.New(slog.DiscardHandler),
		PollInterval: 20 * time.Millisecond, DrainPolls: 2,
	})
	w.must(err)
	w.must(reader.Drain(w.ctx))
}

func (w *world) put(table string, item change.Item) {
	w.t.Helper()
	_, err := w.sim.PutItem(w.ctx, &dynamodb.PutItemInput{TableName: &table, Item: attributes.ItemToTable(item)})
	w.must(err)
}

// names are the key attributes of a table.
func (w *world) names(table string) []string {
	if table != "app" {
		return []string{"pk", "sk"}
	}
	return slices.DeleteFunc([]string{w.p.Set.Table.PartitionKey, w.p.Set.Table.SortKey}, func(s string) bool { return s == "" })
}

func (w *world) delete(table string, item change.Item) {
	w.t.Helper()
	key := change.Item{}
	for _, name := range w.names(table) {
		key[name] = item[name]
	}
	_, err := w.sim.DeleteItem(w.ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: attributes.ItemToTable(key)})
	w.must(err)
}

// scan returns a table's items in the order of their keys.
func (w *world) scan(table string) []change.Item {
	w.t.Helper()
	var all []change.Item
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := w.sim.Scan(w.ctx, in)
		w.must(err)
		for _, it := range out.Items {
			all = append(all, attributes.ItemFromTable(it))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			break
		}
	}
	text := func(it change.Item) (s string) {
		for _, name := range w.names(table) {
			s += it[name].Text() + "\x00"
		}
		return s
	}
	slices.SortFunc(all, func(a, b change.Item) int {
		if text(a) < text(b) {
			return -1
		}
		return 1
	})
	return all
}

// live lets the application write for a while.
func (w *world) live(writes int) {
	w.t.Helper()
	items := map[change.Key]change.Item{}
	for range writes {
		keys := slices.SortedFunc(maps.Keys(items), func(a, b change.Key) int { return compareTexts(a.String(), b.String()) })
		switch n := w.r.IntN(10); {
		case n < 7 || len(keys) == 0:
			it := w.p.Item(w.r)
			items[w.p.Key(it)] = it
			w.put("app", it)
		case n < 9:
			key := keys[w.r.IntN(len(keys))]
			items[key] = w.p.Vary(w.r, items[key])
			w.put("app", items[key])
		default:
			key := keys[w.r.IntN(len(keys))]
			w.delete("app", items[key])
			delete(items, key)
		}
	}
}

func compareTexts(a, b string) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func (w *world) audit() *audits.Audit {
	w.t.Helper()
	a, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: loadSet(w.t, w.p)})
	w.must(err)
	return a
}

// mender is an engine and an audit of one table.
type mender struct {
	*audits.Audit
	engine *projections.Engine
}

func (m mender) Rederive(ctx context.Context, keys []change.Key) error {
	return m.engine.Rederive(ctx, keys)
}

// verify verifies the table, and mends it if asked to.
func (w *world) verify(repair bool, change ...func(*verify.Config)) ([]verify.Result, *verify.Summary) {
	w.t.Helper()
	a := w.audit()
	var found []verify.Result
	cfg := verify.Config{
		Auditor: a, Items: &tablescan.Table{Client: w.sim, TableName: "app"}, Rows: &tablescan.Table{Client: w.sim, TableName: "app-dynamill"},
		TempDir: w.t.TempDir(), Settle: time.Millisecond, Wait: 20 * time.Millisecond,
		Found: func(r verify.Result) error {
			if r.Status != verify.Listed { // which is no drift
				found = append(found, r)
			}
			return nil
		},
	}
	if repair {
		cfg.Mender = mender{a, w.engine()}
	}
	for _, c := range change {
		c(&cfg)
	}
	summary, err := verify.Run(w.ctx, cfg)
	w.must(err)
	return found, summary
}

// expectRight fails where the oracle or the verification find anything.
func (w *world) expectRight(when string) {
	w.t.Helper()
	for _, d := range oracle.Drift(w.p.Set, w.scan("app")) {
		w.t.Errorf("%s, the oracle: %s", when, d)
	}
	found, summary := w.verify(false)
	for _, f := range found {
		w.t.Errorf("%s: %s", when, text(f))
	}
	if len(summary.Undecided) > 0 {
		w.t.Errorf("%s: not decided: %v", when, summary.Undecided)
	}
}

func text(r verify.Result) string {
	return fmt.Sprintf("%s: %s %s, item %s, group %q, attribute %s: expected %s, found %s (%s %s)",
		r.Rule, r.What, r.Kind, r.Item, r.Group, r.Attribute, r.Expected, r.Found, r.Status, r.Why)
}

// place is where a finding is, as an injected corruption names it.
func place(f drift.Finding) string {
	switch f.Kind {
	case drift.Sum:
		return "sum " + f.Rule + " " + f.Group
	case drift.Locator:
		return "locator " + f.Rule + " " + f.Group
	case drift.Parked:
		return "parked " + f.Rule + " " + f.Item.String()
	case drift.Claims:
		return "claims " + f.Rule + " " + f.Item.String()
	}
	return "item " + f.Item.String()
}
