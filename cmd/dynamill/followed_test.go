package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/status"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
)

// checkTerm is the lease term of the processes that are checked.
const checkTerm = 3 * time.Second

// check runs `status --check` and returns its exit code and line.
func (w *world) check(args ...string) (code int, line string) {
	w.t.Helper()
	code, stdout, stderr := w.call(append([]string{"status", "--check"}, args...)...)
	if strings.Count(stdout, "\n") != 1 || !strings.HasPrefix(stdout, w.table+": ") {
		w.t.Errorf("status --check prints %q, want one line of the table; %s", stdout, stderr)
	}
	return code, strings.TrimPrefix(strings.TrimSuffix(stdout, "\n"), w.table+": ")
}

func (w *world) expectCheck(when string, code int, begins string, args ...string) string {
	w.t.Helper()
	got, line := w.check(args...)
	if got != code || !strings.HasPrefix(line, begins) {
		w.t.Errorf("%s: exit code %d, %q; want %d and %q", when, got, line, code, begins)
	}
	return line
}

// expectParts checks what a line holds.
func expectParts(t *testing.T, line string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(line, part) {
			t.Errorf("%q is not in %q", part, line)
		}
	}
}

// runs starts a `dynamill run` and waits until it has nothing left to do.
func (w *world) runs(args ...string) *exec.Cmd {
	w.t.Helper()
	cmd, _, _ := w.command(append([]string{"run", "--lease-term", checkTerm.String()}, args...)...)
	w.must(cmd.Start())
	w.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	eventually(w.t, "a process follows the table", func() bool {
		code, line := w.check()
		return code == ending.ExitDone && strings.HasPrefix(line, "following: ")
	})
	eventually(w.t, "the rules are live and no record waits", func() bool { // seeding writes records of its own
		s := w.status()
		return s.Live && s.Health.Healthy && s.Health.Waiting != nil && *s.Health.Waiting == 0
	})
	return cmd
}

// The life of a table: nothing, a process, its death by force, another one, its good end.
func TestCheckTellsWhetherATableIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	began := time.Now()
	line := w.expectCheck("before anything was started", ending.ExitFailed, "not started: nothing was ever started on this table")
	unhindered := time.Since(began) // the time of a command that waits for nothing, as busy as the machine is
	expectParts(t, line, "dynamill run --table "+w.table)
	if tables := w.tables(); len(tables) != 1 {
		t.Errorf("tables %v: the check made one", tables)
	}

	killed := w.runs()
	w.must(killed.Process.Kill())
	began = time.Now()
	_ = killed.Wait()
	w.put(item("USER#late", "PROFILE", "name", "Late"))
	line = w.expectCheck("after a kill", ending.ExitFailed, "nothing runs: 1 record waits, the oldest since ")
	if took := time.Since(began); took > 2*checkTerm+3*unhindered {
		t.Errorf("it took %s to tell, longer than two terms; a command takes %s", took, unhindered)
	}
	expectParts(t, line, "has not renewed its lease for more than its term of 3s", "start `dynamill run")
	s := w.status()
	if h := s.Health; h.State != "nothing runs" || h.Healthy || h.Waiting == nil || *h.Waiting != 1 || h.AtLeast || h.Oldest == "" ||
		h.Since != h.Oldest ||
		h.Lag == nil || h.Processes != 0 || len(h.Shards) != 1 || h.Shards[0].Waiting != 1 || h.Shards[0].Oldest != h.Oldest {
		t.Errorf("as JSON: %+v", h)
	}

	stopped := w.runs()
	if s = w.status(); s.Health.Processes != 1 || !s.Health.Healthy || *s.Health.Waiting != 0 || s.Health.Oldest != "" {
		t.Errorf("while it runs, as JSON: %+v", s.Health)
	}
	w.must(stopped.Process.Signal(syscall.SIGTERM))
	w.must(stopped.Wait())
	w.expectCheck("after a stop", ending.ExitFailed, "nothing runs: no record waits, the newest record applied is of ")
}

// A process whose writes get no answer falls behind.
func TestCheckTellsALagBeyondItsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	url, stalls, stalled := w.stalling()
	through := *w
	through.endpoint = url
	cmd, _, _ := through.command("run", "--lease-term", checkTerm.String())
	w.must(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, "the process follows", func() bool { code, _ := w.check(); return code == ending.ExitDone })
	stalls.Store(true)
	w.put(item("POST#1", "COMMENT#t#c", "userId", "u", "text", time.Now().String()))
	eventually(t, "a write waits", func() bool { return stalled.Load() > 0 })
	eventually(t, "the lag is beyond a second", func() bool {
		code, line := w.check("--ready-lag", "1s")
		return code == ending.ExitFailed && strings.HasPrefix(line, "catching up: lag ")
	})
	w.expectCheck("with a bound of a day", ending.ExitDone, "following: lag ", "--ready-lag", "24h")
	w.expectCheck("without a bound", ending.ExitDone, "following: lag ", "--ready-lag", "0")
}

func TestCheckTellsWhatIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	w.dropTable(w.leaseTableName())
	// A state table of less than a day: the stream still holds all since then.
	w.expectCheck("without a lease table", ending.ExitFailed, "nothing runs: there is no lease table "+w.leaseTableName())
	w.drain()
	w.dropTable(w.table + following.StateSuffix)
	line := w.expectCheck("without a state table", ending.ExitFailed,
		"records lost: the state table "+w.table+following.StateSuffix+" is missing")
	expectParts(t, line, "delete the lease table", "Starting over")
	code, stdout, stderr := w.call("status")
	if code != ending.ExitEnvironment || stdout != "" || !strings.Contains(stderr, "records lost: ") {
		t.Errorf("status without a state table: exit code %d, %q, %s", code, stdout, stderr)
	}

	other := newWorld(t, types.StreamViewTypeNewAndOldImages)
	other.put(community()...)
	other.drain()
	_, err := other.client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &other.table, StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
	})
	other.must(err)
	other.expectCheck("with the stream switched off", ending.ExitFailed, "records lost: the table has no stream any more")
	other.enableStream()
	other.expectCheck("with another stream", ending.ExitFailed, "records lost: the table has another stream than the one that was followed")
}

// TestCheckAsksLambdaWhereNoProcessRuns answers for Lambda as its API reference says (ListEventSourceMappings).
func TestCheckAsksLambdaWhereNoProcessRuns(t *testing.T) {
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	_, err := projections.Open(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set})
	w.must(err)
	var (
		mu     sync.Mutex
		answer string
		asked  url.Values
	)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = r.URL.Query()
		if answer == "" {
			rw.Header().Set("X-Amzn-ErrorType", "AccessDeniedException")
			rw.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(rw, answer)
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", server.URL)
	const mapping = `{"EventSourceMappings": [{"FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:app-dynamill", "State": %q,
		"LastProcessingResult": %q, "FunctionResponseTypes": ["ReportBatchItemFailures"]}]}`
	for _, c := range []struct {
		answer string
		code   int
		begins string
	}{
		{fmt.Sprintf(mapping, "Enabled", "OK"), ending.ExitDone,
			"following: function app-dynamill, its event source mapping is Enabled, last result: OK"},
		{fmt.Sprintf(mapping, "Enabled", "PROBLEM: Function call failed"), ending.ExitFailed,
			"failing: the last invocation of function app-dynamill failed"},
		{strings.Replace(fmt.Sprintf(mapping, "Enabled", "OK"), "ReportBatchItemFailures", "", 1), ending.ExitFailed,
			"failing: Lambda treats a partly done batch of function app-dynamill as done"},
		{fmt.Sprintf(mapping, "Disabled", "OK"), ending.ExitFailed, "nothing runs: there is no lease table"},
		{`{"EventSourceMappings": []}`, ending.ExitFailed, "nothing runs: there is no lease table"},
		{"", ending.ExitEnvironment, "not known: there is no lease table"},
	} {
		mu.Lock()
		answer = c.answer
		mu.Unlock()
		w.expectCheck(c.answer, c.code, c.begins)
	}
	_, line := w.check()
	expectParts(t, line, "no permission for lambda:ListEventSourceMappings")
	mu.Lock()
	defer mu.Unlock()
	if arn := asked.Get("EventSourceArn"); !strings.Contains(arn, w.table+"/stream/") {
		t.Errorf("Lambda is asked for %q, want the table's stream", arn)
	}
}

func (w *world) dropTable(name string) {
	w.t.Helper()
	_, err := w.client.DeleteTable(w.t.Context(), &dynamodb.DeleteTableInput{TableName: &name})
	w.must(err)
}

func TestWatchedStatusRefreshesItsFirstLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	cmd, _, stderr := w.command("status", "--json", "--watch=200ms")
	var out pipe
	cmd.Stdout = &out
	w.must(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	shows := func(state string) func() bool {
		return func() bool {
			var s status.Report
			if lines := out.lines(); len(lines) > 1 {
				w.must(json.Unmarshal([]byte(lines[len(lines)-2]), &s))
			}
			return s.Health.State == state
		}
	}
	eventually(t, "a table on which nothing was started is shown as such", shows("not started"))
	worker := w.runs()
	eventually(t, "a process is shown", shows("following"))
	w.must(worker.Process.Kill())
	_ = worker.Wait()
	eventually(t, "its death is shown", shows("nothing runs"))
	w.must(cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
}
