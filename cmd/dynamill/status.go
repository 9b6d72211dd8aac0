package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// tableStatus is the result of `status`, and as JSON what docs/operations.md says.
type tableStatus struct {
	Table       string         `json:"table"`
	StateTable  string         `json:"stateTable"`
	Created     string         `json:"created"`
	Incarnation string         `json:"incarnation"`
	Epoch       int            `json:"epoch"`
	Live        bool           `json:"live"`
	Health      healthStatus   `json:"health"`
	Summary     string         `json:"summary"`
	Rules       []ruleStatus   `json:"rules"`
	Seeding     *seedingStatus `json:"seeding"`
	Tasks       []taskStatus   `json:"tasks"`
	Parked      parkedStatus   `json:"parked"`
	Leases      leasesStatus   `json:"leases"`

	Missing []recordedMissing `json:"missingTargets"`

	seeded     bool // every registered rule is live, and shown
	registered bool // there is a state table that says so
	followed   health.Health
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
	Since    string `json:"since"` // "" if the row does not say
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
	Newest     string `json:"newest"` // "" if no record is done
	Lag        *int64 `json:"lagSeconds"`
	Silent     bool   `json:"ownerSilent"` // the owner has not renewed its lease for more than its term

	looked bool // the lag is that of the stream behind the checkpoint, not of the row alone
}

// newShardStatus is what a row says at a moment. What the owner has done since
// its last write it does not say.
func newShardStatus(l leases.Lease, now time.Time) shardStatus {
	s := shardStatus{Shard: l.Shard, Stream: l.Stream, Owner: l.Owner, Checkpoint: l.Checkpoint, Counter: l.Counter}
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

// statusOptions are the flags of `status`.
type statusOptions struct {
	watch  watching
	check  bool
	lagMax time.Duration
}

func (o *statusOptions) addTo(flags *pflag.FlagSet) {
	o.watch.addTo(flags)
	flags.BoolVar(&o.check, "check", false, "print the first line only, and end with exit code 1 unless the table is followed")
	flags.DurationVar(&o.lagMax, "ready-lag", readyLagDefault, "a lag beyond this `duration` is not healthy (0: lag does not count)")
}

// readyLagDefault is the bound of `run` and `status`: beyond it a lag needs a look.
const readyLagDefault = 5 * time.Minute

func (o *statusOptions) refuse(changed func(flag string) bool) error {
	switch {
	case o.check && changed("watch"):
		return invalid("--check looks once: leave out --watch")
	case o.lagMax < 0:
		return invalid("--ready-lag %s is negative: give a duration such as 5m", o.lagMax)
	}
	return o.watch.check(changed("watch"))
}

const statusHelp = `Says in its first line how the table is followed: following, catching up, nothing runs, or records lost, with what to do.
Then it shows which rules are live or still being seeded, what large fan-outs have left, what is parked, which process reads
each shard of the stream, and how far. It works whether or not anything runs, writes nothing, and needs no rule file where
--table is given; with one it names the kinds of rules, and tells which of the file's rules are not registered.

It reads the lease table and the state table, and of each shard up to 3,000 records behind its checkpoint. Where lease rows
name an owner, it reads them again until the owner renews one, for at most one and a half of its --lease-term.

--check prints the first line only. It ends with exit code 0 if the table is followed, 1 if not or if the lag is beyond
--ready-lag, and 3 if that cannot be found out: for cron jobs and containers' health checks.`

func (a *app) statusCommand() *cobra.Command {
	var options statusOptions
	command := &cobra.Command{
		Use:   "status",
		Short: "Shows whether the table is followed, and how rules, fan-outs, parked records and shards stand",
		Long:  statusHelp,
		Example: "  dynamill status --table app\n  dynamill status --table app --watch\n  dynamill status --table app --json\n" +
			"  dynamill status --table app --check || echo 'app is not followed'",
		Args:    options.watch.arguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return options.refuse(cmd.Flags().Changed) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.status(cmd.Context(), cmd.Flags().Changed("rules"), options)
		},
	}
	options.addTo(command.Flags())
	return command
}

func (a *app) status(ctx context.Context, rulesGiven bool, options statusOptions) error {
	table, set, err := a.options.inspectedTable(rulesGiven)
	if err != nil {
		return err
	}
	env, err := a.options.connect(ctx, table, a.logger(a.stderr))
	if err != nil {
		return err
	}
	look := followedLook{env: env, lagMax: options.lagMax}
	take := func(ctx context.Context) (*tableStatus, error) {
		s, err := takeStatus(ctx, env, set, &look)
		return s, env.classify(err)
	}
	if options.watch.on {
		return a.watchStatus(ctx, options.watch, take)
	}
	s, err := take(ctx)
	switch {
	case err != nil:
		return err
	case options.check:
		return a.checkStatus(s)
	case !s.registered:
		return unsuited("%s", s.line())
	case a.options.json:
		return a.printJSON(s)
	}
	return a.printText(s.text())
}

