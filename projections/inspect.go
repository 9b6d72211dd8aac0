package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// InspectClient is what Inspect needs of DynamoDB: reading. *dynamodb.Client satisfies it.
type InspectClient interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

var _ InspectClient = (*dynamodb.Client)(nil)

// Inspection is what the state table tells by itself, whether or not anything
// runs. Its parts are read one after the other, each consistently.
type Inspection struct {
	StateTable  string
	Table       string // the user's, by the name that it had when the state table was made
	Incarnation string
	Epoch       int       // of the rules
	Created     time.Time // the state table
	Rules       []InspectedRule
	Seeding     *InspectedSeeding // nil while no place of a scan is stored
	Tasks       []InspectedTask
	Parked      map[string]int // how many by code
}

// InspectedRule is a rule as it is registered.
type InspectedRule struct {
	ID, Name, Fingerprint string
	State                 string // as stored: "seeding", "live", "retiring" or "retired"
	Live                  bool
	Former                bool // not in force any more
	Cleaned               bool // of a former rule: what it wrote is taken back
	Epoch                 int  // of the rules, in which it was registered
}

// InspectedSeeding is the place of the scan that is under way, or was when its process ended.
type InspectedSeeding struct {
	Phase string // "derive" derives what the items ask for, "show" then writes counts and sums; "clean" and "sweep" take back what former rules wrote
	Level int    // of the rules that the scan is for; -1 for all
	Items int64  // seen in this scan, to the last place that was saved
}

// InspectedTask is what is left of a large fan-out.
type InspectedTask struct {
	Rule     string // its name
	Parent   change.Key
	Children int // looked at so far, those that refer to the parent written
}

// Live reports whether every rule is in force and shows what it derives, and nothing is left of former rules.
func (i *Inspection) Live() bool {
	return i.Seeding == nil && slices.ContainsFunc(i.Rules, func(r InspectedRule) bool { return !r.Former }) &&
		!slices.ContainsFunc(i.Rules, func(r InspectedRule) bool { return !r.Live && !r.Cleaned })
}

// Inspect reads a state table and writes nothing. It returns a *SetupError where
// there is none, or nothing is registered in it yet.
func Inspect(ctx context.Context, client InspectClient, stateTable string) (*Inspection, error) {
	e, found, err := beginInspection(ctx, client, stateTable)
	if err != nil {
		return nil, err
	}
	// After the rules: who finds them all live, and then no scan, may say that everything is.
	if found.Seeding, err = e.inspectSeeding(ctx); err != nil {
		return nil, err
	}
	if found.Tasks, err = e.inspectTasks(ctx); err != nil {
		return nil, err
	}
	found.Parked, err = e.inspectParked(ctx)
	return found, err
}

// beginInspection reads the registry, and returns an engine that can read and what is found so far.
func beginInspection(ctx context.Context, client InspectClient, stateTable string) (*Engine, *Inspection, error) {
	e := &Engine{client: readOnly{reads: client}, stateTable: stateTable}
	table, known, err := e.readRegistry(ctx)
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return nil, nil, &SetupError{fmt.Sprintf("there is no state table %s", stateTable), notRunYet, err}
	}
	if err != nil {
		return nil, nil, err
	}
	if table == nil {
		return nil, nil, &SetupError{Problem: fmt.Sprintf("state table %s is empty", stateTable), Remedy: notRunYet}
	}
	e.incarnation, e.epoch = textOf(table["incarnation"]), int(numberOf(table["epoch"]))
	found := &Inspection{
		StateTable: stateTable, Table: textOf(table["table"]), Incarnation: e.incarnation, Epoch: e.epoch,
		Rules: e.inspectRules(known),
	}
	found.Created, _ = time.Parse(time.RFC3339, textOf(table["created"]))
	return e, found, nil
}

const notRunYet = "nothing has run on this table yet; start `dynamill run`, or check --table, --state-table and --region"

// readOnly lets who only reads use the engine's own reading. Of Client it has no
// more than that: a request that writes would panic, and never be sent.
type readOnly struct {
	Client
	reads InspectClient
}

// GetItem reads.
func (c readOnly) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return c.reads.GetItem(ctx, in, opts...)
}

// Query reads.
func (c readOnly) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return c.reads.Query(ctx, in, opts...)
}

// BatchGetItem reads.
func (c readOnly) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return c.reads.BatchGetItem(ctx, in, opts...)
}

// inspectRules lists the registered rules by id, and binds a name to each id:
// all that reading tasks and parked records asks of a rule.
func (e *Engine) inspectRules(known map[string]row) []InspectedRule {
	set, ids := &rules.Set{}, map[*rules.Rule]string{}
	var formers []*plan.Binding
	found := make([]InspectedRule, 0, len(known))
	for _, id := range slices.Sorted(maps.Keys(known)) {
		item := known[id]
		r := InspectedRule{
			ID: id, Name: textOf(item["name"]), Fingerprint: textOf(item["fingerprint"]),
			State: textOf(item["state"]), Epoch: int(numberOf(item["epoch"])),
		}
		r.Live = r.State == stateLive
		rule := &rules.Rule{Name: r.Name}
		if r.Former = !inForce(item); r.Former {
			r.Cleaned = item["cleaned"] != nil
			formers = append(formers, plan.NewFormer(rule, id))
		} else {
			set.Rules, ids[rule] = append(set.Rules, rule), id
		}
		found = append(found, r)
	}
	e.planner = &plan.Planner{Bindings: plan.Bind(set, ids), Epoch: e.epoch}
	e.planner.AddFormer(formers...)
	return found
}

func (e *Engine) inspectSeeding(ctx context.Context) (*InspectedSeeding, error) {
	cursor, err := e.readCursor(ctx)
	if err != nil || cursor.phase == "" {
		return nil, err
	}
	return &InspectedSeeding{Phase: string(cursor.phase), Level: cursor.level, Items: cursor.items}, nil
}

func (e *Engine) inspectTasks(ctx context.Context) ([]InspectedTask, error) {
	tasks, err := e.readTasks(ctx)
	found := make([]InspectedTask, 0, len(tasks))
	for _, t := range tasks {
		if !t.id.Former { // else whoever works off tasks ends it
			found = append(found, InspectedTask{Rule: t.id.Rule.Name, Parent: t.id.Key, Children: t.children})
		}
	}
	return found, err
}

// inspectParked counts page by page and asks for codes alone: a parked record may be large.
func (e *Engine) inspectParked(ctx context.Context) (map[string]int, error) {
	c := newExpression()
	condition := c.sprintf("%n = %v", statePartition, textValue(parkedPartition))
	in := &dynamodb.QueryInput{
		TableName: &e.stateTable, ConsistentRead: ptr(true), KeyConditionExpression: &condition, ProjectionExpression: ptr(c.name("code")),
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
	codes := map[string]int{}
	err := e.queryPages(ctx, "counting what is parked", in, func(rows []row) error {
		for _, item := range rows {
			codes[e.readParked(item).Code]++
		}
		return nil
	})
	return codes, err
}
