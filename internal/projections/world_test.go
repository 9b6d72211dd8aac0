package projections

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// world is a simulated table with a rule set, and what tests do to it.
type world struct {
	t    testing.TB
	ctx  context.Context
	sim  *dynamosim.Sim
	file string     // the rule file; every engine loads its own, as every process does
	set  *rules.Set // the same for looking at the table
	arn  string
	seen []change.Record // the stream so far, in order
	iter *string
}

func newWorld(t testing.TB, ruleFile string) *world {
	t.Helper()
	set := loadRules(t, ruleFile)
	w := &world{t: t, ctx: context.Background(), sim: dynamosim.New(dynamosim.Options{}), file: ruleFile, set: set}
	in := &dynamodb.CreateTableInput{
		TableName: new("app"), BillingMode: ddb.BillingModePayPerRequest,
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: &set.Table.PartitionKey, KeyType: ddb.KeyTypeHash}},
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: &set.Table.PartitionKey, AttributeType: ddb.ScalarAttributeTypeS}},
		StreamSpecification:  &ddb.StreamSpecification{StreamEnabled: new(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	}
	if set.Table.SortKey != "" {
		in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: &set.Table.SortKey, KeyType: ddb.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{AttributeName: &set.Table.SortKey,
			AttributeType: sortType(set)})
	}
	if err := set.CheckKeys(change.KindString, sortKind(set)); err != nil {
		t.Fatal(err)
	}
	out, err := w.sim.CreateTable(w.ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	w.arn = *out.TableDescription.LatestStreamArn
	return w
}

// createKeyed creates a table with a partition key and the sort key sk, both texts.
func (w *world) createKeyed(table, partition string) {
	w.t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &table, BillingMode: ddb.BillingModePayPerRequest}
	for name, role := range map[string]ddb.KeyType{partition: ddb.KeyTypeHash, "sk": ddb.KeyTypeRange} {
		in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: new(name), KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{AttributeName: new(name),
			AttributeType: ddb.ScalarAttributeTypeS})
	}
	slices.SortFunc(in.KeySchema, func(a, b ddb.KeySchemaElement) int { return cmp.Compare(a.KeyType, b.KeyType) }) // HASH comes first
	if _, err := w.sim.CreateTable(w.ctx, in); err != nil {
		w.t.Fatal(err)
	}
}

// sortKind is the type of the table's sort key: one called n is a number.
func sortKind(set *rules.Set) change.Kind {
	switch set.Table.SortKey {
	case "":
		return change.KindAbsent
	case "n":
		return change.KindNumber
	}
	return change.KindString
}

func sortType(set *rules.Set) ddb.ScalarAttributeType {
	return ddb.ScalarAttributeType(sortKind(set).String())
}

