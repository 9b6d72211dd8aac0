// Package inspect reads a state table without a rule file: which rules are registered, how far a scan is, which tasks are left, and what
// is parked. It writes nothing.
package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

var _ table.InspectClient = (*dynamodb.Client)(nil)

// ErrUnregistered is wrapped by the errors of Read and OpenParked if there is no state table, or none with a registry.
var ErrUnregistered = registry.ErrUnregistered

// What callers need to read with, and of what they read.
type (
	Client          = table.InspectClient
	RecordedBudget  = state.RecordedBudget
	RecordedMissing = state.RecordedMissing
)

// Inspection is what the state table tells by itself. Its parts are read one after the other, each consistently.
type Inspection struct {
	StateTable  string
	Table       string // the user's, by the name that it had when the state table was made
	Incarnation string
	Epoch       int       // of the rules
	Created     time.Time // the state table
	// BesideFunction says that the processes that follow the stream leave every rule that is not hot to a Lambda function.
	BesideFunction bool
	Rules          []Rule
	Seeding        *Seeding // nil while no place of a scan is stored
	Tasks          []Task
	Parked         map[string]int // how many by code
	Missing        []RecordedMissing
	Budgets        []RecordedBudget // of processes whose work waits, or did a minute ago
}

// Rule is a rule as it is registered.
type Rule struct {
	ID, Name, Fingerprint string
	State                 string // as stored: "seeding", "live", "retiring" or "retired"
	Live                  bool
	Former                bool // not in force any more
	Cleaned               bool // of a former rule: what it wrote is taken back
	Epoch                 int  // of the rules, in which it was registered

	// Of a hot rule; 0 of others.
	Generation, Counted int // the newest generation, and the one that items show
	Shards              int // that the newest generation knows
}

// Seeding is the place of the scan that is under way, or was when its process ended.
type Seeding struct {
	// "derive" derives what the items ask for, "tally" counts for hot rules, "show" then writes computed values; "clean" and
	// "sweep" take back what former rules wrote
	Phase string `json:"phase"`
	Level int    `json:"level"` // of the rules that the scan is for; -1 for all
	Items int64  `json:"items"` // seen in this scan, to the last place that was saved
}

// Task is what is left of a large fan-out.
type Task struct {
	Rule     string // its name
	Parent   change.Key
	Children int       // looked at so far, those that refer to the parent written
	Since    time.Time // the rest of the fan-out became a task; zero if the row does not say
}

// LeavesToFunction reports whether the processes that follow with leases keep some rules, and leave the others to a Lambda function.
func (i *Inspection) LeavesToFunction() bool {
	return i.BesideFunction && slices.ContainsFunc(i.Rules, func(r Rule) bool { return !r.Former && r.Generation > 0 })
}

// Live reports whether every rule is in force and shows what it derives, and nothing is left of former rules.
func (i *Inspection) Live() bool {
	return i.Seeding == nil && slices.ContainsFunc(i.Rules, func(r Rule) bool { return !r.Former }) &&
		!slices.ContainsFunc(i.Rules, func(r Rule) bool { return !r.Live && !r.Cleaned })
}

// Read reads a state table and writes nothing. Without a registry it returns a *projections.SetupError that wraps
// ErrUnregistered.
func Read(ctx context.Context, client Client, stateTable string) (*Inspection, error) {
	rd, found, err := begin(ctx, client, stateTable)
	if err != nil {
		return nil, err
	}
	// After the rules: if all of them are live, and no scan is under way afterwards, everything is live.
	if found.Seeding, err = rd.readSeeding(ctx); err != nil {
		return nil, err
	}
	if found.Tasks, err = Tasks(ctx, rd.rows, rd.planner); err != nil {
		return nil, err
	}
	if found.Parked, err = rd.ParkedCodes(ctx); err != nil {
		return nil, err
	}
	if found.Budgets, err = rd.readBudgets(ctx); err != nil {
		return nil, err
	}
	if err := rd.countShards(ctx, found.Rules); err != nil {
		return nil, err
	}
	found.Missing, err = sightings.ReadRecorded(ctx, rd.rows, rd.planner)
	return found, err
}

