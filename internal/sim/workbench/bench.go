// Package workbench sets up one small world in memory: a simulated DynamoDB
// with a table and its stream, the engine, and the stream reader between them.
// Examples, tests and the demonstration write to the table as an application
// would, let the engine follow the stream, kill it, and look at the result and
// at what it cost. It imports dynamosim, projections, streamreader, tablescan, rules,
// change and internal/attributes.
package workbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// The names of the two tables: the application's and the engine's own.
const (
	TableName      = "demo"
	StateTableName = "demo-dynamill"
)

const (
	pollInterval = time.Millisecond // nothing else needs the processor
	drainPolls   = 2
)

// Bench is one world. Its methods must not be called at the same time.
type Bench struct {
	set         *rules.Set
	sim         *dynamosim.Sim
	streamARN   string
	checkpoints *checkpoints
	engine      *projections.Engine // nil before the first Drain and after a crash
	generation  int                 // number of engines so far

	spent       dynamosim.Usage // until the last call of Usage
	application float64         // write units of the application since then
	records     atomic.Int64    // records given to the engine since then

	byHand      *handler // nil without CountByHand
	repeatEvery int      // every record of this number comes twice in the next Drain; 0: none does
	delivered   int      // records of the present Drain

	life life
}

// New makes a world with an empty table that has the keys of the rule set, all of them texts.
func New(ctx context.Context, set *rules.Set) (*Bench, error) {
	b := &Bench{set: set}
	b.sim = dynamosim.New(dynamosim.Options{Before: b.life.before})
	b.checkpoints = &checkpoints{Checkpoints: newLeases(), life: &b.life}
	in := tableOf(set, TableName)
	in.StreamSpecification = &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages}
	out, err := b.sim.CreateTable(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("creating the table: %w", err)
	}
	b.streamARN = aws.ToString(out.TableDescription.LatestStreamArn)
	return b, nil
}

// tableOf is a table with the keys of a rule set.
func tableOf(set *rules.Set, name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: aws.String(name), BillingMode: ddb.BillingModePayPerRequest}
	for _, key := range []struct {
		name string
		kind ddb.KeyType
	}{{set.Table.PartitionKey, ddb.KeyTypeHash}, {set.Table.SortKey, ddb.KeyTypeRange}} {
		if key.name == "" {
			continue
		}
		in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: aws.String(key.name), KeyType: key.kind})
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			ddb.AttributeDefinition{AttributeName: aws.String(key.name), AttributeType: ddb.ScalarAttributeTypeS})
	}
	return in
}

// Put writes an item whole, as an application would.
func (b *Bench) Put(ctx context.Context, item change.Item) error {
	return b.write("putting an item", func() error {
		_, err := b.sim.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(TableName), Item: attributes.ItemToTable(item)})
		return err
	})
}

// Update sets the attributes of item beside its key, as an application would.
func (b *Bench) Update(ctx context.Context, item change.Item) error {
	in := &dynamodb.UpdateItemInput{
		TableName:                 aws.String(TableName),
		Key:                       attributes.ItemToTable(b.keyItem(item)),
		ExpressionAttributeNames:  map[string]string{},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{},
	}
	var sets []string
	for i, name := range slices.Sorted(maps.Keys(item)) {
		if name == b.set.Table.PartitionKey || name == b.set.Table.SortKey {
			continue
		}
		sets = append(sets, fmt.Sprintf("#a%d = :a%d", i, i))
		in.ExpressionAttributeNames[fmt.Sprintf("#a%d", i)] = name
		in.ExpressionAttributeValues[fmt.Sprintf(":a%d", i)] = attributes.ToTable(item[name])
	}
	in.UpdateExpression = aws.String("SET " + strings.Join(sets, ", "))
	return b.write("updating an item", func() error {
		_, err := b.sim.UpdateItem(ctx, in)
		return err
	})
}

// Delete deletes the item with the key that is in item, as an application would.
func (b *Bench) Delete(ctx context.Context, item change.Item) error {
	return b.write("deleting an item", func() error {
		_, err := b.sim.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(TableName), Key: attributes.ItemToTable(b.keyItem(item))})
		return err
	})
}

func (b *Bench) keyItem(item change.Item) change.Item {
	key := change.Item{b.set.Table.PartitionKey: item[b.set.Table.PartitionKey]}
	if sort := b.set.Table.SortKey; sort != "" {
		key[sort] = item[sort]
	}
	return key
}

// write carries out a write of the application and counts what it costs.
func (b *Bench) write(doing string, f func() error) error {
	before := b.sim.Usage()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	b.application += b.sim.Usage().Sub(before).WriteUnits
	return nil
}

// Items returns all items of the table, in the order of their keys.
func (b *Bench) Items(ctx context.Context) ([]change.Item, error) {
	return scan(ctx, b.sim, TableName, b.set)
}

