package preview

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// item is an item that has nothing but its keys.
func item(pk, sk string) change.Item {
	return change.Item{"pk": change.String(pk), "sk": change.String(sk)}
}

func keyOf(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk}}
}

func loaded(t *testing.T, text string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(text), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
