package adversary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/attributes"
)

// describe says in one line what a request does: operation, table and key, and
// for a write what it writes and on which condition.
func describe(op string, input any) string {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		return op + " " + place(in.TableName, in.Key)
	case *dynamodb.PutItemInput:
		return op + " " + aws.ToString(in.TableName) + " " + item(in.Item) + condition(in.ConditionExpression, in.ExpressionAttributeNames,
			in.ExpressionAttributeValues)
	case *dynamodb.UpdateItemInput:
		return op + " " + place(in.TableName, in.Key) + " " +
			spelled(in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues) +
			condition(in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	case *dynamodb.DeleteItemInput:
		return op + " " + place(in.TableName, in.Key) + condition(in.ConditionExpression, in.ExpressionAttributeNames,
			in.ExpressionAttributeValues)
	case *dynamodb.QueryInput:
		return op + " " + aws.ToString(in.TableName) + " " + spelled(in.KeyConditionExpression, in.ExpressionAttributeNames,
			in.ExpressionAttributeValues)
	case *dynamodb.ScanInput:
		text := op + " " + aws.ToString(in.TableName) + " after " + item(in.ExclusiveStartKey)
		if in.TotalSegments != nil {
			text += fmt.Sprintf(" segment %d of %d", *in.Segment, *in.TotalSegments)
		}
		return text
	case *dynamodb.BatchGetItemInput:
		return op + " " + strings.Join(wanted(in.RequestItems), ", ")
	case *dynamodb.TransactWriteItemsInput:
		var parts []string
		for _, w := range in.TransactItems {
			parts = append(parts, "\n      "+describePart(w))
		}
		return op + strings.Join(parts, "")
	case *dynamodb.BatchExecuteStatementInput:
		var parts []string
		for _, st := range in.Statements {
			parts = append(parts, "\n      "+statement(st))
		}
		return op + strings.Join(parts, "")
	case *dynamodbstreams.GetShardIteratorInput:
		return fmt.Sprintf("%s %s %s %s", op, aws.ToString(in.ShardId), in.ShardIteratorType, aws.ToString(in.SequenceNumber))
	case *dynamodbstreams.GetRecordsInput:
		return op + " " + aws.ToString(in.ShardIterator)
	case fmt.Stringer:
		return op + " " + in.String()
	}
	return op
}

func describePart(w ddb.TransactWriteItem) string {
	switch {
	case w.Put != nil:
		return "put " + aws.ToString(w.Put.TableName) + " " + item(w.Put.Item) +
			condition(w.Put.ConditionExpression, w.Put.ExpressionAttributeNames, w.Put.ExpressionAttributeValues)
	case w.Update != nil:
		u := w.Update
		return "update " + place(u.TableName, u.Key) + " " + spelled(u.UpdateExpression, u.ExpressionAttributeNames,
			u.ExpressionAttributeValues) +
			condition(u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues)
	case w.Delete != nil:
		return "delete " + place(w.Delete.TableName, w.Delete.Key) +
			condition(w.Delete.ConditionExpression, w.Delete.ExpressionAttributeNames, w.Delete.ExpressionAttributeValues)
	case w.ConditionCheck != nil:
		c := w.ConditionCheck
		return "check " + place(c.TableName, c.Key) + condition(c.ConditionExpression, c.ExpressionAttributeNames, c.ExpressionAttributeValues)
	}
	return "nothing"
}

// statement is a statement with its parameters in their places.
func statement(st ddb.BatchStatementRequest) string {
	text := aws.ToString(st.Statement)
	for _, p := range st.Parameters {
		text = strings.Replace(text, "?", value(p), 1)
	}
	return text
}

func wanted(requests map[string]ddb.KeysAndAttributes) []string {
	var all []string
	for table, keys := range requests {
		for _, k := range keys.Keys {
			all = append(all, place(&table, k))
		}
	}
	slices.Sort(all)
	return all
}

func place(table *string, key map[string]ddb.AttributeValue) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, attributes.FromTable(key[name]).Text())
	}
	return aws.ToString(table) + "(" + strings.Join(parts, "/") + ")"
}

func item(it map[string]ddb.AttributeValue) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(it)) {
		if name != "parking" { // drawn at random: calls are told apart, and put in order, by their texts
			parts = append(parts, name+"="+value(it[name]))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func value(v ddb.AttributeValue) string {
	switch v := v.(type) {
	case *ddb.AttributeValueMemberM:
		return item(v.Value)
	case *ddb.AttributeValueMemberSS:
		return fmt.Sprint(v.Value)
	case *ddb.AttributeValueMemberNULL:
		return "null"
	}
	return attributes.FromTable(v).Text()
}

func condition(text *string, names map[string]string, values map[string]ddb.AttributeValue) string {
	if text == nil {
		return ""
	}
	return " IF " + spelled(text, names, values)
}

// spelled is an expression with its placeholders filled in, longest first, for one may begin like another.
func spelled(text *string, names map[string]string, values map[string]ddb.AttributeValue) string {
	s := aws.ToString(text)
	placeholders := slices.Collect(maps.Keys(names))
	for p := range values {
		placeholders = append(placeholders, p)
	}
	slices.SortFunc(placeholders, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, p := range placeholders {
		if name, ok := names[p]; ok {
			s = strings.ReplaceAll(s, p, name)
		} else {
			s = strings.ReplaceAll(s, p, value(values[p]))
		}
	}
	return s
}
