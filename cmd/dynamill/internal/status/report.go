package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// Report is the result of `status`, and as JSON what docs/operations.md says.
type Report struct {
	Table       string           `json:"table"`
	StateTable  string           `json:"stateTable"`
	Created     string           `json:"created"`
	Incarnation string           `json:"incarnation"`
	Epoch       int              `json:"epoch"`
	Live        bool             `json:"live"`
	Health      healthStatus     `json:"health"`
	Summary     string           `json:"summary"`
	Rules       []ruleStatus     `json:"rules"`
	Seeding     *inspect.Seeding `json:"seeding"`
	Tasks       []taskStatus     `json:"tasks"`
	Waits       []budgetWait     `json:"budgetWaits"`
	Parked      parkedStatus     `json:"parked"`
	Leases      Leases           `json:"leases"`

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

	// Of a rule that counts by stream position only.
	Generation int `json:"generation,omitempty"` // of its counts: the newest
	Shown      int `json:"generationShown,omitempty"`
	Shards     int `json:"generationShards,omitempty"` // of the stream, that the newest generation knows

	live bool
}

type taskStatus struct {
	Rule     string `json:"rule"`
	Parent   string `json:"parent"`
	Children int    `json:"children"`
	Since    string `json:"since"` // "" if the row does not say
}

type budgetWait struct {
	Work           string `json:"work"`
	Since          string `json:"since"`
	UnitsPerSecond int    `json:"unitsPerSecond"`
	Spending       int    `json:"spending"` // units per second
	Process        string `json:"process"`
	At             string `json:"at"`
}

type parkedStatus struct {
	Total  int            `json:"total"`
	ByCode map[string]int `json:"byCode"`
}

// Leases are the rows of the lease table.
type Leases struct {
	Table  string  `json:"table"`
	Exists bool    `json:"exists"`
	Shards []Shard `json:"shards"`
}

// Shard is one shard of a stream, as its lease row tells.
type Shard struct {
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

// newShard is what a row says at a moment. What the owner has done since its last write it does not say.
func newShard(l leases.Lease, now time.Time) Shard {
	s := Shard{Shard: l.Shard, Stream: l.Stream, Owner: l.Owner, Checkpoint: l.Checkpoint, Counter: l.Counter, Newest: output.Time(l.Newest)}
	switch {
	case l.Finished():
	case l.EmptyPolls > 0:
		s.Lag = new(int64)
	case !l.Newest.IsZero():
		s.Lag = wholeSeconds(max(0, now.Sub(l.Newest)))
	}
	return s
}

func shardsOf(rows []leases.Lease, now time.Time) []Shard {
	shards := []Shard{}
	for _, l := range rows {
		if l.OfShard() {
			shards = append(shards, newShard(l, now))
		}
	}
	slices.SortFunc(shards, func(a, b Shard) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard))
	})
	return shards
}

func newReport(found *inspect.Inspection, leases Leases, set *rules.Set) *Report {
	s := &Report{
		Table: found.Table, StateTable: found.StateTable, Created: output.Time(found.Created),
		Incarnation: found.Incarnation, Epoch: found.Epoch, Rules: ruleStatuses(found.Rules, set.Rules), Tasks: []taskStatus{},
		Waits:  []budgetWait{},
		Parked: parkedStatus{ByCode: found.Parked}, Leases: leases, Seeding: found.Seeding, seeded: found.Live(), registered: true,
		Missing: recordedMissingOf(found.Missing),
	}
	s.Live = s.seeded && s.registeredRules() == len(s.Rules)
	for _, t := range found.Tasks {
		s.Tasks = append(s.Tasks, taskStatus{Rule: t.Rule, Parent: t.Parent.String(), Children: t.Children, Since: output.Time(t.Since)})
	}
	for _, b := range found.Budgets {
		for _, work := range slices.Sorted(maps.Keys(b.Waits)) {
			since := output.Time(b.Waits[work])
			s.Waits = append(s.Waits, budgetWait{work, since, b.UnitsPerSecond, int(b.Spending), b.Process, output.Time(b.At)})
		}
	}
	for _, n := range found.Parked {
		s.Parked.Total += n
	}
	s.Summary = s.summary()
	return s
}