func loadRules(t testing.TB, text string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(text), Kinds)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// engine opens an engine; client nil means the simulator itself.
func (w *world) engine(client table.Client) *Engine {
	w.t.Helper()
	if client == nil {
		client = w.sim
	}
	e, err := Open(w.ctx, Config{Client: client, Table: "app", Rules: loadRules(w.t, w.file)})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// seeded opens an engine and seeds it.
func (w *world) seeded() *Engine {
	w.t.Helper()
	e := w.engine(nil)
	if err := e.Seed(w.ctx, nil); err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) put(item change.Item) {
	w.t.Helper()
	if _, err := w.sim.PutItem(w.ctx, &dynamodb.PutItemInput{TableName: new("app"), Item: attributes.ItemToTable(item)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) keyItem(key change.Key) change.Item {
	it := change.Item{w.set.Table.PartitionKey: change.String(key.Partition)}
	if w.set.Table.SortKey != "" {
		it[w.set.Table.SortKey] = change.String(key.Sort)
		if sortKind(w.set) == change.KindNumber {
			it[w.set.Table.SortKey] = change.Number(key.Sort)
		}
	}
	return it
}

func (w *world) delete(key change.Key) {
	w.t.Helper()
	if _, err := w.sim.DeleteItem(w.ctx, &dynamodb.DeleteItemInput{TableName: new("app"),
		Key: attributes.ItemToTable(w.keyItem(key))}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(key change.Key) change.Item {
	w.t.Helper()
	out, err := w.sim.GetItem(w.ctx, &dynamodb.GetItemInput{TableName: new("app"), Key: attributes.ItemToTable(w.keyItem(key)),
		ConsistentRead: new(true)})
	if err != nil {
		w.t.Fatal(err)
	}
	return attributes.ItemFromTable(out.Item)
}

// update puts the item again with some attributes changed; an absent value removes one.
func (w *world) update(key change.Key, with change.Item) {
	w.t.Helper()
	it := w.get(key)
	if it == nil {
		it = w.keyItem(key)
	}
	for name, v := range with {
		if v.Kind() == change.KindAbsent {
			delete(it, name)
		} else {
			it[name] = v
		}
	}
	w.put(it)
}

func (w *world) items() []change.Item { return w.scan("app") }

func (w *world) scan(table string) []change.Item {
	w.t.Helper()
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: new(true)}
	var items []change.Item
	for {
		out, err := w.sim.Scan(w.ctx, in)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, it := range out.Items {
			items = append(items, attributes.ItemFromTable(it))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items
		}
	}
}

// records reads on in the stream and returns all of it.
func (w *world) records() []change.Record {
	w.t.Helper()
	if w.iter == nil {
		d, err := w.sim.DescribeStream(w.ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn})
		if err != nil {
			w.t.Fatal(err)
		}
		it, err := w.sim.GetShardIterator(w.ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &w.arn, ShardId: d.StreamDescription.Shards[0].ShardId, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.iter = it.ShardIterator
	}
	for {
		out, err := w.sim.GetRecords(w.ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: w.iter})
		if err != nil {
			w.t.Fatal(err)
		}
		w.iter = out.NextShardIterator
		for _, r := range out.Records {
			w.seen = append(w.seen, w.decode(r))
		}
		if len(out.Records) == 0 {
			return w.seen
		}
	}
}

func (w *world) decode(r streams.Record) change.Record {
	w.t.Helper()
	position, err := change.NewPosition("2026-01-01T00:00:00.000", *r.Dynamodb.SequenceNumber)
	if err != nil {
		w.t.Fatal(err)
	}
	keys := attributes.StreamImage(r.Dynamodb.Keys)
	rec := change.Record{Position: position}
	rec.Key.Partition = keys.Lookup(w.set.Table.PartitionKey).Text()
	if w.set.Table.SortKey != "" {
		rec.Key.Sort = keys.Lookup(w.set.Table.SortKey).Text()
	}
	if r.Dynamodb.OldImage != nil {
		rec.Old = attributes.StreamImage(r.Dynamodb.OldImage)
	}
	if r.Dynamodb.NewImage != nil {
		rec.New = attributes.StreamImage(r.Dynamodb.NewImage)
	}
	return rec
}

// drain gives the engine all records from a position on, until none are left.
func (w *world) drain(e *Engine, from int) int {
	w.t.Helper()
	for steps := 0; ; steps++ {
		all := w.records()
		if from == len(all) {
			return from
		}
		if steps > 1000 {
			w.t.Fatalf("no end of records: %d so far, the last of %s", len(all), all[len(all)-1].Key)
		}
		done, err := e.Process(w.ctx, all[from:])
		if err != nil {
			w.t.Fatal(err)
		}
		from += done
	}
}

func (w *world) expectNoDrift() {
	w.t.Helper()
	for _, d := range oracle.Drift(w.set, w.items()) {
		w.t.Error(d)
	}
}

// idOf is the registry's id of a rule by its name; "name-2" is the second rule of this name.
func idOf(name string) string { return registry.FreeID(name, map[string]bool{}) }

// stampOf is the attribute that holds a rule's stamp.
func stampOf(name string) string { return StampPrefix + idOf(name) }

// parkedID is the id of what is parked, given with the rule's name instead of its id.
func parkedID(text string) string {
	name, rest, _ := strings.Cut(text, "/")
	prefix, bare := splitParkedID(name)
	if strings.HasPrefix(bare, "@") {
		return text
	}
	return prefix + idOf(bare) + "/" + rest
}

// splitParkedID splits the id of a parked record into its prefix, such as "display:", and the rest.
func splitParkedID(id string) (prefix, rest string) {
	for _, prefix := range []string{"contested:", "display:"} {
		if rest, ok := strings.CutPrefix(id, prefix); ok {
			return prefix, rest
		}
	}
	return "", id
}

// spelled are ids of what is parked with the rules' names instead of their ids, sorted.
func (w *world) spelled(ids []string) []string {
	w.t.Helper()
	names := map[string]string{}
	for _, row := range w.scan("app-dynamill") {
		if id, ok := strings.CutPrefix(row["sk"].Text(), "rule/"); ok && row["pk"].Text() == "registry" {
			names[id] = row["name"].Text()
		}
	}
	for i, text := range ids {
		prefix, rest := splitParkedID(text)
		id, behind, _ := strings.Cut(rest, "/")
		if names[id] != "" {
			ids[i] = prefix + names[id] + rest[len(rest)-len(behind)-min(len(rest)-len(id), 1):]
		}
	}
	slices.Sort(ids)
	return ids
}

// putState writes a row of the state table.
func (w *world) putState(row change.Item) {
	w.t.Helper()
	if _, err := w.sim.PutItem(w.ctx, &dynamodb.PutItemInput{TableName: new("app-dynamill"), Item: attributes.ItemToTable(row)}); err != nil {
		w.t.Fatal(err)
	}
}
