package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/pace"
)

const countRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Customer: { key: { pk: "CUSTOMER#${customerId}", sk: PROFILE } }
  Order:    { key: { pk: "CUSTOMER#${customerId}", sk: "ORDER#${orderId}" } }
rules:
  order-count: { count: Order, as: Customer.orderCount }
`

const (
	profile     = "PROFILE"
	orderPrefix = "ORDER#"

	atOnce       = 16 // requests of a handler under way
	conflictsMax = 20 // attempts of a transaction
	conflictWait = 20 * time.Millisecond
	claimLife    = 48 * time.Hour // longer than the stream keeps a record
	claimsSuffix = "-claims"
)

// change says by how much a record changes its customer's count.
func change(r streams.Record) int {
	if !strings.HasPrefix(text(r.Dynamodb.Keys[sortKey]), orderPrefix) {
		return 0
	}
	switch r.EventName {
	case streams.OperationTypeInsert:
		return 1
	case streams.OperationTypeRemove:
		return -1
	}
	return 0
}

// add raises a customer's count.
func add(table, customer string, by int) *types.Update {
	return &types.Update{
		TableName: &table, Key: keyOf(customer, profile), UpdateExpression: aws.String("ADD orderCount :by"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": number(by)},
	}
}

func update(ctx context.Context, client *dynamodb.Client, u *types.Update) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
		ExpressionAttributeValues: u.ExpressionAttributeValues,
	})
	return err
}

// countBare sends an ADD for each record.
func countBare(ctx context.Context, client *dynamodb.Client, table string, records []streams.Record) error {
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, r := range records {
		if by := change(r); by != 0 {
			group.Go(func() error { return update(writing, client, add(table, text(r.Dynamodb.Keys[partitionKey]), by)) })
		}
	}
	return group.Wait()
}

// countBatched adds up each batch, and sends an ADD for each customer in it.
func countBatched(ctx context.Context, client *dynamodb.Client, table string, records []streams.Record) error {
	sums := map[string]int{}
	for _, r := range records {
		sums[text(r.Dynamodb.Keys[partitionKey])] += change(r)
	}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for customer, by := range sums {
		if by != 0 {
			group.Go(func() error { return update(writing, client, add(table, customer, by)) })
		}
	}
	return group.Wait()
}

// countClaimed claims each record's id in the transaction that counts it, so that no record counts twice.
func countClaimed(ctx context.Context, client *dynamodb.Client, table string, records []streams.Record) error {
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, r := range records {
		if by := change(r); by != 0 {
			group.Go(func() error {
				claim := &types.Put{
					TableName: aws.String(table + claimsSuffix), ConditionExpression: aws.String("attribute_not_exists(pk)"),
					Item: keyOf("EVENT#"+aws.ToString(r.EventID), "CLAIM"),
				}
				claim.Item["expires"] = number(int(time.Now().Add(claimLife).Unix()))
				return claimed(writing, client, claim, add(table, text(r.Dynamodb.Keys[partitionKey]), by))
			})
		}
	}
	return group.Wait()
}

// claimed writes a claim and an update together, unless the claim is there already.
func claimed(ctx context.Context, client *dynamodb.Client, claim *types.Put, change *types.Update) error {
	for attempt := range conflictsMax {
		_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: claim}, {Update: change}},
		})
		var cancelled *types.TransactionCanceledException
		if !errors.As(err, &cancelled) {
			return err
		}
		if aws.ToString(cancelled.CancellationReasons[0].Code) == "ConditionalCheckFailed" {
			return nil // it was counted before
		}
		if err := pace.Sleep(ctx, time.Duration(rand.Int64N(int64(conflictWait)*int64(attempt+1)))); err != nil {
			return err
		}
	}
	return fmt.Errorf("a transaction met conflicts %d times", conflictsMax)
}

// counting is n orders of new ids, spread over customers that have none.
func counting(n, customers int) workload {
	w := workload{name: "count", unit: "record", n: n, rules: countRules, attribute: "orderCount", wanted: map[string]string{},
		contenders: []string{nameDynamill, "bare ADD, 16 at once", "ADD of each batch's sums", "claim and ADD in a transaction"}}
	counts := make([]int, customers)
	for i := range n {
		customer := fmt.Sprintf("CUSTOMER#%05d", i%customers)
		counts[i%customers]++
		w.changes = append(w.changes, item(customer, fmt.Sprintf("%s%08d", orderPrefix, i), "status", "open", "note", note))
	}
	for i, count := range counts {
		customer := fmt.Sprintf("CUSTOMER#%05d", i)
		w.before = append(w.before, item(customer, profile, "name", "a customer"))
		w.wanted[customer+keySeparator+profile] = strconv.Itoa(count)
	}
	return w
}
