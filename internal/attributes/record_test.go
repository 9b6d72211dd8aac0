package attributes

import (
	"testing"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

func TestOnlyTimeToLiveExpires(t *testing.T) {
	for _, test := range []struct {
		kind, principal string
		want            bool
	}{
		{"Service", "dynamodb.amazonaws.com", true},
		{"service", "DynamoDB.amazonaws.com", true},
		{"Service", "backup.amazonaws.com", false},
		{"User", "dynamodb.amazonaws.com", false},
	} {
		if got := expired(&streams.Identity{Type: &test.kind, PrincipalId: &test.principal}); got != test.want {
			t.Errorf("%s %s: %t, want %t", test.kind, test.principal, got, test.want)
		}
	}
	if expired(nil) || expired(&streams.Identity{}) {
		t.Error("a deletion by nobody in particular counts as expired")
	}
}
