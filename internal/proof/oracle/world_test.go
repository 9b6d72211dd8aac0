package oracle

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// world is a simulated table that the real engine follows. Tests that use it
// run in a bubble of testing/synctest, so that no time is spent on waiting.
type world struct {
	t           *testing.T
	file        string // the rule file; every engine loads its own
	set         *rules.Set
	sim         *dynamosim.Sim
	arn         string
	checkpoints streamreader.Checkpoints
	base        map[change.Key]change.Item // what the application wrote last
}

const worldTable = "app"

func newWorld(t *testing.T, file string) *world {
	t.Helper()
	w := &world{t: t, file: file, set: compile(t, file), sim: dynamosim.New(dynamosim.Options{}),
		checkpoints: streamreader.NewLeaseTable(dynamosim.New(dynamosim.Options{}), "leases"), base: map[change.Key]change.Item{}}
	in := &dynamodb.CreateTableInput{
		TableName: ptr(worldTable), BillingMode: ddb.BillingModePayPerRequest,
		StreamSpecification: &ddb.StreamSpecification{StreamEnabled: new(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	}
	kinds := [2]change.Kind{}
	for i, name := range []string{w.set.Table.PartitionKey, w.set.Table.SortKey} {
		if name == "" {
			continue
		}
		kinds[i] = keyKind(name)
		in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: ptr(name),
			KeyType: []ddb.KeyType{ddb.KeyTypeHash, ddb.KeyTypeRange}[i]})
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{
			AttributeName: ptr(name), AttributeType: ddb.ScalarAttributeType(kinds[i].String())})
	}
	out, err := w.sim.CreateTable(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	w.arn = *out.TableDescription.LatestStreamArn
	if err := w.set.CheckKeys(kinds[0], kinds[1]); err != nil {
		t.Fatal(err)
	}
	return w
}

func ptr(s string) *string { return &s }

// keyKind is the type of a key attribute: one called n is a number.
func keyKind(name string) change.Kind {
	if name == "n" {
		return change.KindNumber
	}
	return change.KindString
}

// item reads one item from a line: its key's values, then attributes, a text
// as name=value and a number as name:value, parted by spaces.
func (w *world) item(line string) change.Item {
	it := change.Item{}
	words := strings.Fields(line)
	for _, name := range []string{w.set.Table.PartitionKey, w.set.Table.SortKey} {
		if name != "" {
			it[name], words = keyValue(keyKind(name), words[0]), words[1:]
		}
	}
	for _, word := range words {
		if name, ok := strings.CutSuffix(word, "[]"); ok {
			it[name] = change.List(nil)
			continue
		}
		at := strings.IndexAny(word, "=:")
		if value := word[at+1:]; word[at] == '=' {
			it[word[:at]] = change.String(value)
		} else {
			it[word[:at]] = change.Number(value)
		}
	}
	return it
}

func (w *world) key(it change.Item) change.Key {
	return change.Key{Partition: it[w.set.Table.PartitionKey].Text(), Sort: it[w.set.Table.SortKey].Text()}
}

func (w *world) put(it change.Item) {
	w.t.Helper()
	if _, err := w.sim.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: ptr(worldTable),
		Item: attributes.ItemToTable(it)}); err != nil {
		w.t.Fatal(err)
	}
	w.base[w.key(it)] = it
}

func (w *world) delete(it change.Item) {
	w.t.Helper()
	key := change.Item{}
	for _, name := range []string{w.set.Table.PartitionKey, w.set.Table.SortKey} {
		if name != "" {
			key[name] = it[name]
		}
	}
	if _, err := w.sim.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: ptr(worldTable),
		Key: attributes.ItemToTable(key)}); err != nil {
		w.t.Fatal(err)
	}
	delete(w.base, w.key(it))
}

// write does what lines say: an item to put, or, behind a "-", one to delete.
func (w *world) write(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		if gone, ok := strings.CutPrefix(line, "- "); ok {
			w.delete(w.item(gone))
		} else {
			w.put(w.item(line))
		}
	}
}

// writer lets a story write to a world.
type writer struct{ w *world }

func (wr writer) Put(_ context.Context, it change.Item) error {
	wr.w.put(it)
	return nil
}

func (wr writer) Delete(_ context.Context, key change.Item) error {
	wr.w.delete(key)
	return nil
}

