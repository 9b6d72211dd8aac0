package dynamosim_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

func TestOnlyConsistentReadsSeeTheLastChange(t *testing.T) {
	w := newWorld(t, dynamosim.Options{Stale: func(string) bool { return true }})
	w.put("a", "changed", 1)
	w.put("a", "changed", 2)
	w.put("a", "new", 3)
	w.put("a", "deleted", 4)
	_, err := w.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key("a", "deleted")})
	w.must(err)
	for _, c := range []struct {
		sk            string
		stale, actual string // "" for no item
	}{{"changed", "1", "2"}, {"new", "", "3"}, {"deleted", "4", ""}} {
		for consistent, want := range map[bool]string{false: c.stale, true: c.actual} {
			out, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key("a", c.sk),
				ConsistentRead: &consistent})
			w.must(err)
			got := ""
			if n, ok := out.Item["n"].(*types.AttributeValueMemberN); ok {
				got = n.Value
			}
			if got != want {
				t.Errorf("%s, consistent %t: got %q, want %q", c.sk, consistent, got, want)
			}
		}
	}
	for consistent, want := range map[bool]int32{false: 1, true: 2} {
		query, err := w.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String(table), KeyConditionExpression: aws.String("pk = :p"),
			ExpressionAttributeValues: item{":p": str("a")}, ConsistentRead: &consistent})
		w.must(err)
		scan, err := w.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: &consistent})
		w.must(err)
		if query.Count != want || scan.Count != want {
			t.Errorf("consistent %t: got %d by query and %d by scan, want %d", consistent, query.Count, scan.Count, want)
		}
	}
}
