package projections

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// What counting and copying may cost (docs/performance.md).
const (
	countUnitsMax        = 2.2
	countRequestsMax     = 0.03
	copyUnitsPerChildMax = 1.0
)

func streamImage(it change.Item) change.Image {
	im := attributes.StreamImage{}
	for name, v := range it {
		if v.Kind() == change.KindNumber {
			im[name] = &streams.AttributeValueMemberN{Value: v.Text()}
		} else {
			im[name] = &streams.AttributeValueMemberS{Value: v.Text()}
		}
	}
	return im
}

const countRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
rules:
  member-count: { count: Membership, as: Group.memberCount }
`

func memberships(n, groups int) []change.Item {
	items := make([]change.Item, n)
	for i := range items {
		items[i] = change.Item{"pk": s(fmt.Sprintf("USER#user-%06d", i)), "sk": s(fmt.Sprintf("GROUP#group-%d", i%groups)), "role": s("member")}
	}
	return items
}

func TestCountingStaysWithinItsPrice(t *testing.T) {
	units, requests := countOnSimulator(t)
	t.Logf("counting 1000 records into 10 counters: %.3f write units and %.4f requests a record", units, requests)
	if units > countUnitsMax || requests > countRequestsMax {
		t.Errorf("%.3f write units and %.4f requests a record, want at most %.1f and %.2f", units, requests, countUnitsMax, countRequestsMax)
	}
}

// countOnSimulator counts 1000 memberships of 10 groups in one batch and returns write units and requests a record.
func countOnSimulator(t testing.TB) (units, requests float64) {
	w := newWorld(t, countRules)
	for g := range 10 {
		w.put(change.Item{"pk": s(fmt.Sprintf("GROUP#group-%d", g)), "sk": s("METADATA"), "name": s("a group")})
	}
	e := w.seeded()
	from := w.drain(e, 0)
	for _, it := range memberships(1000, 10) {
		w.put(it)
	}
	records := w.records()[from:]
	if len(records) != 1000 {
		t.Fatalf("%d records, want 1000", len(records))
	}
	before := w.sim.Usage()
	if done, err := e.Process(w.ctx, records); err != nil || done != 1000 {
		t.Fatalf("done %d: %v", done, err)
	}
	used := w.sim.Usage().Sub(before)
	w.drain(e, from+1000)
	w.expectNoDrift()
	total := 0
	for _, n := range used.Requests {
		total += n
	}
	return used.WriteUnits / 1000, float64(total) / 1000
}

func BenchmarkCountOnSimulator(b *testing.B) {
	for b.Loop() {
		units, requests := countOnSimulator(b)
		b.ReportMetric(units, "WU/record")
		b.ReportMetric(requests, "requests/record")
	}
}

const copyRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  comment-author: { copy: name as userName, from: User, to: Comment, by: userId }
`

func TestACopyCostsOneWriteUnitAChild(t *testing.T) {
	if units := renameOnSimulator(t); units > copyUnitsPerChildMax+0.02 {
		t.Errorf("%.3f write units a child, want %.0f (and one for the parent's position)", units, copyUnitsPerChildMax)
	}
}

// renameOnSimulator renames a user with 100 comments and returns the write units a child.
func renameOnSimulator(t testing.TB) float64 {
	const children = 100
	w := newWorld(t, copyRules)
	user := change.Key{Partition: "USER#u1", Sort: "PROFILE"}
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s("Ann")})
	for i := range children {
		w.put(change.Item{"pk": s("POST#p1"), "sk": s(fmt.Sprintf("COMMENT#%03d", i)), "userId": s("u1"), "text": s("a comment")})
	}
	e := w.seeded()
	from := w.drain(e, 0)
	w.update(user, change.Item{"name": s("Anna")})
	before := w.sim.Usage()
	if _, err := e.Process(w.ctx, w.records()[from:]); err != nil {
		t.Fatal(err)
	}
	used := w.sim.Usage().Sub(before)
	w.drain(e, from+1)
	w.expectNoDrift()
	return used.WriteUnits / children
}

func BenchmarkRenameOnSimulator(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(renameOnSimulator(b), "WU/child")
	}
}

// metered adds up the write units that an endpoint reports.
type metered struct {
	*dynamodb.Client
	mu    sync.Mutex
	units float64
}

func (m *metered) add(c *ddb.ConsumedCapacity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.units += aws.ToFloat64(c.CapacityUnits)
}

func (m *metered) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	out, err := m.Client.TransactWriteItems(ctx, in, opts...)
	if err == nil {
		for _, c := range out.ConsumedCapacity {
			m.add(&c)
		}
	}
	return out, err
}

func (m *metered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	out, err := m.Client.UpdateItem(ctx, in, opts...)
	if _, refused := errors.AsType[*ddb.ConditionalCheckFailedException](err); refused {
		m.add(&ddb.ConsumedCapacity{CapacityUnits: new(1.0)}) // DynamoDB bills a refused write of a small item, and does not report it
	}
	if err == nil && out.ConsumedCapacity != nil {
		m.add(out.ConsumedCapacity)
	}
	return out, err
}

// PutItem, DeleteItem and BatchExecuteStatement are the other writes that an engine sends.
func (m *metered) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	out, err := m.Client.PutItem(ctx, in, opts...)
	if err == nil && out.ConsumedCapacity != nil {
		m.add(out.ConsumedCapacity)
	}
	return out, err
}

func (m *metered) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	out, err := m.Client.DeleteItem(ctx, in, opts...)
	if err == nil && out.ConsumedCapacity != nil {
		m.add(out.ConsumedCapacity)
	}
	return out, err
}

