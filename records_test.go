package dynamill

import (
	"fmt"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// groupRules are those of every test here.
const groupRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Group:  { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-count: { count: Member, as: Group.memberCount }
`

func keyOf(pk, sk string) map[string]ddb.AttributeValue {
	return map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: pk}, "sk": &ddb.AttributeValueMemberS{Value: sk}}
}

// joined is the JSON of the stream's record of a new member.
func joined(group, user, sequence string) string {
	return fmt.Sprintf(`{"eventID":"e%[3]s","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
"dynamodb":{"ApproximateCreationDateTime":1.7935272E9,"Keys":{"pk":{"S":"GROUP#%[1]s"},"sk":{"S":"USER#%[2]s"}},
"NewImage":{"pk":{"S":"GROUP#%[1]s"},"sk":{"S":"USER#%[2]s"},"note":{"S":"x"}},"SequenceNumber":"%[3]s","StreamViewType":"NEW_AND_OLD_IMAGES"},
"eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/app/stream/2026-01-01T00:00:00.000"}`, group, user, sequence)
}

func event(records ...string) string { return `{"Records":[` + strings.Join(records, ",") + `]}` }
