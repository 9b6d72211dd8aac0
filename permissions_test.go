package dynamill

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/infra"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/story"
)

// police lets only those requests through that a deployment's role allows.
type police struct {
	testing.TB
	sim     *dynamosim.Sim
	allowed map[string]bool // "table action"

	mu   sync.Mutex // the engine sends several requests at once
	used map[string]bool
	on   bool

	denied string // the last action
}

func newPolice(t testing.TB) *police {
	p := &police{TB: t, allowed: map[string]bool{}, used: map[string]bool{}}
	p.sim = dynamosim.New(dynamosim.Options{Before: p.before})
	return p
}

// allow reads the statements of a deployment's role.
func (p *police) allow(template string) {
	p.Helper()
	p.allowBetween(template, "- Sid: Table\n", "- Sid: Stream\n")
}

// allowReplay reads those of the function that replays.
func (p *police) allowReplay(template string) {
	p.Helper()
	_, roles, _ := strings.Cut(template, "\n  ReplayRole:\n")
	p.allowBetween(roles, "- Sid: Table\n", "- Sid: Logs\n")
}

func (p *police) allowBetween(template, from, to string) {
	p.Helper()
	_, policy, _ := strings.Cut(template, from)
	policy, _, ended := strings.Cut(policy, to)
	forTable, forState, found := strings.Cut(policy, "- Sid: StateTable\n")
	if !found || !ended {
		p.Fatalf("the template has no statements Table and StateTable, and %q after them", to)
	}
	for table, text := range map[string]string{"app": forTable, "app-dynamill": forState} {
		for _, action := range regexp.MustCompile(`'dynamodb:(\w+)'`).FindAllStringSubmatch(text, -1) {
			p.allowed[table+" "+action[1]] = true
		}
	}
}

func (p *police) watch(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

func (p *police) before(op string, input any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		return nil
	}
	for _, asked := range requests(op, input) {
		p.used[asked] = true
		if !p.allowed[asked] {
			p.denied = asked
			return errors.New("AccessDenied: " + asked)
		}
	}
	return nil
}

// requests are the actions, by table, that IAM asks for.
func requests(op string, input any) (asked []string) {
	switch in := input.(type) {
	case *dynamodb.BatchGetItemInput:
		for table := range in.RequestItems {
			asked = append(asked, table+" "+op)
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, it := range in.TransactItems {
			switch {
			case it.Put != nil:
				asked = append(asked, *it.Put.TableName+" PutItem")
			case it.Update != nil:
				asked = append(asked, *it.Update.TableName+" UpdateItem")
			case it.Delete != nil:
				asked = append(asked, *it.Delete.TableName+" DeleteItem")
			default:
				asked = append(asked, *it.ConditionCheck.TableName+" ConditionCheckItem")
			}
		}
	default:
		asked = append(asked, tableOf(input)+" "+op)
	}
	return asked
}

func tableOf(input any) string {
	var name *string
	switch in := input.(type) {
	case *dynamodb.DescribeTableInput:
		name = in.TableName
	case *dynamodb.CreateTableInput:
		name = in.TableName
	case *dynamodb.DescribeTimeToLiveInput:
		name = in.TableName
	case *dynamodb.UpdateTimeToLiveInput:
		name = in.TableName
	case *dynamodb.GetItemInput:
		name = in.TableName
	case *dynamodb.PutItemInput:
		name = in.TableName
	case *dynamodb.UpdateItemInput:
		name = in.TableName
	case *dynamodb.DeleteItemInput:
		name = in.TableName
	case *dynamodb.QueryInput:
		name = in.TableName
	case *dynamodb.ScanInput:
		name = in.TableName
	}
	return aws.ToString(name)
}

// createTable makes a table as a deployment's template does.
func (p *police) createTable(name, partition, sort string) {
	p.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: ddb.BillingModePayPerRequest}
	for attribute, role := range map[string]ddb.KeyType{partition: ddb.KeyTypeHash, sort: ddb.KeyTypeRange} {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{AttributeName: &attribute,
			AttributeType: ddb.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: &attribute, KeyType: role})
	}
	slices.SortFunc(in.KeySchema, func(a, b ddb.KeySchemaElement) int { return strings.Compare(string(a.KeyType), string(b.KeyType)) })
	if _, err := p.sim.CreateTable(p.Context(), in); err != nil {
		p.Fatal(err)
	}
}

