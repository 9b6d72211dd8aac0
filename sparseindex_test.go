package dynamill_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/dynamilltest"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

const sparseRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
rules:
  published: { set: { GSI1PK: "STATUS#${status}", GSI1SK: "${createdAt}" }, of: Post, where: status == "published" }
`

// blog is a table of posts, with an index that holds those that are published.
type blog struct {
	*testing.T
	cfg    aws.Config
	client *dynamodb.Client
}

func newBlog(t *testing.T, posts int) *blog {
	cfg, err := dynamilltest.New("elsewhere", "pk", "")
	if err != nil {
		t.Fatal(err)
	}
	b := &blog{t, cfg, dynamodb.NewFromConfig(cfg)}
	key := func(name string, role types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	in := &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{key("pk", types.KeyTypeHash), key("sk", types.KeyTypeRange)},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("GSI1"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			KeySchema: []types.KeySchemaElement{key("GSI1PK", types.KeyTypeHash), key("GSI1SK", types.KeyTypeRange)},
		}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
	for _, name := range []string{"pk", "sk", "GSI1PK", "GSI1SK"} {
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
	}
	_, err = b.client.CreateTable(t.Context(), in)
	b.must(err)
	for i := range posts {
		b.put(i, i%2 == 0, i%10 == 3)
	}
	return b
}

func (b *blog) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// put writes a post whole: every seventh as the application did before there was a rule, with attributes of its own in the index.
func (b *blog) put(i int, published, long bool) {
	post := map[string]types.AttributeValue{
		"pk": text(fmt.Sprintf("POST#%06d", i)), "sk": text("METADATA"), "status": text("draft"), "createdAt": text(fmt.Sprint("2026-", i)),
	}
	if published {
		post["status"] = text("published")
	}
	if long {
		post["body"] = text(strings.Repeat("x", 1500))
	}
	if i%7 == 0 {
		post["GSI1PK"], post["GSI1SK"] = text("STATUS#published"), text(fmt.Sprint("2026-", i))
	}
	_, err := b.client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: post})
	b.must(err)
}

// change does what a writer does: it publishes, withdraws, edits, writes again, or deletes a post.
func (b *blog) change(random *rand.Rand, posts int) {
	i := random.IntN(posts)
	key := map[string]types.AttributeValue{"pk": text(fmt.Sprintf("POST#%06d", i)), "sk": text("METADATA")}
	update := func(expression string, value types.AttributeValue) {
		_, err := b.client.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("app"), Key: key, UpdateExpression: &expression,
			ExpressionAttributeNames: map[string]string{"#n": "status"}, ExpressionAttributeValues: map[string]types.AttributeValue{":v": value},
		})
		b.must(err)
	}
	switch random.IntN(6) {
	case 0, 1:
		update("SET #n = :v", text("published"))
	case 2, 3:
		update("SET #n = :v", text("draft"))
	case 4:
		b.put(i, random.IntN(2) == 0, false)
	case 5:
		_, err := b.client.DeleteItem(b.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("app"), Key: key})
		b.must(err)
	}
}

// expectIndexed checks that the published posts, and no others, have the attributes of the index.
func (b *blog) expectIndexed() {
	b.Helper()
	wrong := 0
	value := func(v types.AttributeValue) string {
		if s, ok := v.(*types.AttributeValueMemberS); ok {
			return s.Value
		}
		return ""
	}
	pages := dynamodb.NewScanPaginator(b.client, &dynamodb.ScanInput{TableName: aws.String("app"), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(b.Context())
		b.must(err)
		for _, post := range page.Items {
			partition, sort := "", ""
			if value(post["status"]) == "published" && value(post["createdAt"]) != "" {
				partition, sort = "STATUS#published", value(post["createdAt"])
			}
			if value(post["GSI1PK"]) != partition || value(post["GSI1SK"]) != sort {
				if wrong++; wrong <= 10 {
					b.Errorf("%s has %q and %q in the index, want %q and %q", value(post["pk"]), value(post["GSI1PK"]), value(post["GSI1SK"]),
						partition, sort)
				}
			}
		}
	}
	if wrong > 0 {
		b.Errorf("%d posts are wrong", wrong)
	}
}

// TestASparseIndexComesToAFullTableBesideAWriter has a client write 50 changes a second while a table of 20,000 posts gets an index.
func TestASparseIndexComesToAFullTableBesideAWriter(t *testing.T) {
	posts := worldsize.Of(20_000, 3_000)
	synctest.Test(t, func(t *testing.T) {
		b := newBlog(t, posts)
		var writer sync.WaitGroup
		writing, stop := context.WithCancel(t.Context())
		random := rand.New(rand.NewPCG(1, 1))
		writes := 0
		writer.Go(func() {
			for ; writing.Err() == nil; writes++ {
				b.change(random, posts)
				time.Sleep(20 * time.Millisecond)
			}
		})
		time.Sleep(2 * time.Second)
		p := startKillable(t, b.cfg, dynamill.Config{Table: "app", Rules: loaded(t, sparseRules), Logger: slog.New(slog.DiscardHandler)})
		for time.Sleep(5 * time.Second); p.running.Status().Seeding; {
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		stop()
		writer.Wait()
		p.stop()
		b.must(<-p.ended)
		b.must(dynamill.Follow(t.Context(), dynamill.Config{AWS: b.cfg, Table: "app", Rules: loaded(t, sparseRules), Drain: true}))
		t.Logf("%d changes beside the rule's seeding", writes)
		b.expectIndexed()
	})
}

// TestASparseIndexCostsAUnitForEachKilobyteOfWhatChanges counts the requests and units of a rule that is new to a full table.
func TestASparseIndexCostsAUnitForEachKilobyteOfWhatChanges(t *testing.T) {
	const posts = 5_000
	synctest.Test(t, func(t *testing.T) {
		b := newBlog(t, posts)
		follow := dynamill.Config{AWS: b.cfg.Copy(), Table: "app", Rules: loaded(t, sparseRules), Drain: true}
		var spent meter
		follow.AWS.APIOptions = append([]func(*middleware.Stack) error{spent.add}, follow.AWS.APIOptions...)
		b.must(dynamill.Follow(t.Context(), follow))
		b.expectIndexed()

		// Of 70 posts, 35 are published: they get the attributes, or the stamp alone where the application has written them. Of the
		// drafts, 5 leave the index. Seven drafts are long, one of which is in the index.
		changed, long := posts*40/70, posts/70
		if want := float64(changed + long); spent.units < want-2 || spent.units > want+2 {
			t.Errorf("%.0f write units, want %.0f: a unit for each of %d posts that change, another for %d long ones", spent.units, want, changed,
				long)
		}
		if perPost := float64(spent.requests) / float64(changed); perPost > 0.06 {
			t.Errorf("%.3f write requests a post, want at most 0.06", perPost)
		}
		t.Logf("%d of %d posts change: %.0f write units, %d write requests", changed, posts, spent.units, spent.requests)
	})
}

// meter adds up what writes to the table app cost.
type meter struct {
	mu       sync.Mutex
	units    float64
	requests int
}

func (m *meter) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			switch write := in.Parameters.(type) {
			case *dynamodb.UpdateItemInput:
				write.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
			case *dynamodb.BatchExecuteStatementInput:
				write.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
			case *dynamodb.TransactWriteItemsInput:
				write.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
			}
			out, data, err := next.HandleInitialize(ctx, in)
			switch written := out.Result.(type) {
			case *dynamodb.UpdateItemOutput:
				if written != nil && written.ConsumedCapacity != nil {
					m.count(*written.ConsumedCapacity)
				}
			case *dynamodb.BatchExecuteStatementOutput:
				m.count(written.ConsumedCapacity...)
			case *dynamodb.TransactWriteItemsOutput:
				if written != nil {
					m.count(written.ConsumedCapacity...)
				}
			}
			return out, data, err
		}), middleware.Before)
}

func (m *meter) count(consumed ...types.ConsumedCapacity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	here := 0
	for _, c := range consumed {
		if aws.ToString(c.TableName) == "app" {
			m.units += aws.ToFloat64(c.CapacityUnits)
			here = 1
		}
	}
	m.requests += here
}
