package dynamosim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/sim/conformance"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

var (
	_ conformance.Tables  = (*dynamosim.Sim)(nil)
	_ conformance.Streams = (*dynamosim.Sim)(nil)
)

var errLost = errors.New("lost")

func addOne(k item) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{TableName: aws.String(table), Key: k, UpdateExpression: aws.String("ADD n :one"),
		ExpressionAttributeValues: item{":one": num(1)}}
}

func (w *world) wantN(pk, sk, n string) {
	w.Helper()
	got, _ := w.get(pk, sk)["n"].(*types.AttributeValueMemberN)
	if got == nil || got.Value != n {
		w.Errorf("got n %v, want %s", w.get(pk, sk)["n"], n)
	}
}

func TestBeforeFailsACallWithoutEffectAndAfterWithIt(t *testing.T) {
	var before, after error
	w := newWorld(t, dynamosim.Options{
		Before: func(op string, input any) error {
			if _, ok := input.(*dynamodb.UpdateItemInput); ok && op == "UpdateItem" {
				return before
			}
			return nil
		},
		After: func(op string, _ any) error {
			if op == "UpdateItem" {
				return after
			}
			return nil
		},
	})
	for _, c := range []struct {
		before, after error
		n             string
	}{{nil, nil, "1"}, {errLost, nil, "1"}, {nil, errLost, "2"}, {nil, nil, "3"}} {
		before, after = c.before, c.after
		_, err := w.UpdateItem(t.Context(), addOne(key("a", "a")))
		if errors.Is(err, errLost) != (before != nil || after != nil) {
			t.Errorf("before %v, after %v: got %v", before, after, err)
		}
		w.wantN("a", "a", c.n)
	}
}

func TestAHookMayUseTheSim(t *testing.T) {
	var w *world
	busy := false
	w = newWorld(t, dynamosim.Options{Before: func(op string, _ any) error {
		if op != "UpdateItem" || busy {
			return nil
		}
		busy = true // another writer is faster
		_, err := w.UpdateItem(context.Background(), addOne(key("a", "a")))
		return err
	}})
	_, err := w.UpdateItem(t.Context(), addOne(key("a", "a")))
	w.must(err)
	w.wantN("a", "a", "2")
}

func TestACancelledContextHasNoEffect(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.UpdateItem(ctx, addOne(key("a", "a"))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
	if got := w.get("a", "a"); got != nil {
		t.Errorf("got %v, want no item", got)
	}
}

func TestAHeldItemConflicts(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	release, err := w.Hold(table, key("a", "held"))
	w.must(err)
	if _, err := w.UpdateItem(t.Context(), addOne(key("a", "held"))); !isError[*types.TransactionConflictException](err) {
		t.Errorf("got %v from a plain write", err)
	}
	transaction := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String(table), Item: key("a", "free")}},
		{Put: &types.Put{TableName: aws.String(table), Item: key("a", "held")}},
	}}
	_, err = w.TransactWriteItems(t.Context(), transaction)
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || *cancelled.CancellationReasons[0].Code != "None" ||
		*cancelled.CancellationReasons[1].Code != "TransactionConflict" {
		t.Fatalf("got %v from a transaction", err)
	}
	out, err := w.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: {
		{PutRequest: &types.PutRequest{Item: key("a", "held")}}, {PutRequest: &types.PutRequest{Item: key("a", "other")}}}}})
	w.must(err)
	if len(out.UnprocessedItems[table]) != 1 || w.get("a", "other") == nil {
		t.Errorf("got unprocessed %v from a batch", out.UnprocessedItems)
	}
	release()
	release() // once more does no harm
	_, err = w.TransactWriteItems(t.Context(), transaction)
	w.must(err)
}

func TestABatchMayBeWorkedOffInPart(t *testing.T) {
	w := newWorld(t, dynamosim.Options{BatchBound: func(_ string, n int) int { return n / 2 }})
	var writes []types.WriteRequest
	var keys []map[string]types.AttributeValue
	for i := range 4 {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key("a", fmt.Sprint(i))}})
		keys = append(keys, key("a", fmt.Sprint(i)))
	}
	wrote, err := w.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: writes}})
	w.must(err)
	read, err := w.BatchGetItem(t.Context(),
		&dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys}}})
	w.must(err)
	if len(wrote.UnprocessedItems[table]) != 2 || len(read.Responses[table]) != 2 || len(read.UnprocessedKeys[table].Keys) != 2 {
		t.Errorf("got %d unwritten, %d read, %d unread; want 2 each", len(wrote.UnprocessedItems[table]), len(read.Responses[table]),
			len(read.UnprocessedKeys[table].Keys))
	}
}