func (m *metered) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	out, err := m.Client.BatchExecuteStatement(ctx, in, opts...)
	if err == nil {
		for _, c := range out.ConsumedCapacity {
			m.add(&c)
		}
	}
	return out, err
}

// exactEngine opens an engine on a new table of an endpoint that reports capacity exactly; nil if there is none.
func exactEngine(t *testing.T, ruleFile string) (e *Engine, m *metered, table string) {
	server, found := emulator.Exact(t)
	if !found {
		t.Log("no endpoint that reports exact capacity; the simulator's figures stand alone")
		return nil, nil, ""
	}
	client := dynamodb.NewFromConfig(server.Config(t))
	table = "bench-" + state.NewID()
	ctx := t.Context()
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: ddb.BillingModePayPerRequest,
		KeySchema: []ddb.KeySchemaElement{{AttributeName: new("pk"), KeyType: ddb.KeyTypeHash},
			{AttributeName: new("sk"), KeyType: ddb.KeyTypeRange}},
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: new("pk"), AttributeType: ddb.ScalarAttributeTypeS},
			{AttributeName: new("sk"), AttributeType: ddb.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m = &metered{Client: client}
	if e, err = Open(ctx, Config{Client: m, Table: table, Rules: loadRules(t, ruleFile), Count: countNothing}); err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return e, m, table
}

// countNothing counts an empty table.
func countNothing(ctx context.Context, g *Generation, _ func(int64)) error {
	return g.MarkBegun(ctx, "")
}

// TestExactCapacityOfCounting confirms the simulator's figure for counting
// against an endpoint that reports capacity exactly.
func TestExactCapacityOfCounting(t *testing.T) {
	e, m, table := exactEngine(t, countRules)
	if e == nil {
		return
	}
	ctx := t.Context()
	for g := range 10 {
		item := attributes.ItemToTable(change.Item{"pk": s(fmt.Sprintf("GROUP#group-%d", g)), "sk": s("METADATA"), "name": s("a group")})
		if _, err := m.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	var records []change.Record
	for i, it := range memberships(1000, 10) {
		position, _ := change.NewPosition("2026-01-01T00:00:00.000", fmt.Sprint(i+1))
		records = append(records, change.Record{Key: change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()}, Position: position,
			New: streamImage(it)})
	}
	m.units = 0
	if done, err := e.Process(ctx, records); err != nil || done != 1000 {
		t.Fatalf("done %d: %v", done, err)
	}
	exact := m.units / 1000
	simulated, _ := countOnSimulator(t)
	t.Logf("counting: %.3f write units a record at the endpoint, %.3f in the simulator", exact, simulated)
	if exact > countUnitsMax || exact != simulated {
		t.Errorf("%.3f write units a record at the endpoint, %.3f in the simulator: want the same, at most %.1f", exact, simulated, countUnitsMax)
	}
}

// TestDeletionCosts has 100 comments deleted with their user, in two transactions. Each comment pays for two writes, and for its reference
// if there is one. Each transaction also pays for two checks: the user is absent, and its mark is there. The mark is paid once. If the
// user is found by a unique value, the ledger entry and the locator of that value are paid when the user comes and when it goes. Each
// transaction then pays for a third check, that of the locator. The children wait in a task, which is put, taken and deleted. A comment
// that comes later pays for its reference, if there is one, and for a transaction of its own.
func TestDeletionCosts(t *testing.T) {
	t.Parallel()
	const (
		children, checks, reference = 100, 2 + 2, 1
		locator, found, task        = 2, 2 + 2, 3
		marked                      = 2*children + 1 // the children, and the mark
	)
	for name, test := range map[string]struct {
		partition, by    string
		come, gone, late float64
	}{
		"references": {"POST#${postId}", ", by: userId", children, marked + reference*children + 2*checks, 2*reference + 2 + checks},
		"collection": {"USER#${userId}", "", 0, marked + 2*checks, 2 + checks},
		"unique": {"POST#${postId}", ", by: { handle: userId }", found + children,
			found + marked + reference*children + 2*(checks+locator) + task, 2*reference + 2 + checks + locator},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, fmt.Sprintf(`version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: PROFILE }, unique: handle }
  Comment: { key: { pk: "%s", sk: "COMMENT#${commentId}" } }
rules:
  gone: { delete: Comment, with: User%s }
`, test.partition, test.by))
				e, from, user := w.seeded(), 0, change.Key{Partition: "USER#u1", Sort: "PROFILE"}
				spent := func() float64 {
					before := w.sim.Usage()
					from = w.drain(e, from)
					w.workAll(e)
					from = w.drain(e, from)
					return w.sim.Usage().Sub(before).WriteUnits
				}
				w.put(change.Item{"pk": s(user.Partition), "sk": s(user.Sort), "handle": s("u1")})
				comment := func(number int) {
					partition := map[bool]string{true: "USER#u1", false: "POST#p1"}[test.by == ""]
					w.put(change.Item{"pk": s(partition), "sk": s(fmt.Sprintf("COMMENT#%03d", number)), "userId": s("u1"), "text": s("a comment")})
				}
				for i := range children {
					comment(i)
				}
				if units := spent(); units != test.come {
					t.Errorf("that %d children come costs %.0f write units, want %.0f", children, units, test.come)
				}
				w.delete(user)
				if units := spent(); units != test.gone {
					t.Errorf("that they go costs %.0f write units, want %.0f", units, test.gone)
				}
				comment(children)
				if units := spent(); units != test.late {
					t.Errorf("a child that comes later costs %.0f write units, want %.0f", units, test.late)
				}
				if items := w.items(); len(items) > 0 {
					t.Errorf("%d items are left", len(items))
				}
			})
		})
	}
}
