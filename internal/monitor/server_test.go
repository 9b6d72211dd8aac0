package monitor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/streamreader"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// full has something for every metric to show.
func full() Sample {
	now := time.Unix(1_700_000_000, 500e6)
	return Sample{
		At: now, Status: Status{State: Following},
		Stream: streamreader.Stats{
			Lag: 1500 * time.Millisecond, LastProgress: now, OldestAge: 1250 * time.Millisecond,
			Open: 1, Waiting: 2, Finished: 3, Records: 10, LeaseMoves: 13,
			Shards: []streamreader.ShardStats{
				{ID: "s1", Owner: "w1", Mine: true, Lag: time.Second, OldestAge: time.Second / 2}, {ID: "s2", Waiting: true},
				{ID: "s3", Owner: "w2", Lag: time.Minute, OldestAge: time.Minute},
			},
		},
		Engine: projections.Stats{
			Relevant: 9, Unmatched: 1, Writes: 5, Transactions: 2, Retries: 3, Conflicts: 1, Throttles: 2, Parked: 6, Heals: 7, Tasks: 8,
			TaskPieces: 12, Deleted: 14,
		},
		Unfinished: &projections.Unfinished{Parked: map[string]int{"value.type": 2}, Tasks: 3, OldestTask: now.Add(-time.Minute)},
		Read:       11,
		Budget:     projections.BudgetStats{UnitsPerSecond: 100, Spending: 97.5, Waits: map[string]time.Time{"seeding": now.Add(-time.Minute)}},
		Entities:   []projections.EntityMatches{{Entity: "Task", Records: 10}},
		Missing:    []projections.MissingTargets{{Rule: "count", Targets: 2, Sources: 7}},
		Rules:      []projections.RuleStats{{Rule: "count", Writes: 4, WriteUnits: 8.5}, {Rule: "(engine)", Writes: 1, WriteUnits: 2}},
	}
}

