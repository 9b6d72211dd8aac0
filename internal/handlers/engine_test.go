package handlers

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const groupRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:   { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Group:  { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-name:  { copy: name as userName, from: User, to: Member }
  member-count: { count: Member, as: Group.memberCount, where: role != "banned" }
`

// lambdaWorld is a simulated table with the real engine behind a Handler.
type lambdaWorld struct {
	*testing.T
	sim     *dynamosim.Sim
	set     *rules.Set
	arn     string
	iter    *string
	handler *Handler
	parked  int
	items   int // that the table holds
}

func (w *lambdaWorld) ParkRecord(context.Context, string, string, string, []byte) error {
	w.parked++
	return nil
}

func (w *lambdaWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func newLambdaWorld(t *testing.T) *lambdaWorld {
	t.Helper()
	w := &lambdaWorld{T: t, sim: dynamosim.New(dynamosim.Options{})}
	key := func(name string, role ddb.KeyType) ddb.KeySchemaElement {
		return ddb.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	text := func(name string) ddb.AttributeDefinition {
		return ddb.AttributeDefinition{AttributeName: &name, AttributeType: ddb.ScalarAttributeTypeS}
	}
	out, err := w.sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: ddb.BillingModePayPerRequest,
		KeySchema:            []ddb.KeySchemaElement{key("pk", ddb.KeyTypeHash), key("sk", ddb.KeyTypeRange)},
		AttributeDefinitions: []ddb.AttributeDefinition{text("pk"), text("sk")},
		StreamSpecification:  &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	})
	w.must(err)
	w.arn = *out.TableDescription.LatestStreamArn
	w.set, err = rules.Load("dynamill.yaml", []byte(groupRules), projections.Kinds)
	w.must(err)
	engine, err := projections.Open(t.Context(), projections.Config{Client: w.sim, Table: "app", Rules: w.set})
	w.must(err)
	w.must(engine.Seed(t.Context(), nil))
	w.handler = New(Config{
		Processor: engine, Rederiver: engine, Parker: w, PartitionKey: "pk", SortKey: "sk",
		Logger: slog.New(slog.DiscardHandler), PieceFirst: 100,
	})
	return w
}

// update writes attributes of one item and leaves the others.
func (w *lambdaWorld) update(pk, sk string, pairs ...string) {
	w.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String("app"), Key: attributes.ItemToTable(change.Item{"pk": change.String(pk), "sk": change.String(sk)}),
		ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: map[string]ddb.AttributeValue{},
	}
	var sets []string
	for i := 0; i < len(pairs); i += 2 {
		n := strconv.Itoa(i)
		sets = append(sets, "#n"+n+" = :v"+n)
		in.ExpressionAttributeNames["#n"+n] = pairs[i]
		in.ExpressionAttributeValues[":v"+n] = &ddb.AttributeValueMemberS{Value: pairs[i+1]}
	}
	in.UpdateExpression = aws.String("SET " + strings.Join(sets, ", "))
	_, err := w.sim.UpdateItem(w.Context(), in)
	w.must(err)
}

// records reads on in the stream and returns each record as Lambda writes it.
func (w *lambdaWorld) records() (texts []string) {
	w.Helper()
	if w.iter == nil {
		d, err := w.sim.DescribeStream(w.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn})
		w.must(err)
		out, err := w.sim.GetShardIterator(w.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &w.arn, ShardId: d.StreamDescription.Shards[0].ShardId, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon,
		})
		w.must(err)
		w.iter = out.ShardIterator
	}
	out, err := w.sim.GetRecords(w.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: w.iter})
	w.must(err)
	w.iter = out.NextShardIterator
	for _, r := range out.Records {
		body := map[string]any{"Keys": lambdaItem(r.Dynamodb.Keys), "SequenceNumber": *r.Dynamodb.SequenceNumber}
		if len(r.Dynamodb.OldImage) > 0 {
			body["OldImage"] = lambdaItem(r.Dynamodb.OldImage)
		}
		if len(r.Dynamodb.NewImage) > 0 {
			body["NewImage"] = lambdaItem(r.Dynamodb.NewImage)
		}
		text, err := json.Marshal(map[string]any{
			"eventID": *r.EventID, "eventName": r.EventName, "eventSource": "aws:dynamodb", "eventSourceARN": w.arn, "dynamodb": body,
		})
		w.must(err)
		texts = append(texts, string(text))
	}
	return texts
}

func lambdaItem(item map[string]streams.AttributeValue) map[string]any {
	out := map[string]any{}
	for name, av := range item {
		out[name] = lambdaValue(attributes.FromStream(av))
	}
	return out
}

func lambdaValue(v change.Value) any {
	var content any
	switch v.Kind() {
	case change.KindBool:
		content = v.Bool()
	case change.KindNull:
		content = true
	case change.KindMap:
		fields := map[string]any{}
		for name, f := range v.Map() {
			fields[name] = lambdaValue(f)
		}
		content = fields
	case change.KindString, change.KindNumber:
		content = v.Text()
	default:
		panic("nobody writes a " + v.Kind().String() + " here")
	}
	return map[string]any{v.Kind().String(): content}
}

func (w *lambdaWorld) invoke(payload string) {
	w.Helper()
	answer, err := w.handler.Invoke(w.Context(), []byte(payload))
	if err != nil || string(answer) != failures() {
		w.Fatalf("answer %s, %v", answer, err)
	}
}

// drain delivers what the stream still holds, the engine's own writes among it.
func (w *lambdaWorld) drain() {
	w.Helper()
	for records := w.records(); len(records) > 0; records = w.records() {
		w.invoke(event(records...))
	}
	out, err := w.sim.Scan(w.Context(), &dynamodb.ScanInput{TableName: aws.String("app"), ConsistentRead: aws.Bool(true)})
	w.must(err)
	var items []change.Item
	for _, it := range out.Items {
		items = append(items, attributes.ItemFromTable(it))
	}
	for _, d := range oracle.Drift(w.set, items) {
		w.Errorf("drift: %+v", d)
	}
	if len(items) != w.items {
		w.Errorf("%d items, want %d", len(items), w.items)
	}
}

func (w *lambdaWorld) populate() {
	w.Helper()
	w.update("GROUP#g", "METADATA", "title", "G")
	for _, user := range []string{"1", "2"} {
		w.update("USER#"+user, "PROFILE", "name", "old name")
		w.update("GROUP#g", "USER#"+user, "role", "member")
	}
	w.items = 5
}

func (w *lambdaWorld) remove(pk, sk string) {
	w.Helper()
	_, err := w.sim.DeleteItem(w.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("app"), Key: attributes.ItemToTable(change.Item{"pk": change.String(pk), "sk": change.String(sk)}),
	})
	w.must(err)
	w.items--
}

func TestTheEngineConvergesBehindEveryShapeOfPayload(t *testing.T) {
	wrapped := func(records []string) (messages []string) {
		for i, r := range records {
			messages = append(messages, message("m"+strconv.Itoa(i), r))
		}
		return messages
	}
	for name, deliver := range map[string]func(w *lambdaWorld, records []string){
		"stream":        func(w *lambdaWorld, rs []string) { w.invoke(event(rs...)) },
		"queue":         func(w *lambdaWorld, rs []string) { w.invoke(event(wrapped(rs)...)) },
		"pipe":          func(w *lambdaWorld, rs []string) { w.invoke(list(rs...)) },
		"late batch":    func(w *lambdaWorld, rs []string) { w.invoke(late(event(rs...))) },
		"queue, turned": func(w *lambdaWorld, rs []string) { w.invoke(event(turned(wrapped(rs))...)) },
		"twice":         func(w *lambdaWorld, rs []string) { w.invoke(event(rs...)); w.invoke(event(rs...)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newLambdaWorld(t)
			w.populate()
			w.update("USER#1", "PROFILE", "name", "new name")
			w.update("GROUP#g", "USER#2", "role", "banned")
			deliver(w, w.records())
			w.drain()
		})
	}
}

func turned(all []string) (back []string) {
	for i := range all {
		back = append(back, all[len(all)-1-i])
	}
	return back
}