// begin reads the registry, and returns a reader of the state table and what is found so far.
func begin(ctx context.Context, client Client, stateTable string) (*reader, *Inspection, error) {
	rd := &reader{NewParkedReader(table.NewReader(client, stateTable), &plan.Planner{})}
	own, known, err := registry.Read(ctx, rd.rows)
	if errors.As(err, new(*ddb.ResourceNotFoundException)) || err == nil && own == nil {
		err = registry.Unregistered(stateTable, err)
	}
	if err != nil {
		return nil, nil, err
	}
	rd.planner.Incarnation, rd.planner.Epoch = own.Incarnation, own.Epoch
	found := &Inspection{
		StateTable: stateTable, Table: own.Name, Created: own.Created, Incarnation: rd.planner.Incarnation, Epoch: rd.planner.Epoch,
		BesideFunction: own.BesideFunction, Rules: rd.listRules(known),
	}
	return rd, found, nil
}

// reader reads a state table without rules: it knows them by what is registered.
type reader struct{ ParkedReader }

// listRules lists the registered rules by id, and binds names to ids: all that tasks and parked records ask of a rule.
func (rd *reader) listRules(known map[string]state.Rule) []Rule {
	set, ids := &rules.Set{}, map[*rules.Rule]string{}
	var formers []*plan.Binding
	found := make([]Rule, 0, len(known))
	for _, id := range slices.Sorted(maps.Keys(known)) {
		item := known[id]
		r := Rule{
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

// countShards counts the shards that the newest generations know.
func (rd *reader) countShards(ctx context.Context, rules []Rule) error {
	for i, r := range rules {
		if b := rd.planner.ByID(r.ID); b != nil && r.Generation > 0 {
			b.Incarnation = rd.planner.Incarnation
			lanes := state.LanesOf(b, int64(r.Generation))
			err := rd.rows.EachRow(ctx, "reading the lanes of "+r.Name, lanes, func(table.Row) { rules[i].Shards++ })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (rd *reader) readSeeding(ctx context.Context) (*Seeding, error) {
	cursor, err := seeding.ReadCursor(ctx, rd.rows, rd.planner)
	if err != nil || cursor.Phase == "" {
		return nil, err
	}
	return &Seeding{Phase: string(cursor.Phase), Level: cursor.Level, Items: cursor.Items}, nil
}

// Tasks lists what is left of large fan-outs, those of former rules aside.
func Tasks(ctx context.Context, rows *table.Reader, p *plan.Planner) ([]Task, error) {
	tasks, _, err := host.ReadTasks(ctx, rows, p)
	found := make([]Task, 0, len(tasks))
	for i, t := range tasks {
		listed := slices.ContainsFunc(tasks[:i], t.IsOfFanOut) // by a range, or for one
		if !t.Parent.Former && !listed {                       // otherwise the worker of tasks ends it
			found = append(found, Task{Rule: t.Parent.Rule.Name, Parent: t.Parent.Key, Children: t.LookedAt(tasks), Since: t.Since})
		}
	}
	return found, err
}

func (rd *reader) readBudgets(ctx context.Context) (found []RecordedBudget, err error) {
	err = rd.rows.EachRow(ctx, "reading what waits for budgets", state.BudgetPartition, func(r table.Row) {
		if b, fresh := state.ReadBudget(r, time.Now()); fresh {
			found = append(found, b)
		}
	})
	return found, err
}

// Origins is what a state table tells of how it came to be used.
type Origins struct {
	Registered bool // the registry is there
	// FollowedWith is the lease table of the processes that followed the stream; "" if none ever did.
	FollowedWith string
	// BesideFunction says that these processes leave every rule that is not hot to a Lambda function.
	BesideFunction bool
}

// ReadOrigins reads a state table and writes nothing. One that is missing or empty has no Origins.
func ReadOrigins(ctx context.Context, client Client, stateTable string) (Origins, error) {
	own, err := registry.ReadTable(ctx, table.NewReader(client, stateTable))
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return Origins{}, nil
	}
	if own == nil {
		return Origins{}, err
	}
	return Origins{Registered: true, FollowedWith: own.Leases, BesideFunction: own.BesideFunction}, err
}