func TestATokenIsForgottenAfterTenMinutes(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	u := addOne(key("a", "a"))
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("token"), TransactItems: []types.TransactWriteItem{
		{Update: &types.Update{TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
			ExpressionAttributeValues: u.ExpressionAttributeValues}}}}
	for _, want := range []string{"1", "1", "2"} {
		_, err := w.TransactWriteItems(t.Context(), in)
		w.must(err)
		w.wantN("a", "a", want)
		w.now = w.now.Add(6 * time.Minute)
	}
}

func TestUsageCountsRequestsAndUnits(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	w.put("a", "a", 1)
	before := w.Usage()
	w.get("a", "a") // 0.5
	_, err := w.UpdateItem(t.Context(), addOne(key("a", "a")))
	w.must(err) // 1
	failing := addOne(key("a", "a"))
	failing.ConditionExpression = aws.String("attribute_not_exists(pk)")
	if _, err := w.UpdateItem(t.Context(), failing); err == nil { // 1 although it fails
		t.Fatal("the condition held")
	}
	_, err = w.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		// 2
		{Put: &types.Put{TableName: aws.String(table), Item: key("a", "b")}},
		// 2
		{ConditionCheck: &types.ConditionCheck{TableName: aws.String(table), Key: key("a", "a"),
			ConditionExpression: aws.String("attribute_exists(pk)")}},
	}})
	w.must(err)
	want := dynamosim.Usage{
		Requests:   map[string]int{"GetItem": 1, "UpdateItem": 2, "TransactWriteItems": 1},
		WriteUnits: 6, ReadUnits: 0.5, Tables: map[string]dynamosim.TableUsage{table: {WriteUnits: 6, ReadUnits: 0.5}},
	}
	if diff := cmp.Diff(want, w.Usage().Sub(before)); diff != "" {
		t.Errorf("usage differs (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotSupportedIsRefusedByName(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	_, err := w.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String(table), IndexName: aws.String("byName"),
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": str("a")}})
	if !isInvalid(err) {
		t.Errorf("got %v for a query of an index", err)
	}
	_, err = w.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String(table), Key: key("a", "a"),
		AttributeUpdates: map[string]types.AttributeValueUpdate{}})
	if !isInvalid(err) {
		t.Errorf("got %v for AttributeUpdates", err)
	}
}

func TestItemsAreNotSharedWithCallers(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	given := item{"pk": str("a"), "sk": str("a"), "n": num(1), "m": &types.AttributeValueMemberM{Value: item{"x": str("kept")}}}
	_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: given})
	w.must(err)
	given["m"].(*types.AttributeValueMemberM).Value["x"] = str("spoilt")
	w.get("a", "a")["m"].(*types.AttributeValueMemberM).Value["x"] = str("spoilt")
	if got := w.get("a", "a")["m"].(*types.AttributeValueMemberM).Value["x"].(*types.AttributeValueMemberS).Value; got != "kept" {
		t.Errorf("the stored item is %s", got)
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	w := newWorld(t, dynamosim.Options{})
	const writers, writes = 8, 50
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range writes {
				if _, err := w.UpdateItem(t.Context(), addOne(key("a", "a"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	w.wantN("a", "a", fmt.Sprint(writers*writes))
	if records, _ := w.read(*w.shards()[0].ShardId); len(records) != writers*writes {
		t.Errorf("got %d records, want %d", len(records), writers*writes)
	}
}

func TestTheSameCallsGiveTheSameReplies(t *testing.T) {
	history := func(seed uint64) string {
		w := newWorld(t, dynamosim.Options{Seed: seed, Shards: 2})
		for i := range 20 {
			w.put(fmt.Sprint(i), "a", i)
		}
		log := ""
		for _, sh := range w.shards() {
			records, _ := w.read(*sh.ShardId)
			for _, r := range records {
				log += *sh.ShardId + *r.EventID + *r.Dynamodb.SequenceNumber + "\n"
			}
		}
		return log
	}
	if once, again := history(1), history(1); once != again {
		t.Error("one seed gave two histories")
	}
	if history(1) == history(2) {
		t.Error("two seeds gave one history")
	}
}