// checkStatus prints the first line, and says by an error that the table is not healthy.
func (a *app) checkStatus(s *tableStatus) error {
	var err error
	if a.options.json {
		err = a.printJSON(s)
	} else {
		err = a.print("%s\n", s.line())
	}
	switch {
	case err != nil:
		return err
	case !s.followed.Decided():
		return unsuited("whether table %q is followed could not be found out", s.Table)
	case !s.followed.Healthy():
		return fmt.Errorf("table %q is not healthy: %s", s.Table, s.followed.State)
	}
	return nil
}

// takeStatus reads everything once.
func takeStatus(ctx context.Context, env *environment, set *rules.Set, look *followedLook) (*tableStatus, error) {
	// The leases first: reading them fails at once if the endpoint cannot be reached.
	leases, err := env.readLeases(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the leases: %w", err)
	}
	found, err := projections.Inspect(ctx, env.tables, env.stateTable)
	var setup *projections.SetupError
	unregistered := errors.As(err, &setup)
	if err != nil && !unregistered {
		return nil, fmt.Errorf("looking at the state of table %q in %s: %w", env.table, env.where(), err)
	}
	if !unregistered {
		if err := env.checkOwner(found.Table); err != nil {
			return nil, err
		}
	}
	facts, err := look.facts(ctx, leases)
	if err != nil {
		return nil, err
	}
	facts.StateTable = health.Existence{Name: env.stateTable, There: !unregistered}
	s := unregisteredStatus(env)
	if !unregistered {
		facts.StateTable.Created = found.Created
		s = newStatus(found, newLeasesStatus(env.leaseTable, leases, facts.Now), set)
	}
	s.followed = health.Judge(facts)
	s.Health = newHealthStatus(s.followed, facts)
	s.Leases.correct(s.Health.Shards, facts.Owners)
	return s, nil
}

// unregisteredStatus is that of a table without a state table.
func unregisteredStatus(env *environment) *tableStatus {
	return &tableStatus{
		Table: env.table, StateTable: env.stateTable, Summary: "no rule is registered yet", Rules: []ruleStatus{}, Tasks: []taskStatus{},
		Parked: parkedStatus{ByCode: map[string]int{}}, Leases: leasesStatus{Table: env.leaseTable, Shards: []shardStatus{}},
	}
}

func newLeasesStatus(table string, leases leaseRows, now time.Time) leasesStatus {
	s := leasesStatus{Table: table, Exists: leases.exists, Shards: []shardStatus{}}
	for _, l := range leases.rows {
		if l.OfShard() {
			s.Shards = append(s.Shards, newShardStatus(l, now))
		}
	}
	slices.SortFunc(s.Shards, func(a, b shardStatus) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard))
	})
	return s
}

func newStatus(found *projections.Inspection, leases leasesStatus, set *rules.Set) *tableStatus {
	s := &tableStatus{
		Table: found.Table, StateTable: found.StateTable, Created: found.Created.UTC().Format(timeForm),
		Incarnation: found.Incarnation, Epoch: found.Epoch, Rules: ruleStatuses(found.Rules, set.Rules), Tasks: []taskStatus{},
		Parked: parkedStatus{ByCode: found.Parked}, Leases: leases, seeded: found.Live(), registered: true,
		Missing: recordedMissingOf(found.Missing),
	}
	s.Live = s.seeded && s.registeredRules() == len(s.Rules)
	if found.Seeding != nil {
		s.Seeding = &seedingStatus{Phase: found.Seeding.Phase, Level: found.Seeding.Level, Items: found.Seeding.Items}
	}
	for _, t := range found.Tasks {
		s.Tasks = append(s.Tasks, taskStatus{Rule: t.Rule, Parent: t.Parent.String(), Children: t.Children, Since: timeText(t.Since)})
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
		kinds[r.Fingerprint] = r.Kind.Word()
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
		line := ruleStatus{Name: r.Name, Kind: r.Kind.Word(), State: notRegistered, Note: unregisteredNote}
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

// registeredRules counts the rules that something has started with.
func (s *tableStatus) registeredRules() (n int) {
	for _, r := range s.Rules {
		if r.State != notRegistered {
			n++
		}
	}
	return n
}

// summary says in one line whether all rules are live, and what is not. Whether a process follows the
// table is the first line's matter.
func (s *tableStatus) summary() string {
	waiting := 0
	for _, r := range s.Rules {
		if !r.live {
			waiting++
		}
	}
	parts := []string{"all rules are live"}
	switch {
	case s.registeredRules() == 0:
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
