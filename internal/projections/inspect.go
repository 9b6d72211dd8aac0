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
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

var _ table.InspectClient = (*dynamodb.Client)(nil)

// Inspection is what the state table tells by itself. Its parts are read one after the other, each consistently.
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
	Missing     []state.RecordedMissing
	Budgets     []state.RecordedBudget // of processes whose work waits, or did a minute ago
}

// InspectedRule is a rule as it is registered.
type InspectedRule struct {
	ID, Name, Fingerprint string
	State                 string // as stored: "seeding", "live", "retiring" or "retired"
	Live                  bool
	Former                bool // not in force any more
	Cleaned               bool // of a former rule: what it wrote is taken back
	Epoch                 int  // of the rules, in which it was registered

	// Of a rule that folds records; 0 of others.
	Generation, Counted int // the newest generation, and the one that items show
	Shards              int // that the newest generation knows
}

// InspectedSeeding is the place of the scan that is under way, or was when its process ended.
type InspectedSeeding struct {
	// "derive" derives what the items ask for, "tally" counts for rules that fold records, "show" then writes computed values; "clean" and
	// "sweep" take back what former rules wrote
	Phase string `json:"phase"`
	Level int    `json:"level"` // of the rules that the scan is for; -1 for all
	Items int64  `json:"items"` // seen in this scan, to the last place that was saved
}

// InspectedTask is what is left of a large fan-out.
type InspectedTask struct {
	Rule     string // its name
	Parent   change.Key
	Children int       // looked at so far, those that refer to the parent written
	Since    time.Time // the rest of the fan-out became a task; zero if the row does not say
}

// Live reports whether every rule is in force and shows what it derives, and nothing is left of former rules.
func (i *Inspection) Live() bool {
	return i.Seeding == nil && slices.ContainsFunc(i.Rules, func(r InspectedRule) bool { return !r.Former }) &&
		!slices.ContainsFunc(i.Rules, func(r InspectedRule) bool { return !r.Live && !r.Cleaned })
}

// Inspect reads a state table and writes nothing. Without a registry it returns a *SetupError that wraps ErrUnregistered.
func Inspect(ctx context.Context, client table.InspectClient, stateTable string) (*Inspection, error) {
	rd, found, err := beginInspection(ctx, client, stateTable)
	if err != nil {
		return nil, err
	}
	// After the rules: if all of them are live, and no scan is under way afterwards, everything is live.
	if found.Seeding, err = rd.inspectSeeding(ctx); err != nil {
		return nil, err
	}
	if found.Tasks, err = rd.inspectTasks(ctx); err != nil {
		return nil, err
	}
	if found.Parked, err = rd.inspectParked(ctx); err != nil {
		return nil, err
	}
	if found.Budgets, err = rd.inspectBudgets(ctx); err != nil {
		return nil, err
	}
	if err := rd.inspectGenerations(ctx, found.Rules); err != nil {
		return nil, err
	}
	found.Missing, err = sightings.ReadRecorded(ctx, rd.reader, rd.planner)
	return found, err
}

// beginInspection reads the registry, and returns a reader of the state table and what is found so far.
func beginInspection(ctx context.Context, client table.InspectClient, stateTable string) (*ruleReader, *Inspection, error) {
	rd := &ruleReader{table.NewReader(client, stateTable), &plan.Planner{}}
	own, known, err := registry.Read(ctx, rd.reader)
	if errors.As(err, new(*ddb.ResourceNotFoundException)) || err == nil && own == nil {
		err = unregistered(stateTable, err)
	}
	if err != nil {
		return nil, nil, err
	}
	rd.planner.Incarnation, rd.planner.Epoch = own.Incarnation, own.Epoch
	found := &Inspection{
		StateTable: stateTable, Table: own.Name, Created: own.Created, Incarnation: rd.planner.Incarnation, Epoch: rd.planner.Epoch,
		Rules: rd.inspectRules(known),
	}
	return rd, found, nil
}

// ErrUnregistered is wrapped by the errors of Inspect and OpenAudit if there is no state table, or none with a registry.
var ErrUnregistered = errors.New("nothing is registered")

// unregistered says that there is no state table, by the error that tells, or that it is empty.
func unregistered(stateTable string, missing error) error {
	problem := fmt.Sprintf("state table %s is empty", stateTable)
	if missing != nil {
		problem = fmt.Sprintf("there is no state table %s", stateTable)
	}
	return &table.SetupError{Problem: problem, Err: errors.Join(ErrUnregistered, missing),
		Remedy: "nothing has run on this table yet; start `dynamill run`, or check --table, --state-table and --region"}
}

// inspectRules lists the registered rules by id, and binds names to ids: all that tasks and parked records ask of a rule.
func (rd *ruleReader) inspectRules(known map[string]state.Rule) []InspectedRule {
	set, ids := &rules.Set{}, map[*rules.Rule]string{}
	var formers []*plan.Binding
	found := make([]InspectedRule, 0, len(known))
	for _, id := range slices.Sorted(maps.Keys(known)) {
		item := known[id]
		r := InspectedRule{
			ID: id, Name: item.Name, Fingerprint: item.Fingerprint, State: item.State, Live: item.State == state.Live, Epoch: item.Epoch,
			Generation: item.Generation, Counted: item.Counted,
		}
		rule := &rules.Rule{Name: r.Name}
		if r.Former = !item.InForce(); r.Former {
			r.Cleaned = item.Cleaned
			formers = append(formers, plan.NewFormer(rule, id))
		} else {
			set.Rules, ids[rule] = append(set.Rules, rule), id
		}
		found = append(found, r)
	}
	rd.planner.Bindings = plan.Bind(set, ids)
	rd.planner.AddFormer(formers...)
	return found
}