// ruleStatuses are the registered rules, and behind them those of the file that are not.
func ruleStatuses(registered []inspect.Rule, file []*rules.Rule) []ruleStatus {
	kinds, inForce, all := map[string]string{}, map[string]string{}, []ruleStatus{}
	for _, r := range file {
		kinds[r.Fingerprint] = r.KindName()
	}
	known := map[string]bool{}
	for _, r := range registered {
		if r.Former && r.Cleaned {
			continue
		}
		line := ruleStatus{ID: r.ID, Name: r.Name, Kind: kinds[r.Fingerprint], State: r.State, Epoch: r.Epoch, live: r.Live}
		line.Generation, line.Shown, line.Shards = r.Generation, r.Counted, r.Shards
		if r.Former {
			line.Note = report.StillRetiring
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
		line := ruleStatus{Name: r.Name, Kind: r.KindName(), State: notRegistered, Note: unregisteredNote}
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
	changedNote      = "it differs from the rule in force of its name, so nothing starts with this rule file: `dynamill plan` says what it " +
		"would change, and `dynamill replay` carries it out"
)

const (
	remedyRun   = "let `dynamill run` finish, or run `dynamill replay` once"
	seedingNote = "does not show all that it derives yet: " + remedyRun
)

// registeredRules counts the rules that something has started with.
func (s *Report) registeredRules() (n int) {
	for _, r := range s.Rules {
		if r.State != notRegistered {
			n++
		}
	}
	return n
}

// summary says in one line whether all rules are live, and what is not. The first line says how the table is followed.
func (s *Report) summary() string {
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
		parts[0] = printable.Grouped(waiting) + " of " + printable.Counted(len(s.Rules), "rule") + " not live yet"
	case !s.Live:
		parts[0] = "every rule is live, and computed values are still being written"
	}
	if len(s.Tasks) > 0 {
		parts = append(parts, printable.Counted(len(s.Tasks), "fan-out")+" to be finished")
	}
	if s.Parked.Total > 0 {
		parts = append(parts, printable.Grouped(s.Parked.Total)+" parked")
	}
	return strings.Join(parts, "; ")
}

// healthStatus says as JSON how the table is followed.
type healthStatus struct {
	State     string `json:"state"`
	Healthy   bool   `json:"healthy"`
	Line      string `json:"line"` // the first line's sentence, for people
	Since     string `json:"since"`
	Lag       *int64 `json:"lagSeconds"`      // null if it is not known
	Oldest    string `json:"oldestUnapplied"` // "" if no record waits, or it is not known
	Waiting   *int   `json:"waiting"`         // null if it is not known
	AtLeast   bool   `json:"waitingAtLeast"`
	Unknown   string `json:"waitingUnknown"`
	Processes int    `json:"processes"`

	Functions        []health.Function    `json:"functions"`
	FunctionsUnknown string               `json:"functionsUnknown"`
	Shards           []shardBacklogStatus `json:"shards"`
}

type shardBacklogStatus struct {
	Shard   string `json:"shard"`
	Waiting int    `json:"waiting"`
	AtLeast bool   `json:"waitingAtLeast"`
	Oldest  string `json:"oldestUnapplied"`
	Lag     *int64 `json:"lagSeconds"`
	Lost    bool   `json:"lost"`
	Skipped bool   `json:"skipped"`
	Unknown string `json:"unknown"`
}

func newHealthStatus(h health.Health, f health.Facts) healthStatus {
	s := healthStatus{
		State: string(h.State), Healthy: h.Healthy(), Line: h.Line(), Since: output.Time(h.Since), Oldest: output.Time(h.Waiting.Oldest),
		AtLeast: h.Waiting.AtLeast, Unknown: h.Waiting.Unknown,
		Functions: append([]health.Function{}, f.Functions.List...), FunctionsUnknown: f.Functions.Unknown, Shards: []shardBacklogStatus{},
	}
	if h.LagKnown {
		s.Lag, s.Waiting = wholeSeconds(h.Lag), &h.Waiting.Records
	}
	for _, o := range f.Owners {
		if !o.Silent && !o.Unsure {
			s.Processes++
		}
	}
	for _, shard := range f.Shards {
		one := shardBacklogStatus{
			Shard: shard.ID, Waiting: shard.Records, AtLeast: shard.AtLeast, Oldest: output.Time(shard.Oldest),
			Lost: shard.Lost, Skipped: shard.Skipped, Unknown: shard.Unknown,
		}
		switch {
		case !shard.Oldest.IsZero():
			one.Lag = wholeSeconds(max(0, f.Now.Sub(shard.Oldest)))
		case shard.Unknown == "" && !shard.Lost && !shard.Skipped:
			one.Lag = new(int64)
		}
		s.Shards = append(s.Shards, one)
	}
	return s
}

// correct replaces lags and owners of the lease rows by what was seen of the stream and of the owners.
func (s *Leases) correct(shards []shardBacklogStatus, owners []health.Owner) {
	for i := range s.Shards {
		row := &s.Shards[i]
		for _, shard := range shards {
			if shard.Shard == row.Shard && shard.Lag != nil {
				row.Lag, row.looked = shard.Lag, true
			}
		}
		row.Silent = slices.ContainsFunc(owners, func(o health.Owner) bool { return o.Silent && o.Name == row.Owner })
	}
}

func wholeSeconds(d time.Duration) *int64 { return new(int64(d / time.Second)) }

// recordedMissing is, as JSON, a rule whose sources point at items that do not exist, as a process wrote it down.
type recordedMissing struct {
	report.MissingReport
	At    string `json:"at"`
	Whole bool   `json:"whole"` // after a look at the whole table

	text string
}

func recordedMissingOf(rows []inspect.RecordedMissing) []recordedMissing {
	all := []recordedMissing{}
	for _, r := range rows {
		all = append(all, recordedMissing{report.MissingOf(r.MissingTargets), output.Time(r.At), r.Whole, sighting.MissingText(r.MissingTargets)})
	}
	return all
}
