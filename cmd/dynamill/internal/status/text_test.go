package status

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// inspected is a state table in the middle of its work.
func inspected() *inspect.Inspection {
	return &inspect.Inspection{
		StateTable: "app-dynamill", Table: "app", Incarnation: "5c8e", Epoch: 2, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Rules: []inspect.Rule{
			{ID: "comment-count", Name: "comment-count", Fingerprint: "f1", State: "live", Live: true, Epoch: 1},
			{ID: "order-total", Name: "total", Fingerprint: "f2", State: "seeding", Epoch: 2},
		},
		Seeding: &inspect.Seeding{Phase: "derive", Level: 1, Items: 12500},
		Tasks: []inspect.Task{{Rule: "comment-author", Parent: change.Key{Partition: "USER#1", Sort: "PROFILE"}, Children: 3000,
			Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
		Parked: map[string]int{"value.type": 2, "key.smuggled": 1},
		Budgets: []inspect.RecordedBudget{{Process: "5c8e01", At: time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC),
			BudgetStats: projections.BudgetStats{UnitsPerSecond: 1000, Spending: 998, Waits: map[string]time.Time{
				"fan-outs": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "seeding": time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}}}},
	}
}

func inspectedLeases() Leases {
	return Leases{Table: "app-dynamill-leases", Exists: true, Shards: []Shard{
		{Shard: "shardId-1", Stream: "arn:old", Checkpoint: "TRIM_HORIZON", Counter: 1},
		{Shard: "shardId-2", Stream: "arn:new", Owner: "host:1", Checkpoint: "SHARD_END", Counter: 7},
		{Shard: "shardId-3", Stream: "arn:new", Owner: "host:\x1b1", Checkpoint: "4200", Counter: 9, Lag: new(int64(75))},
		{Shard: "shardId-4", Stream: "arn:new", Checkpoint: "4300", Counter: 3, Lag: new(int64(5))},
		{Shard: "shardId-5", Stream: "arn:new", Owner: "host:2", Checkpoint: "4400", Counter: 4, Lag: new(int64(0))},
	}}
}

func kindOf(word string) rules.Kind {
	return projections.Kinds[slices.IndexFunc(projections.Kinds, func(k rules.Kind) bool { return k.Word() == word })]
}

func TestStatusIsReadable(t *testing.T) {
	s := newReport(inspected(), inspectedLeases(), &rules.Set{Rules: []*rules.Rule{{Kind: kindOf("count"), Fingerprint: "f1"}}})
	s.followed = health.Health{State: health.Following, Reason: "lag 2s"}
	want := `app: following: lag 2s
1 of 2 rules not live yet; 1 fan-out to be finished; 3 parked (state table app-dynamill, incarnation 5c8e, epoch 2)

rules
  NAME           ID             KIND   STATE    SINCE EPOCH
  comment-count  comment-count  count  live     1
  total          order-total    -      seeding  2

seeding
  deriving what the items ask for, for rules of level 1: 12,500 items so far
  a rule that is not live does not show all that it derives yet: ` +
		"let `dynamill run` finish, or run `dynamill replay` once" + `

fan-outs: 1 to be finished
  RULE            PARENT          CHILDREN SO FAR  SINCE
  comment-author  USER#1/PROFILE  3,000            2026-01-02T03:04:05Z

what waits for a budget
  WORK      SINCE                 UNITS A SECOND  SPENT  PROCESS  AS OF
  fan-outs  2026-01-02T03:04:05Z  1,000           998    5c8e01   2026-01-02T03:10:00Z
  seeding   2026-01-02T03:04:00Z  1,000           998    5c8e01   2026-01-02T03:10:00Z

parked: 3, see ` + "`dynamill parked list`" + `
  CODE          NUMBER
  key.smuggled  1
  value.type    2

shards in lease table app-dynamill-leases
  arn:old
    SHARD      OWNER  LAG  CHECKPOINT    LEASE COUNTER
    shardId-1  -      -    TRIM_HORIZON  1
  arn:new
    SHARD      OWNER       LAG         CHECKPOINT  LEASE COUNTER
    shardId-2  host:1      -           SHARD_END   7
    shardId-3  host:\x1b1  1m15s       4200        9
    shardId-4  -           at most 5s  4300        3
    shardId-5  host:2      0s          4400        4
`
	if diff := cmp.Diff(want, s.Text()); diff != "" {
		t.Error(diff)
	}
}

func TestARowTellsTheLagOfItsShard(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	newest := now.Add(-75 * time.Second)
	for name, c := range map[string]struct {
		row    leases.Lease
		newest string
		lag    *int64
	}{
		"nothing is done":     {leases.Lease{Checkpoint: leases.TrimHorizon}, "", nil},
		"everything is done":  {leases.Lease{Checkpoint: leases.ShardEnd, Newest: newest}, "2026-01-02T03:02:50Z", nil},
		"nothing waits":       {leases.Lease{Checkpoint: "1", Newest: newest, EmptyPolls: 1}, "2026-01-02T03:02:50Z", new(int64(0))},
		"nothing has come":    {leases.Lease{Checkpoint: leases.TrimHorizon, EmptyPolls: 1}, "", new(int64(0))},
		"something waits":     {leases.Lease{Checkpoint: "1", Newest: newest}, "2026-01-02T03:02:50Z", new(int64(75))},
		"clocks do not agree": {leases.Lease{Checkpoint: "1", Newest: now.Add(time.Minute)}, "2026-01-02T03:05:05Z", new(int64(0))},
	} {
		s := newShard(c.row, now)
		if s.Newest != c.newest || (s.Lag == nil) != (c.lag == nil) || s.Lag != nil && *s.Lag != *c.lag {
			t.Errorf("%s: newest %q, lag %s", name, s.Newest, s.lag())
		}
	}
}

func TestRowsOfADeadOwnerAreCorrected(t *testing.T) {
	leases := inspectedLeases()
	leases.correct(
		[]shardBacklogStatus{{Shard: "shardId-3"}, {Shard: "shardId-4", Lag: new(int64(0))},
			{Shard: "shardId-5", Waiting: 1, Lag: new(int64(45))}},
		[]health.Owner{{Name: "host:2", Silent: true}, {Name: "host:\x1b1", Unsure: true}},
	)
	s := Report{Leases: leases, registered: true}
	_, text, _ := strings.Cut(s.Text(), "  arn:new\n")
	want := `    SHARD      OWNER            LAG    CHECKPOINT  LEASE COUNTER
    shardId-2  host:1           -      SHARD_END   7
    shardId-3  host:\x1b1       1m15s  4200        9
    shardId-4  -                0s     4300        3
    shardId-5  host:2 (silent)  45s    4400        4
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

func TestStatusSaysWhatIsNotThere(t *testing.T) {
	found := inspected()
	found.Rules, found.Seeding, found.Tasks, found.Parked, found.Budgets = found.Rules[:1], nil, nil, nil, nil
	s := newReport(found, Leases{Table: "app-dynamill-leases"}, &rules.Set{})
	s.followed = health.Health{State: health.NothingRuns, Remedy: "start it"}
	want := `app: nothing runs; start it
all rules are live (state table app-dynamill, incarnation 5c8e, epoch 2)

rules
  NAME           ID             KIND  STATE  SINCE EPOCH
  comment-count  comment-count  -     live   1

fan-outs: none to be finished

parked: nothing

shards: no lease table app-dynamill-leases, so no ` + "`dynamill run`" + ` has read the stream; with Lambda that is normal
`
	if diff := cmp.Diff(want, s.Text()); diff != "" {
		t.Error(diff)
	}
}

func TestStatusTellsStatesOfSeedingApart(t *testing.T) {
	for _, c := range []struct {
		name    string
		rules   int // of inspected's
		seeding *inspect.Seeding
		summary string
		says    string
	}{
		{"no rule", 0, nil, "no rule is registered yet", "NAME"},
		{"not begun", 2, nil, "1 of 2 rules not live yet", "not begun, or at the first items"},
		{"shown", 1, &inspect.Seeding{Phase: "show", Level: -1, Items: 1},
			"every rule is live, and computed values are still being written", "writing computed values, for rules of all levels: 1 item so far"},
		{"live", 1, nil, "all rules are live", "comment-count"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := inspected()
			found.Rules, found.Seeding, found.Tasks, found.Parked, found.Budgets = found.Rules[:c.rules], c.seeding, nil, nil, nil
			s := newReport(found, inspectedLeases(), &rules.Set{})
			if s.Summary != c.summary || s.Live != (c.name == "live") {
				t.Errorf("live %v, %q", s.Live, s.Summary)
			}
			if !strings.Contains(s.Text(), c.says) {
				t.Errorf("%q is not said:\n%s", c.says, s.Text())
			}
		})
	}
}

// A file that nothing has started with is not live, whatever is registered.
func TestStatusTellsOfRulesThatAreNotRegistered(t *testing.T) {
	found := inspected()
	found.Rules, found.Seeding, found.Tasks, found.Parked, found.Budgets = found.Rules[:1], nil, nil, nil, nil
	s := newReport(found, Leases{Table: "app-dynamill-leases"}, &rules.Set{Rules: []*rules.Rule{
		{Name: "renamed", Kind: kindOf("count"), Fingerprint: "f1"},
		{Name: "comment-count", Kind: kindOf("sum"), Fingerprint: "f3"}, // beside the one that had the name
		{Name: "new", Kind: kindOf("copy"), Fingerprint: "f4"},
	}})
	s.followed.State = health.NotStarted
	want := `app: not started
2 of 3 rules not live yet (state table app-dynamill, incarnation 5c8e, epoch 2)

rules
  NAME           ID             KIND   STATE           SINCE EPOCH
  comment-count  comment-count  count  live            1
  comment-count  -              sum    not registered  -
  new            -              copy   not registered  -
  comment-count is not registered: ` + unregisteredNote + `
  new is not registered: ` + unregisteredNote + `

fan-outs: none to be finished
`
	if text := s.Text(); !strings.HasPrefix(text, want) {
		t.Error(cmp.Diff(want, text))
	}
	if s.Live {
		t.Error("live, although two rules are not registered")
	}
	s = newReport(found, Leases{}, &rules.Set{Rules: []*rules.Rule{{Kind: kindOf("count"), Name: "comment-count", Fingerprint: "changed"}}})
	if s.Live || len(s.Rules) != 2 || s.Rules[1].Note != changedNote {
		t.Errorf("with a changed rule: live %v, %+v", s.Live, s.Rules)
	}
	found.Rules = nil
	s = newReport(found, Leases{}, &rules.Set{Rules: []*rules.Rule{{Kind: kindOf("count"), Name: "new", Fingerprint: "f4"}}})
	if s.Live || s.Summary != "no rule is registered yet" || strings.Contains(s.Text(), "\nseeding\n") {
		t.Errorf("with none registered:\n%s", s.Text())
	}
}

// docs/operations.md names every field of the JSON, and no other.
func TestStatusFieldsAreDocumented(t *testing.T) {
	documented := documentedFields(t)
	all := inspected()
	all.Missing = inspectedMissing()
	all.Rules = slices.Clone(all.Rules)
	all.Rules[0].Generation, all.Rules[0].Counted, all.Rules[0].Shards = 2, 1, 4
	shown := newReport(all, inspectedLeases(), &rules.Set{Rules: []*rules.Rule{{Kind: kindOf("count"), Fingerprint: "f1"}}})
	shown.Health = newHealthStatus(health.Health{}, health.Facts{
		Shards: []health.Shard{{ID: "s1"}}, Functions: health.Functions{List: []health.Function{{Name: "fn"}}},
	})
	raw, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(raw, &whole); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	var visit func(path string, v any)
	visit = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if path == "parked.byCode" {
				return // its names are codes
			}
			for name, inner := range v {
				path := strings.TrimPrefix(path+"."+name, ".")
				if _, list := inner.([]any); list {
					path += "[]"
				}
				there[path] = true
				visit(path, inner)
			}
		case []any:
			for _, inner := range v {
				visit(path, inner)
			}
		}
	}
	visit("", whole)
	if diff := cmp.Diff(documented, there); diff != "" {
		t.Errorf("fields that docs/operations.md names, and those there are (-documented +there):\n%s", diff)
	}
}

// documentedFields are those in the first column of the table of JSON fields.
func documentedFields(t *testing.T) map[string]bool {
	t.Helper()
	document, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(document), "| field | holds |\n|---|---|\n")
	if !found {
		t.Fatal("docs/operations.md has no table of fields")
	}
	fields := map[string]bool{}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		for i, part := range strings.Split(strings.Split(line, "|")[1], "`") {
			if i%2 == 1 {
				fields[part] = true
			}
		}
	}
	return fields
}

func TestAScreenIsNeverOverfull(t *testing.T) {
	for _, c := range []struct {
		text          string
		width, height int
		want          string
	}{
		{"a\nb\nc\n", 80, 4, "a\nb\nc\n"},
		{"a\nb\nc\nd\n", 80, 4, "a\nb\n... 2 lines more\n"},
		{"wörtlich\n", 4, 24, "wört\n"},
		{"a\nb\nc\n", 80, 1, "a\n... 2 lines more\n"},
	} {
		if got := fitted(c.text, c.width, c.height); got != c.want {
			t.Errorf("%q on %d by %d is %q, want %q", c.text, c.width, c.height, got, c.want)
		}
	}
}
