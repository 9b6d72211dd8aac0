package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/pace"
)

const mirrorRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-list: { mirror: Membership, as: Member, attributes: [role, joinedAt] }
`

const (
	userPrefix  = "USER#"
	groupPrefix = "GROUP#"

	requestsMax = 25 // of a BatchWriteItem
)

// mirrored returns what a batch comes to: a put or a delete for each mirror item, after its last record.
func mirrored(records []streams.Record) []types.WriteRequest {
	last := map[string]types.WriteRequest{}
	for _, r := range records {
		user, group := text(r.Dynamodb.Keys[partitionKey]), text(r.Dynamodb.Keys[sortKey])
		if !strings.HasPrefix(user, userPrefix) || !strings.HasPrefix(group, groupPrefix) {
			continue
		}
		target := keyOf(group, user)
		if r.EventName == streams.OperationTypeRemove {
			last[user+keySeparator+group] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: target}}
			continue
		}
		for _, name := range []string{"role", "joinedAt"} {
			if value, ok := r.Dynamodb.NewImage[name].(*streams.AttributeValueMemberS); ok {
				target[name] = &types.AttributeValueMemberS{Value: value.Value}
			}
		}
		last[user+keySeparator+group] = types.WriteRequest{PutRequest: &types.PutRequest{Item: target}}
	}
	return slices.Collect(maps.Values(last))
}

// mirrorEach sends a PutItem or a DeleteItem for each mirror item.
func mirrorEach(ctx context.Context, client *dynamodb.Client, table string, records []streams.Record) error {
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, request := range mirrored(records) {
		group.Go(func() (err error) {
			if put := request.PutRequest; put != nil {
				_, err = client.PutItem(writing, &dynamodb.PutItemInput{TableName: &table, Item: put.Item})
			} else {
				_, err = client.DeleteItem(writing, &dynamodb.DeleteItemInput{TableName: &table, Key: request.DeleteRequest.Key})
			}
			return err
		})
	}
	return group.Wait()
}

// mirrorBatched sends a BatchWriteItem for each 25 mirror items.
func mirrorBatched(ctx context.Context, client *dynamodb.Client, table string, records []streams.Record) error {
	return writeItems(ctx, client, table, mirrored(records))
}

// writeItems writes in batches of 25, several at once.
func writeItems(ctx context.Context, client *dynamodb.Client, table string, requests []types.WriteRequest) error {
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for chunk := range slices.Chunk(requests, requestsMax) {
		group.Go(func() error { return writeBatch(writing, client, table, chunk) })
	}
	return group.Wait()
}

// writeBatch writes a batch, and again what the table did not take.
func writeBatch(ctx context.Context, client *dynamodb.Client, table string, batch []types.WriteRequest) error {
	for attempt := range attemptsMax {
		out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: batch}})
		if err != nil {
			return err
		}
		if batch = out.UnprocessedItems[table]; len(batch) == 0 {
			return nil
		}
		if err := pace.Sleep(ctx, attemptWait<<attempt); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d items were refused %d times", len(batch), attemptsMax)
}

const groupsOfMirrors = 20

// membership is the source of the i-th mirror item; target is that item's key.
func membership(i int) (source attributes, target string) {
	user, group := fmt.Sprintf("%s%08d", userPrefix, i), fmt.Sprintf("%s%04d", groupPrefix, i%groupsOfMirrors)
	return item(user, group, "role", "member", "joinedAt", "2026-01-31T12:00:00Z", "note", note), group + keySeparator + user
}

// mirroring is n memberships that are new.
func mirroring(n int) workload {
	w := workload{name: "mirror", unit: "source", n: n, rules: mirrorRules, attribute: "role", wanted: map[string]string{},
		contenders: []string{nameDynamill, "PutItem, 16 at once", "BatchWriteItem of 25"}}
	for i := range groupsOfMirrors { // an iterator at the end of an empty stream fails at DynamoDB Local
		w.before = append(w.before, item(fmt.Sprintf("%s%04d", groupPrefix, i), metadata, "name", "a group"))
	}
	for i := range n {
		source, target := membership(i)
		w.changes = append(w.changes, source)
		w.wanted[target] = "member"
	}
	return w
}
