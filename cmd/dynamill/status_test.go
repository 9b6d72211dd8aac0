package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/status"
	"github.com/dynamill/dynamill/internal/projections"
)

func (w *world) status(args ...string) status.Report {
	w.t.Helper()
	code, stdout, stderr := w.call(append([]string{"status", "--json"}, args...)...)
	if code != ending.ExitDone {
		w.t.Fatalf("status: exit code %d, %s", code, stderr)
	}
	var s status.Report
	w.must(json.Unmarshal([]byte(stdout), &s))
	return s
}

func (w *world) tables() (names []string) {
	w.t.Helper()
	pages := dynamodb.NewListTablesPaginator(w.client, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.t.Context())
		w.must(err)
		for _, name := range page.TableNames {
			if strings.HasPrefix(name, w.table) {
				names = append(names, name)
			}
		}
	}
	return names
}

func TestStatusFollowsATableFromNothingToLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	code, stdout, stderr := w.call("status")
	if code != ending.ExitEnvironment || stdout != "" {
		t.Errorf("before anything ran: exit code %d, %q", code, stdout)
	}
	expectSentence(t, stderr, "no state table "+w.table+"-dynamill", "dynamill run")
	if tables := w.tables(); len(tables) != 1 {
		t.Errorf("tables %v, want the user's alone", tables)
	}

	// Registered, and never run: as a function on Lambda leaves it.
	_, err := projections.Open(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set})
	w.must(err)
	s := w.status()
	if s.Live || len(s.Rules) != len(w.set.Rules) || s.Leases.Exists || s.Epoch != 1 || s.Incarnation == "" {
		t.Errorf("before seeding: %+v", s)
	}
	for _, r := range s.Rules {
		if r.State != "seeding" || !strings.Contains(r.Note, "dynamill replay") || r.Kind == "" {
			t.Errorf("before seeding: %+v", r)
		}
	}
	if tables := w.tables(); len(tables) != 2 {
		t.Errorf("tables %v: status made one", tables)
	}

	w.put(item("USER#a%2Fb", "GROUP#x", "role", "member"), item("POST#9", "COMMENT#t#c", "userId", "x#y"))
	w.drain()
	s = w.status()
	if !s.Live || s.Seeding != nil || len(s.Tasks) != 0 || len(s.Leases.Shards) == 0 || s.Parked.Total == 0 ||
		s.Parked.ByCode["key.smuggled"] != s.Parked.Total {
		t.Errorf("after run --drain: %+v", s)
	}
	for _, shard := range s.Leases.Shards {
		if shard.Shard == "" || shard.Owner != "" || shard.Checkpoint == "" || shard.Counter == 0 || !strings.HasPrefix(shard.Stream, "arn:") ||
			shard.Shard == shard.Stream || shard.Newest == "" || shard.Lag == nil {
			t.Errorf("shard %+v", shard)
		}
	}
	w.must(os.WriteFile(w.rules, []byte(strings.Replace(communityRules, `role != "banned"`, `role == "admin"`, 1)), 0o600))
	if s = w.status(); s.Live || len(s.Rules) != len(w.set.Rules)+1 {
		t.Errorf("with a file that changes a rule: %+v", s)
	}
	w.must(os.Remove(w.rules))
	w.statusWithoutRules()
	w.parkedWithoutRules()
}

// statusWithoutRules looks at a live table where there is no rule file.
func (w *world) statusWithoutRules() {
	w.t.Helper()
	args := []string{"status", "--table", w.table, "--endpoint", w.endpoint}
	code, stdout, stderr := w.callWith(args)
	if code != ending.ExitDone || !strings.HasPrefix(stdout, w.table+": nothing runs: no record waits, ") ||
		!strings.Contains(stdout, "\nall rules are live; ") {
		w.t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := w.callWith(append(args, "--rules", w.rules)); code != ending.ExitInvalid ||
		!strings.Contains(stderr, "no rule file") {
		w.t.Errorf("with a rule file that is not there: exit code %d, %s", code, stderr)
	}
	code, _, stderr = w.callWith([]string{"status", "--table", w.table + "x", "--state-table", w.table + "-dynamill", "--endpoint",
		w.endpoint})
	if code != ending.ExitEnvironment || !strings.Contains(stderr, "check --table and --state-table") {
		w.t.Errorf("with another table's state: exit code %d, %s", code, stderr)
	}
}

// pipe collects what a process writes while a test looks at it.
type pipe struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *pipe) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.SplitAfter(p.text.String(), "\n")
}

func TestStatusIsWatchedUntilASignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	_, err := projections.Open(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set})
	w.must(err)
	cmd, _, stderr := w.command("status", "--json", "--watch=100ms")
	var out pipe
	cmd.Stdout = &out
	w.must(cmd.Start())
	last := func() (s status.Report) {
		if lines := out.lines(); len(lines) > 1 {
			w.must(json.Unmarshal([]byte(lines[len(lines)-2]), &s))
		}
		return s
	}
	eventually(t, "rules that are seeding are watched", func() bool { return last().Table != "" && !last().Live })
	w.drain()
	eventually(t, "rules that have gone live are watched", func() bool { return last().Live })
	w.must(cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
}

func TestStatusRefusesWhatItCannotLookAt(t *testing.T) {
	t.Setenv(settings.TableVariable, "")
	broken := t.TempDir() + "/dynamill.yaml"
	if err := os.WriteFile(broken, []byte("version: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, ending.ExitInvalid, "no table is named: give --table"},
		{[]string{"--rules", broken, "--table", "app"}, ending.ExitInvalid, "version"},
		{[]string{"--table", "app", "--watch=50ms"}, ending.ExitInvalid, "too short"},
		{[]string{"--table", "app", "--watch", "--check"}, ending.ExitInvalid, "leave out --watch"},
		{[]string{"--table", "app", "--check", "--ready-lag=-1s"}, ending.ExitInvalid, "negative"},
		{[]string{"--table", "app", "--watch=0"}, ending.ExitInvalid, "too short"},
		{[]string{"--table", "app", "--watch", "5s"}, ending.ExitInvalid, "--watch=5s"},
		{[]string{"--table", "app", "surplus"}, ending.ExitInvalid, `no argument "surplus"`},
		{[]string{"--table", "app", "--check", "--endpoint", "http://127.0.0.1:1"}, ending.ExitEnvironment,
			"http://127.0.0.1:1 cannot be reached"},
		{[]string{"--table", "app", "--endpoint", "http://127.0.0.1:1"}, ending.ExitEnvironment, "http://127.0.0.1:1 cannot be reached"},
	} {
		code, stdout, stderr := command(t, append([]string{"status"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %q, %q; want %d and %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}