// rivals are items that ask for the same mirror item, which no example has.
func rivals(t *testing.T) *story.Example {
	set, err := rules.Load("rivals.yaml", []byte(`version: 1
table: { keys: [pk, sk] }
entities:
  Order: { key: { pk: "USER#${userId}", sk: "ORDER#${orderId}" } }
  Badge: { key: { pk: "USER#${userId}", sk: "BADGE" } }
rules:
  badge: { mirror: Order, as: Badge, attributes: [note] }
`), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	e := &story.Example{Name: "rivals", Set: set}
	for _, order := range []string{"1", "2", "3"} {
		e.Items = append(e.Items, change.Item{"pk": change.String("USER#u"), "sk": change.String("ORDER#" + order), "note": change.String(order)})
	}
	return e
}

// The function starts on the state table that a template made, empty, and does
// all that it ever does, with what the template's role allows.
func TestTheRoleOfATemplateSuffices(t *testing.T) {
	used := map[string]bool{}
	all := []*story.Example{rivals(t)}
	for _, name := range story.Names() {
		example, err := story.Load(name, projections.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, example)
	}
	for _, example := range all {
		t.Run(example.Name, func(t *testing.T) {
			template, err := infra.Generate(infra.CloudFormation, example.Set, infra.Options{Table: "app"})
			if err != nil {
				t.Fatal(err)
			}
			p := newPolice(t)
			p.allow(string(template))
			p.createTable("app", example.Set.Table.PartitionKey, example.Set.Table.SortKey)
			p.createTable("app-dynamill", "pk", "sk")
			_, err = p.sim.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("app-dynamill"),
				TimeToLiveSpecification: &ddb.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}})
			if err != nil {
				t.Fatal(err)
			}
			p.live(example)
			maps.Copy(used, p.used)
		})
	}
	// What none of these needs would be allowed for nothing, or this test has become too small.
	for _, action := range []string{"app DeleteItem", "app ConditionCheckItem", "app Query", "app UpdateItem", "app BatchGetItem",
		"app-dynamill DescribeTimeToLive", "app-dynamill GetItem", "app-dynamill BatchGetItem", "app-dynamill Query", "app-dynamill PutItem",
		"app-dynamill UpdateItem", "app-dynamill DeleteItem", "app-dynamill ConditionCheckItem"} {
		if !used[action] {
			t.Errorf("nothing here needs %s", action)
		}
	}
}

// actor is the application, and the function beside it.
type actor struct {
	*police
	engine   *projections.Engine
	keys     []string // the table's
	sequence int
}

func (a *actor) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// live has the function open, follow items' coming, changing and going, work off
// tasks, park and rederive. What else happens is not held to its role.
func (p *police) live(example *story.Example) {
	p.Helper()
	p.watch(true)
	engine, err := projections.Open(p.Context(), projections.Config{Client: p.sim, Table: "app", Rules: example.Set, FanOutMax: 1})
	p.watch(false)
	a := &actor{police: p, engine: engine, keys: []string{example.Set.Table.PartitionKey, example.Set.Table.SortKey}}
	a.must(err)
	a.must(engine.Seed(p.Context(), nil))
	items := example.Items
	a.follow(make([]change.Item, len(items)), items)
	for _, alter := range []func(string, string) string{
		func(_, text string) string { return text + ", altered" },
		func(name, text string) string { // no parent has such a key: the children's copies are parked
			if strings.HasSuffix(name, "Id") {
				return "a#b"
			}
			return text
		},
	} {
		altered := a.altered(items, alter)
		a.follow(items, altered)
		a.follow(altered, items)
	}
	a.tamper()
	unread := a.unread()
	a.held(func() error { return engine.RederiveRecords(p.Context(), unread) })
	a.tamper()
	a.held(func() error {
		return engine.ParkRecord(p.Context(), "1", "record.value", "it cannot be read", []byte("{}"))
	})
	for i := range items {
		a.follow(items[i:i+1], make([]change.Item, 1))
	}
}

