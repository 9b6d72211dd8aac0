package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
	"github.com/dynamill/dynamill/streamreader"
)

// tableStatus is the result of `status`, and as JSON what docs/operations.md says.
type tableStatus struct {
	Table       string         `json:"table"`
	StateTable  string         `json:"stateTable"`
	Created     string         `json:"created"`
	Incarnation string         `json:"incarnation"`
	Epoch       int            `json:"epoch"`
	Live        bool           `json:"live"`
	Summary     string         `json:"summary"`
	Rules       []ruleStatus   `json:"rules"`
	Seeding     *seedingStatus `json:"seeding"`
	Tasks       []taskStatus   `json:"tasks"`
	Parked      parkedStatus   `json:"parked"`
	Leases      leasesStatus   `json:"leases"`

	seeded bool // every registered rule is live, and shown
}

type ruleStatus struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`
	State string `json:"state"`
	Epoch int    `json:"epoch"`
	Note  string `json:"note,omitempty"`

	live bool
}

type seedingStatus struct {
	Phase string `json:"phase"`
	Level int    `json:"level"`
	Items int64  `json:"items"`
}

type taskStatus struct {
	Rule     string `json:"rule"`
	Parent   string `json:"parent"`
	Children int    `json:"children"`
}

type parkedStatus struct {
	Total  int            `json:"total"`
	ByCode map[string]int `json:"byCode"`
}

type leasesStatus struct {
	Table  string        `json:"table"`
	Exists bool          `json:"exists"`
	Shards []shardStatus `json:"shards"`
}

type shardStatus struct {
	Shard      string `json:"shard"`
	Stream     string `json:"stream"`
	Owner      string `json:"owner"`
	Checkpoint string `json:"checkpoint"`
	Counter    int64  `json:"leaseCounter"`
	Next       string `json:"next"`
	Newest     string `json:"newest"` // "" if no record is done
	Lag        *int64 `json:"lagSeconds"`
}

// newShardStatus is what a row says at a moment. What the owner has done since
// its last write it does not say.
func newShardStatus(l streamreader.Lease, now time.Time) shardStatus {
	s := shardStatus{Shard: l.Shard, Stream: l.Stream, Owner: l.Owner, Checkpoint: l.Checkpoint, Counter: l.Counter, Next: l.Next}
	if !l.Newest.IsZero() {
		s.Newest = l.Newest.UTC().Format(timeForm)
	}
	switch {
	case l.Finished():
	case l.EmptyPolls > 0:
		s.Lag = new(int64)
	case !l.Newest.IsZero():
		seconds := max(0, int64(now.Sub(l.Newest)/time.Second))
		s.Lag = &seconds
	}
	return s
}

func (a *app) statusCommand() *cobra.Command {
	var watch watching
	command := &cobra.Command{
		Use:   "status",
		Short: "Shows how rules, fan-outs, parked records and shards stand",
		Long: "Shows what the state table and the lease table hold: which rules are live or still being seeded, what large\n" +
			"fan-outs have left, what is parked, which process reads each shard of the stream, and how far. It works whether or not\n" +
			"anything runs, writes nothing, and needs no rule file where --table is given; with one it names the kinds of\n" +
			"rules, and tells which of the file's rules are not registered.",
		Example: "  dynamill status --table app\n  dynamill status --table app --watch\n  dynamill status --table app --json",
		Args:    watch.arguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return watch.check(cmd.Flags().Changed("watch")) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.status(cmd.Context(), cmd.Flags().Changed("rules"), watch)
		},
	}
	watch.addTo(command.Flags())
	return command
}

func (a *app) status(ctx context.Context, rulesGiven bool, watch watching) error {
	table, set, err := a.options.inspectedTable(rulesGiven)
	if err != nil {
		return err
	}
	env, err := a.options.connect(ctx, table, a.logger(a.stderr))
	if err != nil {
		return err
	}
	take := func(ctx context.Context) (*tableStatus, error) {
		s, err := takeStatus(ctx, env, a.options.stateTableName(table), set)
		return s, env.classify(err)
	}
	if watch.on {
		return a.watchStatus(ctx, watch, take)
	}
	s, err := take(ctx)
	if err != nil {
		return err
	}
	if a.options.json {
		return a.printJSON(s)
	}
	return a.print("%s", s.text())
}

// takeStatus reads everything once.
func takeStatus(ctx context.Context, env *environment, stateTable string, set *rules.Set) (*tableStatus, error) {
	// The leases first: reading them fails at once where nobody can be reached.
	leases, err := takeLeases(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("reading the leases: %w", err)
	}
	found, err := projections.Inspect(ctx, env.tables, stateTable)
	if err != nil {
		return nil, fmt.Errorf("looking at the state of table %q in %s: %w", env.table, env.where(), err)
	}
	if err := env.checkOwner(stateTable, found.Table); err != nil {
		return nil, err
	}
	return newStatus(found, leases, set), nil
}

// noLeaseTable reads leases where there may be no table for them, and makes none.
type noLeaseTable struct{ streamreader.LeaseClient }

var errNoLeaseTable = errors.New("there is no lease table")

func (noLeaseTable) CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return nil, errNoLeaseTable
}

func takeLeases(ctx context.Context, env *environment) (leasesStatus, error) {
	s := leasesStatus{Table: env.table + leasesSuffix, Exists: true, Shards: []shardStatus{}}
	leases, err := streamreader.NewLeaseTable(noLeaseTable{env.tables}, s.Table).Load(ctx)
	if errors.Is(err, errNoLeaseTable) {
		s.Exists = false
		return s, nil
	}
	for _, l := range leases {
		if !l.OfStream() {
			s.Shards = append(s.Shards, newShardStatus(l, time.Now()))
		}
	}
	slices.SortFunc(s.Shards, func(a, b shardStatus) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard))
	})
	return s, err
}

func newStatus(found *projections.Inspection, leases leasesStatus, set *rules.Set) *tableStatus {
	s := &tableStatus{
		Table: found.Table, StateTable: found.StateTable, Created: found.Created.UTC().Format(timeForm),
		Incarnation: found.Incarnation, Epoch: found.Epoch, Rules: ruleStatuses(found.Rules, set.Rules), Tasks: []taskStatus{},
		Parked: parkedStatus{ByCode: found.Parked}, Leases: leases, seeded: found.Live(),
	}
	s.Live = s.seeded && s.registered() == len(s.Rules)
	if found.Seeding != nil {
		s.Seeding = &seedingStatus{Phase: found.Seeding.Phase, Level: found.Seeding.Level, Items: found.Seeding.Items}
	}
	for _, t := range found.Tasks {
		s.Tasks = append(s.Tasks, taskStatus{Rule: t.Rule, Parent: t.Parent.String(), Children: t.Children})
	}
	for _, n := range found.Parked {
		s.Parked.Total += n
	}
	s.Summary = s.summary()
	return s
}

// ruleStatuses are the registered rules, and behind them those of the file that are not.
func ruleStatuses(registered []projections.InspectedRule, file []*rules.Rule) []ruleStatus {
	kinds, inForce, all := map[string]string{}, map[string]string{}, []ruleStatus{}
	for _, r := range file {
		kinds[r.Fingerprint] = kindName(r.Kind)
	}
	known := map[string]bool{}
	for _, r := range registered {
		if r.Former && r.Cleaned {
			continue
		}
		line := ruleStatus{ID: r.ID, Name: r.Name, Kind: kinds[r.Fingerprint], State: r.State, Epoch: r.Epoch, live: r.Live}
		if r.Former {
			line.Note = stillRetiring
			all = append(all, line)
			continue
		}
		if !r.Live {
			line.Note = seedingNote
		}
		all = append(all, line)
		known[r.Fingerprint], inForce[r.Name] = true, r.Fingerprint
	}
	for _, r := range file {
		if known[r.Fingerprint] {
			continue
		}
		line := ruleStatus{Name: r.Name, Kind: kindName(r.Kind), State: notRegistered, Note: unregisteredNote}
		if old, named := inForce[r.Name]; named && kinds[old] == "" { // else that one is only renamed
			line.Note = changedNote
		}
		all = append(all, line)
	}
	return all
}

// notRegistered is the state of a rule that the file has and the registry has not.
const notRegistered = "not registered"

const (
	unregisteredNote = "nothing has started with this rule file yet: start `dynamill run` with it, or deploy the function with it"
	changedNote      = "it differs from the rule in force of its name, so nothing starts with this rule file: `dynamill plan` says what it would change, and `dynamill replay` carries it out"
)

const (
	remedyRun   = "let `dynamill run` go on, or run `dynamill replay` once"
	seedingNote = "shows no count or sum yet, and not all of its copies and mirror items: " + remedyRun
)

// registered counts the rules that something has started with.
func (s *tableStatus) registered() (n int) {
	for _, r := range s.Rules {
		if r.State != notRegistered {
			n++
		}
	}
	return n
}

// summary says in one line whether everything is live, and what is not.
func (s *tableStatus) summary() string {
	waiting := 0
	for _, r := range s.Rules {
		if !r.live {
			waiting++
		}
	}
	parts := []string{"everything is live"}
	switch {
	case s.registered() == 0:
		parts[0] = "no rule is registered yet"
	case waiting > 0:
		parts[0] = fmt.Sprintf("%s of %s not live yet", grouped(int64(waiting)), counted(len(s.Rules), "rule"))
	case !s.Live:
		parts[0] = "every rule is live, and counts and sums are still being written"
	}
	if len(s.Tasks) > 0 {
		parts = append(parts, counted(len(s.Tasks), "fan-out")+" to be finished")
	}
	if s.Parked.Total > 0 {
		parts = append(parts, grouped(int64(s.Parked.Total))+" parked")
	}
	return strings.Join(parts, "; ")
}
