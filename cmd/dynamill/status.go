package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

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
}

type ruleStatus struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`
	State string `json:"state"`
	Epoch int    `json:"epoch"`
	Note  string `json:"note,omitempty"`
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
}

func (a *app) statusCommand() *cobra.Command {
	var watch watching
	command := &cobra.Command{
		Use:   "status",
		Short: "Shows how rules, fan-outs, parked records and shards stand",
		Long: "Shows what the state table and the lease table hold: which rules are live or still being seeded, what large\n" +
			"fan-outs have left, what is parked, and how far each shard of the stream is done. It works whether or not\n" +
			"anything runs, writes nothing, and needs no rule file where --table is given; with one it names the kinds of rules.",
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
	table, set, err := a.statusTable(rulesGiven)
	if err != nil {
		return err
	}
	env, err := a.options.connect(ctx, table, a.logger(a.stderr))
	if err != nil {
		return err
	}
	look := func(ctx context.Context) (*tableStatus, error) {
		s, err := takeStatus(ctx, env, a.options.stateTableName(table), set)
		return s, env.classify(err)
	}
	if watch.on {
		return a.watchStatus(ctx, watch, look)
	}
	s, err := look(ctx)
	if err != nil {
		return err
	}
	if a.options.json {
		return a.printJSON(s)
	}
	return a.print("%s", s.text())
}

// statusTable names the table to look at. The rules are those of the file if
// there is one that can be read; without it a table must be named otherwise.
func (a *app) statusTable(rulesGiven bool) (string, *rules.Set, error) {
	set, err := a.options.load()
	if err == nil {
		table, err := a.options.tableName(set)
		return table, set, err
	}
	table := a.options.table
	_, look := os.Stat(a.options.rules)
	missing := errors.Is(look, fs.ErrNotExist)
	if missing { // a file that is there, but broken, may name another table than the environment
		table = cmp.Or(table, os.Getenv(tableVariable))
	}
	switch {
	case rulesGiven:
		return "", nil, err
	case table != "":
		return table, &rules.Set{}, nil
	case missing:
		return "", nil, invalid("no table is named: give --table NAME, set %s, or run dynamill where the rule file is", tableVariable)
	}
	return "", nil, err
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
	if found.Table != env.table {
		return nil, unsuited("state table %s is that of table %q, not of %q: check --table and --state-table", stateTable, found.Table, env.table)
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
		s.Shards = append(s.Shards, shardStatus{Shard: l.Shard, Stream: l.Stream, Owner: l.Owner, Checkpoint: l.Checkpoint, Counter: l.Counter})
	}
	slices.SortFunc(s.Shards, func(a, b shardStatus) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard))
	})
	return s, err
}

func newStatus(found *projections.Inspection, leases leasesStatus, set *rules.Set) *tableStatus {
	s := &tableStatus{
		Table: found.Table, StateTable: found.StateTable, Created: found.Created.UTC().Format(timeForm),
		Incarnation: found.Incarnation, Epoch: found.Epoch, Live: found.Live(), Rules: []ruleStatus{}, Tasks: []taskStatus{},
		Parked: parkedStatus{ByCode: found.Parked}, Leases: leases,
	}
	kinds := map[string]string{}
	for _, r := range set.Rules {
		kinds[r.Fingerprint] = kindName(r.Kind)
	}
	for _, r := range found.Rules {
		line := ruleStatus{ID: r.ID, Name: r.Name, Kind: kinds[r.Fingerprint], State: r.State, Epoch: r.Epoch}
		if !r.Live {
			line.Note = seedingNote
		}
		s.Rules = append(s.Rules, line)
	}
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

const (
	remedyRun   = "run `dynamill run --drain` once, or let `dynamill run` go on"
	seedingNote = "shows no count or sum yet, and not all of its copies and mirror items: " + remedyRun
)

// summary says in one line whether everything is live, and what is not.
func (s *tableStatus) summary() string {
	waiting := 0
	for _, r := range s.Rules {
		if r.Note != "" {
			waiting++
		}
	}
	parts := []string{"everything is live"}
	switch {
	case len(s.Rules) == 0:
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