// Update puts what the application wrote last, with the attributes of it changed.
func (wr writer) Update(_ context.Context, it change.Item) error {
	all := maps.Clone(wr.w.base[wr.w.key(it)])
	maps.Copy(all, it)
	wr.w.put(all)
	return nil
}

// drain opens an engine, seeds, and follows the stream until all is done.
func (w *world) drain() *projections.Engine {
	w.t.Helper()
	engine, err := projections.Open(w.t.Context(), projections.Config{
		Client: w.sim, Table: worldTable, Rules: compile(w.t, w.file), Worker: "worker", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := engine.Seed(w.t.Context(), nil); err != nil {
		w.t.Fatal(err)
	}
	w.follow(engine)
	return engine
}

func (w *world) follow(engine *projections.Engine) {
	w.t.Helper()
	reader, err := streamreader.New(streamreader.Config{
		Streams: w.sim, StreamARN: w.arn, Checkpoints: w.checkpoints, Processor: engine,
		Logger: slog.New(slog.DiscardHandler), PollInterval: 20 * time.Millisecond, DrainPolls: 2,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := reader.Drain(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) items() []change.Item { return w.scan(worldTable) }
func (w *world) state() []change.Item { return w.scan(worldTable + "-dynamill") }

func (w *world) scan(table string) []change.Item {
	w.t.Helper()
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: new(true)}
	var all []change.Item
	for {
		out, err := w.sim.Scan(context.Background(), in)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, it := range out.Items {
			all = append(all, attributes.ItemFromTable(it))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return all
		}
	}
}

// moment is what a world holds when all is done.
type moment struct {
	set          *rules.Set
	items, state []change.Item
	now          time.Time
}

func (w *world) moment() moment { return moment{w.set, w.items(), w.state(), time.Now()} }

// spelled is a moment in which each rule has its name for an id, wherever the id stands. No key may be cut.
func (m moment) spelled() moment {
	var pairs []string
	for _, rule := range m.set.Rules {
		pairs = append(pairs, "/"+RuleID(rule.Name)+"/", "/"+rule.Name+"/", "^"+RuleID(rule.Name)+"/", "^"+rule.Name+"/",
			":"+RuleID(rule.Name)+"/", ":"+rule.Name+"/", "/"+RuleID(rule.Name)+"$", "/"+rule.Name+"$", "^"+RuleID(rule.Name)+"$", "^"+rule.Name+"$",
			"^"+stampPrefix+RuleID(rule.Name)+"$", "^"+stampPrefix+rule.Name+"$")
	}
	names := strings.NewReplacer(pairs...)
	spell := func(text string) string { return strings.Trim(names.Replace("^"+text+"$"), "^$") }
	all := func(list []change.Item) (spelt []change.Item) {
		for _, it := range list {
			with := change.Item{}
			for name, v := range it {
				switch name {
				case "pk", "sk", "id", "rule", "PK", "SK":
					if v.Kind() == change.KindString {
						v = change.String(spell(v.Text()))
					}
				case "e":
					effects := map[string]string{}
					for id, effect := range EffectsIn(it) {
						effects[spell(id)] = effect
					}
					v = EffectsValue(effects)
				}
				with[spell(name)] = v
			}
			spelt = append(spelt, with)
		}
		return spelt
	}
	m.items, m.state = all(m.items), all(m.state)
	return m
}

func (m moment) audit(except ...Exception) []Difference {
	return Audit(m.set, m.items, m.state, m.now, except...)
}

// row changes a row of the state table, or makes one: attributes are given as
// names and values in turn; a nil value removes one.
func (m moment) row(partition, sort string, attributes ...any) moment {
	rows := items{}
	for _, row := range m.state {
		rows[row["pk"].Text()+" "+row["sk"].Text()] = row
	}
	m.state = rows.with(partition, sort, attributes...).list()
	return m
}

func (m moment) withoutRow(partition, sort string) moment {
	m.state = slices.DeleteFunc(slices.Clone(m.state), func(row change.Item) bool {
		return row["pk"].Text() == partition && row["sk"].Text() == sort
	})
	return m
}

// after takes a moment of a world in which the application wrote these lines, all at once or, parted by "", in turn.
func after(t *testing.T, file string, lines ...string) moment {
	t.Helper()
	var m moment
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, file)
		for _, line := range lines {
			if line == "" {
				w.drain()
				continue
			}
			w.write(line)
		}
		w.drain()
		m = w.moment()
	})
	return m
}
