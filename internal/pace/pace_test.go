package pace_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const commentRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comment-count: { count: Comment, as: Post.commentCount }
`

var errTimeUp = errors.New("the time is up")

// countingTable is a simulated table whose comments are counted, and what opens an engine on it with a budget.
func countingTable(t *testing.T) (*dynamosim.Sim, func(budget int) projections.Config) {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(commentRules), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	sim := dynamosim.New(dynamosim.Options{})
	_, err = sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sim, func(budget int) projections.Config {
		return projections.Config{Client: sim, Table: "app", Rules: set, Budget: budget}
	}
}

// comments puts n comments on posts, and returns the records of it.
func comments(t *testing.T, sim *dynamosim.Sim, n, posts int) []change.Record {
	t.Helper()
	records := make([]change.Record, n)
	for i := range records {
		it := change.Item{"pk": change.String(fmt.Sprintf("POST#%d", i%posts)), "sk": change.String(fmt.Sprintf("COMMENT#%d", i))}
		if _, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"),
			Item: attributes.ItemToTable(it)}); err != nil {
			t.Fatal(err)
		}
		position, err := change.NewPosition("2026-01-01T00:00:00.000", fmt.Sprint(1000+i))
		if err != nil {
			t.Fatal(err)
		}
		records[i] = change.Record{Key: change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()}, Position: position, New: it,
			Created: time.Now()}
	}
	return records
}

func TestWithinNoSecondTheRateIsExceededByMoreThanABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, burst = 50, 5 // a tenth of a second's units
		limiter := pace.New(float64(rate))
		began := time.Now()
		perSecond := map[int]int{}
		for range 400 { // each one unit, and one more to be paid behind it
			if err := limiter.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			perSecond[int(time.Since(began)/time.Second)] += 2
			limiter.Pay(1)
		}
		for second, units := range perSecond {
			if units > rate+burst+2 {
				t.Errorf("in second %d, %d units were used, want at most %d", second, units, rate+burst+2)
			}
		}
		if len(perSecond) < 15 {
			t.Errorf("800 units took %d seconds, want 16", len(perSecond))
		}
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := pace.New(1)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTimeUp)
		defer cancel()
		began := time.Now()
		if err := limiter.Wait(ctx, 3600); !errors.Is(err, errTimeUp) || time.Since(began) != time.Minute {
			t.Errorf("%v after %s, want the context's cause after a minute", err, time.Since(began))
		}
	})
}