// inspectGenerations counts the shards that the newest generations know.
func (rd *ruleReader) inspectGenerations(ctx context.Context, rules []InspectedRule) error {
	for i, r := range rules {
		if b := rd.planner.ByID(r.ID); b != nil && r.Generation > 0 {
			c := table.NewExpression()
			in := rd.reader.StateQuery(state.LanesCondition(c, b, int64(r.Generation)), c)
			err := rd.reader.QueryPages(ctx, "reading the lanes of "+r.Name, in, func(rows []table.Row) error {
				rules[i].Shards += len(rows)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (rd *ruleReader) inspectSeeding(ctx context.Context) (*InspectedSeeding, error) {
	cursor, err := seeding.ReadCursor(ctx, rd.reader, rd.planner)
	if err != nil || cursor.Phase == "" {
		return nil, err
	}
	return &InspectedSeeding{Phase: string(cursor.Phase), Level: cursor.Level, Items: cursor.Items}, nil
}

func (rd *ruleReader) inspectTasks(ctx context.Context) ([]InspectedTask, error) {
	tasks, _, err := rd.readTasks(ctx)
	found := make([]InspectedTask, 0, len(tasks))
	for i, t := range tasks {
		listed := slices.ContainsFunc(tasks[:i], t.IsOfFanOut) // by a range, or for one
		if !t.Parent.Former && !listed {                       // otherwise the worker of tasks ends it
			found = append(found, InspectedTask{Rule: t.Parent.Rule.Name, Parent: t.Parent.Key, Children: lookedAt(t, tasks), Since: t.Since})
		}
	}
	return found, err
}

func (rd *ruleReader) inspectBudgets(ctx context.Context) (found []state.RecordedBudget, err error) {
	c := table.NewExpression()
	in := rd.reader.StateQuery(c.Format("%n = %v", table.PK, table.Text(state.BudgetPartition)), c)
	err = rd.reader.QueryPages(ctx, "reading what waits for budgets", in, func(rows []table.Row) error {
		for _, r := range rows {
			if b, fresh := state.ReadBudget(r, time.Now()); fresh {
				found = append(found, b)
			}
		}
		return nil
	})
	return found, err
}

// Unfinished reads what is parked and which tasks are left.
func (e *Engine) Unfinished(ctx context.Context) (found Unfinished, err error) {
	if found.Parked, err = e.inspectParked(ctx); err != nil {
		return found, err
	}
	tasks, err := e.inspectTasks(ctx)
	found.Tasks = len(tasks)
	for _, t := range tasks {
		if !t.Since.IsZero() && (found.OldestTask.IsZero() || t.Since.Before(found.OldestTask)) {
			found.OldestTask = t.Since
		}
	}
	return found, err
}

// inspectParked counts page by page and asks for codes alone: a parked record may be large.
func (rd *ruleReader) inspectParked(ctx context.Context) (map[string]int, error) {
	codes := map[string]int{}
	err := rd.reader.QueryPages(ctx, countingParked, rd.parkedQuery(table.NewExpression(), "code"), func(rows []table.Row) error {
		for _, item := range rows {
			codes[table.TextOf(item["code"])]++
		}
		return nil
	})
	return codes, err
}

// Origins is what a state table tells of how it came to be used.
type Origins struct {
	Registered bool // the registry is there
	// FollowedWith is the lease table of the processes that followed the stream; "" if none ever did.
	FollowedWith string
}

// ReadOrigins reads a state table and writes nothing. One that is missing or empty has no Origins.
func ReadOrigins(ctx context.Context, client table.InspectClient, stateTable string) (Origins, error) {
	own, err := registry.ReadTable(ctx, table.NewReader(client, stateTable))
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return Origins{}, nil
	}
	if own == nil {
		return Origins{}, err
	}
	return Origins{Registered: true, FollowedWith: own.Leases}, err
}

// NoteFollowed notes the lease table of the processes that follow the stream. It must exist: a crash leaves no note without one.
func (e *Engine) NoteFollowed(ctx context.Context, leaseTable string) error {
	own, err := registry.ReadTable(ctx, e.tables.Reader)
	if err != nil || own != nil && own.Leases == leaseTable {
		return err
	}
	c := table.NewExpression()
	set := c.Format("SET %n = %v", state.LeasesAttribute, table.Text(leaseTable))
	sameState := c.Format("%n = %v", "incarnation", table.Text(e.planner.Incarnation))
	noted, err := e.tables.UpdateState(ctx, "", "noting the lease table in the registry", state.TableKey(), set, sameState, c)
	if err == nil && !noted {
		return registry.ErrEpochMoved
	}
	return err
}
