package preview

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/rules"
)

// expiryClient describes how a table deletes expired items.
type expiryClient interface {
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput,
		...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// unexpired warns of entities with `expire` whose items stay for ever, because the table's time to live is off or goes by another
// attribute.
func unexpired(ctx context.Context, client expiryClient, table string, set *rules.Set) (warnings []foundProblem) {
	var described *dynamodb.DescribeTimeToLiveOutput
	warn := func(hint, message string, args ...any) {
		warnings = append(warnings, foundProblem{Code: "table.ttl", Message: fmt.Sprintf(message, args...), Hint: hint})
	}
	for _, e := range set.Entities {
		if e.Expire == 0 {
			continue
		}
		if described == nil {
			var err error
			if described, err = client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table}); err != nil {
				warn("allow dynamodb:DescribeTimeToLive on the table, or run the check again",
					"whether the table deletes items of %s when they expire is not known: %s", e.Name, err)
				return warnings
			}
		}
		switch now := expiryAttribute(described.TimeToLiveDescription); now {
		case e.ExpireAttribute:
		case "":
			warn(fmt.Sprintf("turn it on: aws dynamodb update-time-to-live --table-name %s --time-to-live-specification "+
				"Enabled=true,AttributeName=%s", table, e.ExpireAttribute),
				"items of %s expire by %s, and the table's time to live is off: they stay for ever", e.Name, e.ExpireAttribute)
		default:
			warn("name the table's attribute: expire_attribute: "+now,
				"items of %s expire by %s, and the table's time to live goes by %s: they stay for ever", e.Name, e.ExpireAttribute, now)
		}
	}
	return warnings
}

// expiryAttribute is the attribute by which a table deletes expired items; "" if it deletes none.
func expiryAttribute(d *ddb.TimeToLiveDescription) string {
	if d == nil || d.TimeToLiveStatus != ddb.TimeToLiveStatusEnabled && d.TimeToLiveStatus != ddb.TimeToLiveStatusEnabling {
		return ""
	}
	return aws.ToString(d.AttributeName)
}
