package preview

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expiring answers with one description.
type expiring struct {
	description *ddb.TimeToLiveDescription
	err         error
}

func (e expiring) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput,
	...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: e.description}, e.err
}

func TestCheckTellsOfItemsThatNeverExpire(t *testing.T) {
	set := loaded(t, `version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${day}", sk: "POST#${postId}" } }
  Day:  { key: { pk: "DAY#${day}", sk: "POSTS" }, derived: true, expire: 90d, expire_attribute: ttl }
rules:
  posts: { count: Post, as: Day.posts }
`)
	by := func(attribute string, status ddb.TimeToLiveStatus) expiring {
		return expiring{description: &ddb.TimeToLiveDescription{AttributeName: aws.String(attribute), TimeToLiveStatus: status}}
	}
	for name, c := range map[string]struct {
		table expiring
		want  string // in the warning; "" if there is none
	}{
		"on":                {by("ttl", ddb.TimeToLiveStatusEnabled), ""},
		"being turned on":   {by("ttl", ddb.TimeToLiveStatusEnabling), ""},
		"off":               {expiring{}, "is off: they stay for ever"},
		"being turned off":  {by("ttl", ddb.TimeToLiveStatusDisabling), "AttributeName=ttl"},
		"another attribute": {by("expires", ddb.TimeToLiveStatusEnabled), "goes by expires: they stay for ever"},
		"denied":            {expiring{err: errors.New("AccessDeniedException")}, "is not known: AccessDeniedException"},
	} {
		warnings := unexpired(t.Context(), c.table, "app", set)
		text := ""
		for _, w := range warnings {
			text += w.Message + "; " + w.Hint
		}
		if len(warnings) > 1 || (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q", name, text)
		}
	}
	without := loaded(t, talliedRules)
	if warnings := unexpired(t.Context(), expiring{err: errors.New("not to be asked")}, "app", without); len(warnings) > 0 {
		t.Errorf("without `expire`: %+v", warnings)
	}
}
