package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/pace"
)

const copyEntities = `
version: 1
table: { keys: [pk, sk] }
entities:
  Group:  { key: { pk: "GROUP#${groupId}", sk: METADATA } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
`

// The members of a group lie in its collection. The second rule is joined by an attribute, so that dynamill
// cannot know that and keeps a reference for each.
const (
	copyRules      = copyEntities + "  group-name: { copy: name as groupName, from: Group, to: Member }\n"
	referenceRules = copyEntities + "  group-name: { copy: name as groupName, from: Group, to: Member, by: { groupId: ofGroup } }\n"
)

const (
	metadata     = "METADATA"
	memberPrefix = "USER#"

	statementsMax = 25 // of a BatchExecuteStatement
	attemptsMax   = 10
	attemptWait   = 50 * time.Millisecond
)

type attributes = map[string]types.AttributeValue

// memberWriter writes a group's name to members, given by their keys.
type memberWriter func(ctx context.Context, client *dynamodb.Client, table, name string, members []attributes) error

// copying hands a group's new name to its members, and to new members the name of their group.
func copying(write memberWriter) handler {
	return func(ctx context.Context, client *dynamodb.Client, table string, records []streams.Record) error {
		joined := map[string][]attributes{} // new members by group
		for _, r := range records {
			group, sort := text(r.Dynamodb.Keys[partitionKey]), text(r.Dynamodb.Keys[sortKey])
			name := text(r.Dynamodb.NewImage["name"])
			switch {
			case sort == metadata && name != "" && name != text(r.Dynamodb.OldImage["name"]):
				if err := rename(ctx, client, table, group, name, write); err != nil {
					return err
				}
			case strings.HasPrefix(sort, memberPrefix) && r.EventName == streams.OperationTypeInsert:
				joined[group] = append(joined[group], keyOf(group, sort))
			}
		}
		for group, members := range joined {
			got, err := client.GetItem(ctx, &dynamodb.GetItemInput{
				TableName: &table, Key: keyOf(group, metadata), ConsistentRead: aws.Bool(true),
			})
			if err != nil {
				return fmt.Errorf("reading group %s: %w", group, err)
			}
			if name, ok := got.Item["name"].(*types.AttributeValueMemberS); ok {
				if err := write(ctx, client, table, name.Value, members); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// rename writes to all members of a group, page after page; the next page is read meanwhile.
func rename(ctx context.Context, client *dynamodb.Client, table, group, name string, write memberWriter) error {
	writes, writing := errgroup.WithContext(ctx)
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: aws.String("pk = :group and begins_with(sk, :member)"),
		ProjectionExpression: aws.String("pk, sk"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: attributes{
			":group": &types.AttributeValueMemberS{Value: group}, ":member": &types.AttributeValueMemberS{Value: memberPrefix},
		},
	})
	last := make(chan struct{})
	close(last)
	for pages.HasMorePages() && writing.Err() == nil {
		page, err := pages.NextPage(writing)
		if err != nil {
			return errors.Join(fmt.Errorf("reading the members of %s: %w", group, err), writes.Wait())
		}
		before, done := last, make(chan struct{})
		last = done
		writes.Go(func() error {
			defer close(done)
			<-before // the pages are written one after the other
			return write(writing, client, table, name, page.Items)
		})
	}
	return writes.Wait()
}

// writeEach sends an UpdateItem for each member.
func writeEach(ctx context.Context, client *dynamodb.Client, table, name string, members []attributes) error {
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, member := range members {
		group.Go(func() error {
			err := update(writing, client, &types.Update{
				TableName: &table, Key: member,
				UpdateExpression: aws.String("SET groupName = :name"), ConditionExpression: aws.String("attribute_exists(pk)"),
				ExpressionAttributeValues: attributes{":name": &types.AttributeValueMemberS{Value: name}},
			})
			var gone *types.ConditionalCheckFailedException
			if errors.As(err, &gone) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// writeStatements sends a BatchExecuteStatement for each 25 members.
func writeStatements(ctx context.Context, client *dynamodb.Client, table, name string, members []attributes) error {
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	text := fmt.Sprintf(`UPDATE "%s" SET "groupName" = ? WHERE "pk" = ? AND "sk" = ?`, table)
	for chunk := range slices.Chunk(members, statementsMax) {
		var statements []types.BatchStatementRequest
		for _, member := range chunk {
			statements = append(statements, types.BatchStatementRequest{
				Statement:  &text,
				Parameters: []types.AttributeValue{&types.AttributeValueMemberS{Value: name}, member[partitionKey], member[sortKey]},
			})
		}
		group.Go(func() error { return execute(writing, client, statements) })
	}
	return group.Wait()
}

// execute sends statements, and again those that were refused for a while.
func execute(ctx context.Context, client *dynamodb.Client, statements []types.BatchStatementRequest) error {
	for attempt := range attemptsMax {
		out, err := client.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: statements})
		if err != nil {
			return err
		}
		var again []types.BatchStatementRequest
		for i, response := range out.Responses {
			if response.Error == nil {
				continue
			}
			switch response.Error.Code {
			case types.BatchStatementErrorCodeEnumConditionalCheckFailed:
				// the member is gone
			case types.BatchStatementErrorCodeEnumThrottlingError, types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
				types.BatchStatementErrorCodeEnumRequestLimitExceeded, types.BatchStatementErrorCodeEnumTransactionConflict,
				types.BatchStatementErrorCodeEnumInternalServerError:
				again = append(again, statements[i])
			default:
				return fmt.Errorf("a statement failed: %s: %s", response.Error.Code, aws.ToString(response.Error.Message))
			}
		}
		if statements = again; len(statements) == 0 {
			return nil
		}
		if err := pace.Sleep(ctx, attemptWait<<attempt); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d statements were refused %d times", len(statements), attemptsMax)
}

const (
	groupID  = "g1"
	groupKey = "GROUP#" + groupID
)

// copies is a group with n members, with the contenders for both of its workloads.
func copies(name string, n int) workload {
	return workload{name: name, unit: "child", n: n, rules: copyRules, attribute: "groupName", wanted: map[string]string{},
		contenders: []string{nameDynamill, nameReferences, "UpdateItem, 16 at once", "BatchExecuteStatement of 25"}}
}

func member(i int, more ...string) map[string]types.AttributeValue {
	return item(groupKey, memberKey(i), append([]string{"ofGroup", groupID, "role", "member", "note", note}, more...)...)
}

func memberKey(i int) string { return fmt.Sprintf("%s%08d", memberPrefix, i) }

// renaming changes the name of a group with n members, which have its former name.
func renaming(n int) workload {
	w := copies("rename", n)
	w.before = append(w.before, item(groupKey, metadata, "name", "the former name"))
	for i := range n {
		w.before = append(w.before, member(i, "groupName", "the former name"))
		w.wanted[groupKey+keySeparator+memberKey(i)] = "the new name"
	}
	w.changes = append(w.changes, item(groupKey, metadata, "name", "the new name"))
	return w
}

// filling adds n members to a group, which do not have its name yet.
func filling(n int) workload {
	w := copies("fill", n)
	w.before = append(w.before, item(groupKey, metadata, "name", "the name"))
	for i := range n {
		w.changes = append(w.changes, member(i))
		w.wanted[groupKey+keySeparator+memberKey(i)] = "the name"
	}
	return w
}