func scan(ctx context.Context, sim *dynamosim.Sim, name string, set *rules.Set) ([]change.Item, error) {
	var items []change.Item
	table := tablescan.Table{Client: sim, TableName: name, Segments: 1}
	err := table.Each(ctx, func(item change.Item) error {
		items = append(items, item)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	slices.SortFunc(items, func(x, y change.Item) int {
		one, other := set.Table.KeyOf(x), set.Table.KeyOf(y)
		return cmp.Or(cmp.Compare(one.Partition, other.Partition), cmp.Compare(one.Sort, other.Sort))
	})
	return items, nil
}

// Drain lets the engine seed what is to be seeded and follow the stream until
// nothing is left to do. After a crash a new engine begins at the last
// checkpoint. It returns ErrCrashed, wrapped, where CrashAfter made it die.
func (b *Bench) Drain(ctx context.Context) error {
	b.life.begin()
	err := b.follow(ctx)
	b.repeatEvery, b.delivered = 0, 0
	if b.life.end() {
		b.engine = nil
		return fmt.Errorf("following the stream: %w", cmp.Or(err, ErrCrashed))
	}
	return err
}

func (b *Bench) follow(ctx context.Context) error {
	if b.engine == nil {
		b.generation++
		engine, err := projections.Open(ctx, projections.Config{
			Client: b.sim, Table: TableName, StateTable: StateTableName, Rules: b.set,
			Worker: fmt.Sprintf("worker-%d", b.generation), // the write suffix must not be drawn at random
		})
		if err != nil {
			return fmt.Errorf("opening the engine: %w", err)
		}
		b.engine = engine
	}
	if err := b.engine.Seed(ctx, func(projections.SeedProgress) {}); err != nil {
		return fmt.Errorf("seeding: %w", err)
	}
	reader, err := streamreader.New(streamreader.Config{
		Streams: b.sim, StreamARN: b.streamARN, Checkpoints: b.checkpoints, Processor: b,
		Logger: slog.New(slog.DiscardHandler), PollInterval: pollInterval, DrainPolls: drainPolls,
	})
	if err != nil {
		return err
	}
	return reader.Drain(ctx)
}

// RepeatEvery has the next Drain deliver every record of this number twice: of 3, the third, the sixth and so on. Each
// comes again behind its batch, as after a batch that timed out when its work was done.
func (b *Bench) RepeatEvery(number int) { b.repeatEvery = number }

// Process counts the records and delivers them, some of them twice.
func (b *Bench) Process(ctx context.Context, records []change.Record) (int, error) {
	done, err := b.deliver(ctx, records)
	if err != nil || b.repeatEvery == 0 {
		return done, err
	}
	var again []change.Record
	for _, rec := range records[:done] {
		if b.delivered++; b.delivered%b.repeatEvery == 0 {
			again = append(again, rec)
		}
	}
	if len(again) > 0 {
		_, err = b.deliver(ctx, again)
	}
	return done, err
}

// deliver hands records to the handler written by hand, if there is one, and to the engine.
func (b *Bench) deliver(ctx context.Context, records []change.Record) (int, error) {
	b.records.Add(int64(len(records)))
	if b.byHand != nil {
		if err := b.byHand.handle(ctx, records); err != nil {
			return 0, err
		}
	}
	return b.engine.Process(ctx, records)
}

// Parked returns what the engine has set aside.
func (b *Bench) Parked(ctx context.Context) ([]inspect.Parked, error) {
	if b.engine == nil {
		return nil, errors.New("listing parked records: the engine has not run yet")
	}
	return b.engine.Parked(ctx)
}

// Forget deletes the reader's checkpoints: the next Drain reads the stream from its beginning again.
func (b *Bench) Forget() { b.checkpoints.Checkpoints = newLeases() }

func newLeases() streamreader.Checkpoints {
	return streamreader.NewLeaseTable(dynamosim.New(dynamosim.Options{}), "leases")
}

// CrashAfter makes the engine's process die in the next Drain: its first
// writes, of that number, still take effect, and nothing that it does after them.
func (b *Bench) CrashAfter(writes int) { b.life.dieAfter(writes) }

// Usage is what was used in a while. Write units are DynamoDB's: one for each
// KB, rounded up, and two in a transaction.
type Usage struct {
	Application float64 // write units of the application
	Table       float64 // write units of the engine in the table
	State       float64 // write units of the engine in its state table
	Records     int     // stream records given to the engine, repeated ones too
}

// Plus returns the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Application + v.Application, u.Table + v.Table, u.State + v.State, u.Records + v.Records}
}

// Usage returns what was used since its last call.
func (b *Bench) Usage() Usage {
	now := b.sim.Usage()
	used := now.Sub(b.spent)
	u := Usage{
		Application: b.application,
		Table:       used.Tables[TableName].WriteUnits - b.application,
		State:       used.Tables[StateTableName].WriteUnits,
		Records:     int(b.records.Swap(0)),
	}
	b.spent, b.application = now, 0
	return u
}
