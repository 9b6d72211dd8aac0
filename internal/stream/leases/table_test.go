package leases

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

const testTable = "app-dynamill-leases"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testARN = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-01-01T00:00:00.000"

// leaseOf returns a shard's row.
func leaseOf(t *testing.T, store Store, shard string) Lease {
	t.Helper()
	rows, err := store.Load(context.Background())
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

// newTestTable returns an empty table of leases.
func newTestTable(t *testing.T) *Table {
	t.Helper()
	table := NewTable(dynamosim.New(dynamosim.Options{}), testTable)
	if _, err := table.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCheckpoints(t *testing.T) {
	ctx := t.Context()
	sim := dynamosim.New(dynamosim.Options{})
	first, second := NewTable(sim, testTable), NewTable(sim, testTable)
	if rows, err := first.Load(ctx); err != nil || len(rows) != 0 {
		t.Fatalf("Load of nothing: %v, %v", rows, err)
	}
	made := Lease{Shard: "shard", Stream: testARN, Checkpoint: TrimHorizon, Parent: "parent", Whole: true}
	lease, err := first.Create(ctx, made)
	if err != nil || !cmp.Equal(lease, made) {
		t.Fatalf("Create: %+v, %v", lease, err)
	}
	if _, err := first.Create(ctx, Lease{Shard: "older", Stream: "another", Checkpoint: "5"}); err != nil {
		t.Fatal(err)
	}
	again, err := second.Create(ctx, Lease{Shard: "shard", Stream: "other", Checkpoint: "77"})
	if err != nil || !cmp.Equal(again, made) {
		t.Errorf("Create of a row that exists returned %+v, %v; want the row in force", again, err)
	}
	claimed, err := first.Claim(ctx, lease, Worker{Name: "first"})
	if err != nil || claimed.Owner == "" || claimed.Counter != 1 || claimed.Switches != 1 {
		t.Fatalf("Claim: %+v, %v", claimed, err)
	}
	claimed.Checkpoint, claimed.Children = "41", []string{"left", "right"}
	saved, err := first.Save(ctx, claimed)
	if err != nil || saved.Counter != 2 || saved.Switches != 0 {
		t.Fatalf("Save: %+v, %v", saved, err)
	}
	if got := leaseOf(t, second, "shard"); !cmp.Equal(got, saved) {
		t.Errorf("row %+v, want %+v", got, saved)
	}
	stolen, err := second.Claim(ctx, saved, Worker{Name: "second"})
	if err != nil {
		t.Fatal(err)
	}
	saved.Checkpoint = "42"
	if _, err := first.Save(ctx, saved); !errors.Is(err, ErrLost) {
		t.Errorf("Save of a lease that another claimed: %v, want ErrLost", err)
	}
	if got := leaseOf(t, first, "shard"); got.Checkpoint != "41" || got.Counter != stolen.Counter {
		t.Errorf("row %+v after a Save that was refused", got)
	}
	if err := first.Delete(ctx, saved); !errors.Is(err, ErrLost) {
		t.Errorf("Delete of a lease that another claimed: %v, want ErrLost", err)
	}
	old, err := first.Create(ctx, Lease{Shard: "old", Stream: testARN, Checkpoint: ShardEnd})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Delete(ctx, old); err != nil {
		t.Fatal(err)
	}
	if rows, err := second.Load(ctx); err != nil || len(rows) != 2 {
		t.Errorf("after Delete: %v, %v; want the two other rows", rows, err)
	}
	if err := first.Delete(ctx, stolen); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Save(ctx, stolen); !errors.Is(err, ErrLost) {
		t.Errorf("Save of a row that is gone: %v, want ErrLost", err)
	}
}

// A lease is held, given up, and taken by another worker.
func TestHandover(t *testing.T) { handOver(t, newTestTable(t)) }

// TestHandoverAtAnEndpoint is TestHandover with the SDK's client.
func TestHandoverAtAnEndpoint(t *testing.T) {
	emulator.Each(t, func(t *testing.T, server emulator.Endpoint) {
		db := dynamodb.NewFromConfig(server.Config(t))
		table := fmt.Sprintf("leases-%d", time.Now().UnixNano())
		handOver(t, NewTable(db, table))
		whoWrites(t, NewTable(db, table))
		if _, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
	})
}

func handOver(t *testing.T, store Store) {
	ctx := t.Context()
	must := func(l Lease, err error) Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	lost := func(_ Lease, err error) {
		t.Helper()
		if !errors.Is(err, ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
	}
	if _, err := store.Load(ctx); err != nil {
		t.Fatal(err)
	}
	free := must(store.Create(ctx, Lease{Shard: "shard", Stream: testARN, Checkpoint: TrimHorizon}))
	held := must(store.Claim(ctx, free, Worker{Name: "old"}))
	lost(store.Claim(ctx, free, Worker{Name: "new"}))
	held.EmptyPolls = 7
	held = must(store.Renew(ctx, held))
	if held.EmptyPolls != 7 || held.Counter != 2 {
		t.Fatalf("renewed: %+v", held)
	}
	last := held
	last.Checkpoint = "41"
	released := must(store.Release(ctx, last))
	if released.Owner != "" || released.Run != "" || released.Term != 0 || released.EmptyPolls != 0 || released.Checkpoint != "41" {
		t.Fatalf("released: %+v", released)
	}
	held.Checkpoint = "42"
	lost(store.Save(ctx, held))
	lost(store.Renew(ctx, held))
	lost(store.Release(ctx, held))
	now := must(store.Claim(ctx, released, Worker{Name: "new"}))
	if now.Owner != "new" || now.Checkpoint != "41" || now.EmptyPolls != 0 || now.Switches != 1 {
		t.Fatalf("taken over: %+v", now)
	}
	lost(store.Claim(ctx, released, Worker{Name: "third"}))
}

func TestRowsOfStreamsSeekersAndShardsDiffer(t *testing.T) {
	for _, test := range []struct {
		row                     Lease
		stream, seeker, isShard bool
	}{
		{row: Lease{Shard: testARN, Stream: testARN}, stream: true},
		{row: Lease{Shard: SeekerKey(testARN, "w"), Stream: testARN}, seeker: true},
		{row: Lease{Shard: "shardId-1", Stream: testARN}, isShard: true},
		{row: Lease{Shard: "shardId-1"}, isShard: true},
	} {
		if r := test.row; r.OfStream() != test.stream || r.OfSeeker() != test.seeker || r.OfShard() != test.isShard {
			t.Errorf("%+v: of a stream %v, of a seeker %v, of a shard %v", r, r.OfStream(), r.OfSeeker(), r.OfShard())
		}
	}
}

func TestALeaseTableThatWasMadeAgainKnowsNoFormerHolders(t *testing.T) {
	ctx, sim := t.Context(), dynamosim.New(dynamosim.Options{})
	first, second := NewTable(sim, "leases"), NewTable(sim, "leases")
	claim := func(table *Table, worker string) Lease {
		if _, err := table.Load(ctx); err != nil {
			t.Fatal(err)
		}
		lease, err := table.Create(ctx, Lease{Shard: "shard", Stream: testARN, Checkpoint: TrimHorizon})
		if err == nil {
			lease, err = table.Claim(ctx, lease, Worker{Name: worker})
		}
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	sleeper := claim(first, "first")
	if _, err := sim.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("leases")}); err != nil {
		t.Fatal(err)
	}
	if now := claim(second, "second"); now.Counter != sleeper.Counter {
		t.Fatalf("counters %d and %d: want the same for this test", now.Counter, sleeper.Counter)
	}
	sleeper.Checkpoint = "41"
	if _, err := first.Save(ctx, sleeper); !errors.Is(err, ErrLost) {
		t.Errorf("Save of a lease in a former table: %v, want ErrLost", err)
	}
	if got := leaseOf(t, second, "shard"); got.Checkpoint != TrimHorizon {
		t.Errorf("checkpoint %s", got.Checkpoint)
	}
}

// The SDK repeats a call whose answer was lost; the row then has the counter
// that this process gave it.
func TestAWriteWhoseAnswerWasLostIsNotALostLease(t *testing.T) {
	lose := false
	lost := errors.New("connection reset")
	sim := dynamosim.New(dynamosim.Options{After: func(op string, _ any) error {
		if lose && op == "UpdateItem" {
			lose = false
			return lost
		}
		return nil
	}})
	table := NewTable(sim, testTable)
	ctx := t.Context()
	if _, err := table.Load(ctx); err != nil {
		t.Fatal(err)
	}
	lease, err := table.Create(ctx, Lease{Shard: "shard", Stream: testARN, Checkpoint: TrimHorizon})
	if err != nil {
		t.Fatal(err)
	}
	if lease, err = table.Claim(ctx, lease, Worker{Name: "worker"}); err != nil {
		t.Fatal(err)
	}
	lose = true
	lease.Checkpoint = "10"
	if _, err := table.Save(ctx, lease); !errors.Is(err, lost) {
		t.Fatalf("Save returned %v", err)
	}
	lease.Checkpoint = "11" // the reader has gone on meanwhile
	if lease, err = table.Save(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if got := leaseOf(t, table, "shard"); got.Checkpoint != "11" || got.Counter != lease.Counter {
		t.Errorf("row %+v, want checkpoint 11 and counter %d", got, lease.Counter)
	}
}

func TestLeaseRowsHaveTheKinesisClientLibrarysNames(t *testing.T) {
	sim := dynamosim.New(dynamosim.Options{})
	table := NewTable(sim, testTable)
	if _, err := table.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := table.Create(t.Context(), Lease{Shard: "shard", Stream: testARN, Checkpoint: TrimHorizon, Parent: "parent"})
	if err != nil {
		t.Fatal(err)
	}
	if lease, err = table.Claim(t.Context(), lease, Worker{Name: "worker"}); err != nil {
		t.Fatal(err)
	}
	lease.Checkpoint, lease.Children = ShardEnd, []string{"left", "right"}
	if lease, err = table.Save(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	out, err := sim.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(testTable), Key: map[string]ddb.AttributeValue{"leaseKey": text("shard")}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]ddb.AttributeValue{
		"leaseKey":                     text("shard"),
		"leaseOwner":                   text(lease.Owner),
		"leaseCounter":                 number(2),
		"checkpoint":                   text("SHARD_END"),
		"ownerSwitchesSinceCheckpoint": number(0),
		"parentShardId":                &ddb.AttributeValueMemberSS{Value: []string{"parent"}},
		"childShardIds":                &ddb.AttributeValueMemberSS{Value: []string{"left", "right"}},
		"streamName":                   text(testARN),
		"foundWhole":                   &ddb.AttributeValueMemberBOOL{Value: false},
	}
	for name, av := range want {
		if !cmp.Equal(out.Item[name], av, cmp.Exporter(func(reflect.Type) bool { return true })) {
			t.Errorf("%s is %#v, want %#v", name, out.Item[name], av)
		}
	}
	if len(out.Item) != len(want) {
		t.Errorf("%d attributes, want %d", len(out.Item), len(want))
	}
}

func TestALeaseRowThatSaysNothingIsRefused(t *testing.T) {
	for name, item := range map[string]map[string]ddb.AttributeValue{
		"no checkpoint":   {"leaseKey": text("shard"), "leaseCounter": number(1), "ownerSwitchesSinceCheckpoint": number(0)},
		"no leaseCounter": {"leaseKey": text("shard"), "checkpoint": text("5"), "ownerSwitchesSinceCheckpoint": number(0)},
		"leaseCounter as a text": {"leaseKey": text("shard"), "checkpoint": text("5"), "leaseCounter": text("1"),
			"ownerSwitchesSinceCheckpoint": number(0)},
	} {
		t.Run(name, func(t *testing.T) {
			sim := dynamosim.New(dynamosim.Options{})
			table := NewTable(sim, testTable)
			if _, err := table.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(testTable), Item: item}); err != nil {
				t.Fatal(err)
			}
			if _, err := table.Load(t.Context()); err == nil || !strings.Contains(err.Error(), `"shard"`) {
				t.Errorf("Load returned %v, want an error that names the row", err)
			}
		})
	}
}

func TestWriteToAnUnreadableRowIsNotALostLease(t *testing.T) {
	ctx := t.Context()
	table := newTestTable(t)
	lease, err := table.Create(ctx, Lease{Shard: "shard", Stream: testARN, Checkpoint: TrimHorizon})
	if err != nil {
		t.Fatal(err)
	}
	if lease, err = table.Claim(ctx, lease, Worker{Name: "first"}); err != nil {
		t.Fatal(err)
	}
	if _, err := table.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(testTable), Key: keyOf("shard"), UpdateExpression: aws.String("REMOVE checkpoint ADD leaseCounter :one"),
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": number(1)},
	}); err != nil {
		t.Fatal(err)
	}
	for doing, write := range map[string]func(context.Context, Lease) (Lease, error){"saving": table.Save, "evicting": table.Evict} {
		row, err := write(ctx, lease)
		if _, permanent := errors.AsType[*PermanentError](err); !permanent || errors.Is(err, ErrLost) || row.Shard != "shard" {
			t.Errorf("%s a row without a checkpoint returned %+v, %v; want the row as it was and a PermanentError", doing, row, err)
		}
	}
}

func TestLoadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := NewTable(tableThatIsNeverReady{dynamosim.New(dynamosim.Options{})}, testTable).Load(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Load returned %v", err)
	}
}

type tableThatIsNeverReady struct{ *dynamosim.Sim }

func (tableThatIsNeverReady) DescribeTable(context.Context, *dynamodb.DescribeTableInput,
	...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &ddb.TableDescription{TableStatus: ddb.TableStatusCreating}}, nil
}

// A person may correct the checkpoint of a row in DynamoDB's console, which leaves the counter alone.
func TestAClaimLeavesTheCheckpointAsItIs(t *testing.T) {
	sim, ctx := dynamosim.New(dynamosim.Options{}), t.Context()
	table := NewTable(sim, testTable)
	if _, err := table.Load(ctx); err != nil {
		t.Fatal(err)
	}
	scanned, err := table.Create(ctx, Lease{Shard: "shard", Stream: testARN, Checkpoint: "50"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(testTable), Key: map[string]ddb.AttributeValue{"leaseKey": text("shard")},
		UpdateExpression:          aws.String("SET checkpoint = :earlier"),
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":earlier": text("40")},
	}); err != nil {
		t.Fatal(err)
	}
	if claimed, err := table.Claim(ctx, scanned, Worker{Name: "worker"}); err != nil || claimed.Checkpoint != "40" {
		t.Errorf("claimed %+v, %v: want the checkpoint 40", claimed, err)
	}
}

func TestAProcessThatWasFrozenFindsTheLeaseTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frozen := false
		sim := dynamosim.New(dynamosim.Options{Before: func(op string, _ any) error {
			if op != "DescribeTable" || frozen {
				return nil
			}
			frozen = true
			time.Sleep(2 * tableCreateMax)
			return &ddb.ResourceNotFoundException{} // as of the time before it froze
		}})
		if _, err := NewTable(sim, testTable).Load(t.Context()); err != nil || !frozen {
			t.Errorf("loading leases: %v (frozen: %t)", err, frozen)
		}
	})
}

func TestACallerThatHadNoTimeForTheLeaseTableIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := dynamosim.New(dynamosim.Options{Before: func(op string, _ any) error {
			if op == "DescribeTable" {
				time.Sleep(2 * tableCreateMax)
				return &ddb.ResourceNotFoundException{}
			}
			return nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), tableCreateMax)
		defer cancel()
		if _, err := NewTable(sim, testTable).Load(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("loading leases: %v, want the end of the caller's time", err)
		}
	})
}