// held does what the function does, under its role.
func (a *actor) held(act func() error) {
	a.Helper()
	a.watch(true)
	defer a.watch(false)
	a.must(act())
}

// follow has the application make old items new ones, nil for none, and the function follow.
func (a *actor) follow(old, now []change.Item) {
	a.Helper()
	records := make([]change.Record, len(old))
	for i := range old {
		a.sequence++
		at, err := change.NewPosition("2026-01-01T00:00:00.000", strconv.Itoa(a.sequence))
		a.must(err)
		records[i].Position = at
		if old[i] != nil {
			records[i].Key, records[i].Old = a.key(old[i]), old[i]
			_, err = a.sim.DeleteItem(a.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("app"),
				Key: attributes.ItemToTable(a.only(old[i]))})
			a.must(err)
		}
		if now[i] != nil {
			records[i].Key, records[i].New = a.key(now[i]), now[i]
			a.put(now[i])
		}
	}
	a.held(func() error {
		done, err := a.engine.Process(a.Context(), records)
		if err == nil && done != len(records) {
			a.Errorf("%d of %d records are done", done, len(records))
		}
		return err
	})
	a.held(func() error { _, err := a.engine.WorkTasks(a.Context()); return err })
}

func (a *actor) put(item change.Item) {
	a.Helper()
	_, err := a.sim.PutItem(a.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: attributes.ItemToTable(item)})
	a.must(err)
}

func (a *actor) only(item change.Item) change.Item {
	return change.Item{a.keys[0]: item[a.keys[0]], a.keys[1]: item[a.keys[1]]}
}

func (a *actor) key(item change.Item) change.Key {
	return change.Key{Partition: item[a.keys[0]].Text(), Sort: item[a.keys[1]].Text()}
}

func (a *actor) items() (items []change.Item) {
	a.Helper()
	out, err := a.sim.Scan(a.Context(), &dynamodb.ScanInput{TableName: aws.String("app")})
	a.must(err)
	for _, item := range out.Items {
		items = append(items, attributes.ItemFromTable(item))
	}
	return items
}

// unread are records of all items: in turn late ones, ones without images, and ones without a position.
func (a *actor) unread() (records []change.Record) {
	a.Helper()
	for i, item := range a.items() {
		a.sequence++
		at, err := change.NewPosition("2026-01-01T00:00:00.000", strconv.Itoa(a.sequence))
		a.must(err)
		r := change.Record{Key: a.key(item)}
		if i%3 < 2 {
			r.Position = at
		}
		if i%3 == 0 {
			r.New = item
		}
		records = append(records, r)
	}
	return records
}

// tamper has the application overwrite every item, the derived ones among them,
// with what it holds but for stamps.
func (a *actor) tamper() {
	a.Helper()
	for _, item := range a.items() {
		maps.DeleteFunc(item, func(name string, _ change.Value) bool { return strings.HasPrefix(name, projections.StampPrefix) })
		a.put(item)
	}
}

// altered are the items with other texts, and the same keys.
func (a *actor) altered(items []change.Item, alter func(name, text string) string) (altered []change.Item) {
	for _, item := range items {
		now := maps.Clone(item)
		for name, v := range item {
			if v.Kind() == change.KindString && !slices.Contains(a.keys, name) {
				now[name] = change.String(alter(name, v.Text()))
			}
		}
		altered = append(altered, now)
	}
	return altered
}