func get(t *testing.T, cfg Config, path string) (int, string) {
	t.Helper()
	answer := httptest.NewRecorder()
	Handler(cfg).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func TestMetricsAreServedAsTheSampleHasThem(t *testing.T) {
	code, body := get(t, Config{Take: full}, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	for _, line := range []string{
		`dynamill_state{state="following"} 1`, `dynamill_state{state="records lost"} 0`, "dynamill_ready 1",
		"dynamill_lag_seconds 1.5", `dynamill_shard_lag_seconds{shard="s1"} 1`,
		"dynamill_oldest_unapplied_seconds 1.25", `dynamill_shard_oldest_unapplied_seconds{shard="s1"} 0.5`,
		`dynamill_parked_entries{code="value.type"} 2`, "dynamill_tasks_left 3", "dynamill_oldest_task_seconds 60",
		`dynamill_shards{status="open"} 1`, `dynamill_shards{status="waiting"} 2`, `dynamill_shards{status="finished"} 3`,
		"dynamill_shards_without_reader 0", "dynamill_last_progress_timestamp_seconds 1.7000000005e+09", "dynamill_lease_moves_total 13",
		"dynamill_records_read_total 11", "dynamill_records_applied_total 10", "dynamill_records_relevant_total 9",
		"dynamill_records_unmatched_total 1",
		`dynamill_records_matched_total{entity="Task"} 10`, `dynamill_missing_targets{rule="count"} 2`,
		`dynamill_missing_target_sources{rule="count"} 7`,
		"dynamill_parked_total 6", "dynamill_heals_total 7", "dynamill_tasks_total 8", "dynamill_task_pieces_total 12",
		`dynamill_writes_total{rule="count"} 4`, `dynamill_write_units_total{rule="count"} 8.5`, `dynamill_write_units_total{rule="(engine)"} 2`,
		"dynamill_write_requests_total 5", "dynamill_transactions_total 2", "dynamill_retries_total 3", "dynamill_conflicts_total 1",
		"dynamill_throttles_total 2", `dynamill_budget_wait_seconds{work="seeding"} 60`,
		"dynamill_budget_units_per_second 100", "dynamill_budget_spending_units_per_second 97.5",
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	for _, shard := range []string{"s2", "s3"} {
		if strings.Contains(body, `dynamill_shard_lag_seconds{shard="`+shard+`"}`) ||
			strings.Contains(body, `dynamill_shard_oldest_unapplied_seconds{shard="`+shard+`"}`) {
			t.Errorf("the lag of %s, which another process knows, is served as a number", shard)
		}
	}
	unread := full()
	unread.Unfinished = nil
	if _, body := get(t, Config{Take: func() Sample { return unread }}, "/metrics"); strings.Contains(body, "dynamill_tasks_left") {
		t.Error("tasks are counted before the state table was read")
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("the names break Prometheus' conventions: %v %v", problems, err)
	}
}

// operations is the document that lists what is served.
const operations = "../../docs/operations.md"

// documented finds what the given expression names in the document's tables.
func documented(t *testing.T, line string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(line).FindAllStringSubmatch(string(text), -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return names
}

func TestTheDocumentListsEveryMetricAndNoOther(t *testing.T) {
	_, body := get(t, Config{Take: full}, "/metrics")
	var served []string
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (dynamill_\S+) (?:counter|gauge)$`).FindAllStringSubmatch(body, -1) {
		served = append(served, match[1])
	}
	slices.Sort(served)
	// A line of the table begins with the metric's name, and its labels in braces.
	if diff := cmp.Diff(documented(t, "(?m)^\\| `(dynamill_[a-z_]+)(?:\\{[a-z]+\\})?` \\| (?:gauge|counter) \\|"), served); diff != "" {
		t.Errorf("documented (-) and served (+):\n%s", diff)
	}
	for _, labelled := range []string{"dynamill_state{state}", "dynamill_writes_total{rule}", "dynamill_shard_lag_seconds{shard}"} {
		if len(documented(t, "(?m)^\\| `("+regexp.QuoteMeta(labelled)+")`")) != 1 {
			t.Errorf("%s is not documented with its label", labelled)
		}
	}
}

func TestTheDocumentListsEveryStateAndNoOther(t *testing.T) {
	var want []string
	for _, state := range States() {
		want = append(want, string(state))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, documented(t, `(?m)^\| \*\*([a-z ]+)\*\* \|`)); diff != "" {
		t.Errorf("states (-) and documented (+):\n%s", diff)
	}
}

func TestReadinessFailsWithItsReasons(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Sample)
		want   []string // none: ready
	}{
		"all is well":                  {func(*Sample) {}, nil},
		"a shard waits for its parent": {func(s *Sample) { s.Stream.Shards[1].Owner = "" }, nil},
		"throttled within the bound":   {func(s *Sample) { s.Status.State = Throttled }, nil},
		"seeding":                      {func(s *Sample) { s.Status.State = Seeding }, nil},
		"not started": {func(s *Sample) { s.Status.State = Starting; s.Stream.LastProgress = time.Time{} },
			[]string{"not started"}},
		"nobody reads a shard": {func(s *Sample) { s.Stream.Shards[0].Owner = "" }, []string{"1 shards have no reader, among them s1"}},
		"lag":                  {func(s *Sample) { s.Stream.Lag = 2 * time.Minute }, []string{"the lag of 2m0s is beyond 1m0s"}},
		"a lag at the bound":   {func(s *Sample) { s.Stream.Lag = time.Minute }, nil},
		"no progress":          {func(s *Sample) { s.Stream.LastProgress = s.At.Add(-time.Hour) }, []string{"no progress for 1h0m0s"}},
		"a shard is skipped": {func(s *Sample) { s.Status = Status{State: ShardSkipped, Remedy: "delete"} },
			[]string{"shard skipped", "remedy: delete"}},
		"expired": {func(s *Sample) { s.Status = Status{State: CredentialsExpired, Remedy: "renew"} },
			[]string{"credentials expired", "remedy: renew"}},
		"ended": {func(s *Sample) {
			s.Status = Status{State: RecordsLost, Remedy: "start over"}
			s.Stream.Lag = time.Hour
		}, []string{"records lost; the lag of 1h0m0s", "state: records lost", "remedy: start over"}},
		"stopped": {func(s *Sample) { s.Status.State = Stopped }, []string{"not ready: stopped"}},
	} {
		t.Run(name, func(t *testing.T) {
			sample := full()
			c.change(&sample)
			code, body := get(t, Config{Take: func() Sample { return sample }, LagMax: time.Minute}, "/readyz")
			if ready := code == http.StatusOK; ready != (len(c.want) == 0) || ready != strings.HasPrefix(body, "ready\n") {
				t.Errorf("status %d: %s", code, body)
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("%q is not in %q", want, body)
				}
			}
			if !strings.Contains(body, "state: "+string(sample.Status.State)) {
				t.Errorf("the state is not in %q", body)
			}
			if code, _ := get(t, Config{Take: func() Sample { return sample }}, "/healthz"); code != http.StatusOK {
				t.Errorf("/healthz says %d: a restart would heal nothing", code)
			}
		})
	}
	late := full()
	late.Stream.Lag, late.Stream.LastProgress = time.Hour, late.At.Add(-time.Hour)
	if code, _ := get(t, Config{Take: func() Sample { return late }}, "/readyz"); code != http.StatusOK {
		t.Error("without a bound lag counts")
	}
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	for _, asked := range []bool{false, true} {
		if code, _ := get(t, Config{Take: full, Profile: asked}, "/debug/pprof/cmdline"); (code == http.StatusOK) != asked {
			t.Errorf("asked for is %v, status %d", asked, code)
		}
	}
}

func TestAServerListensUntilItIsClosed(t *testing.T) {
	server, err := Listen(t.Context(), "127.0.0.1:0", Config{Take: full})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + server.Addr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "alive\n" {
		t.Errorf("%q %v", body, err)
	}
	answer.Body.Close()
	if _, err := Listen(t.Context(), server.Addr(), Config{Take: full}); err == nil {
		t.Error("an address in use is taken twice")
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	answer, err = client.Get("http://" + server.Addr() + "/healthz")
	if err != nil {
		return
	}
	defer answer.Body.Close() // another server may have been given the port
	if body, err := io.ReadAll(answer.Body); err == nil && string(body) == "alive\n" {
		t.Error("it answers after it was closed")
	}
}
