package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/monitor"
)

// watched is a `run --listen` at work.
type watched struct {
	t      *testing.T
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	stderr *bytes.Buffer // only to be read when the process has ended
	url    string
}

// lastPort is the port that unusedAddress gave last. Systems give ports above
// 32767 to servers that ask for any, so no other test's server takes one of these
// between the moment it is found free and the moment it is used.
var lastPort atomic.Int32

// unusedAddress returns an address of this machine at which no server listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	lastPort.CompareAndSwap(0, 20_000+rand.Int32N(10_000))
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", lastPort.Add(1))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatal("100 ports in a row are taken")
	return ""
}

// runWatched starts `run --listen` at a free port.
func (w *world) runWatched(args ...string) *watched {
	w.t.Helper()
	address := unusedAddress(w.t)
	cmd, _, stderr := w.command(append([]string{"run", "--listen", address}, args...)...)
	w.must(cmd.Start())
	p := &watched{t: w.t, cmd: cmd, ended: make(chan struct{}), stderr: stderr, url: "http://" + address}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the exit code tells
	}()
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); <-p.ended })
	return p
}

// get returns status and body; 0 while no server answers.
func (p *watched) get(path string) (int, string) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(p.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// readyzSays waits until /readyz answers with this status and text.
func (p *watched) readyzSays(status int, text string) {
	p.t.Helper()
	said := ""
	eventually(p.t, "/readyz says "+text, func() bool {
		select {
		case <-p.ended:
			p.t.Fatalf("the process has ended; /readyz said %q, not %s\n%s", said, text, p.stderr)
		default:
		}
		code, body := p.get("/readyz")
		if code != 0 {
			said = body
		}
		return code == status && strings.Contains(body, text)
	})
}

// stop sends SIGTERM and returns the exit code and what was said.
func (p *watched) stop() (int, string) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	began := time.Now()
	<-p.ended
	if took := time.Since(began); took > 10*time.Second {
		p.t.Errorf("stopping took %s", took)
	}
	return p.cmd.ProcessState.ExitCode(), p.stderr.String()
}

func (p *watched) metric(line string) bool {
	_, body := p.get("/metrics")
	return regexp.MustCompile("(?m)^" + line + "$").MatchString(body)
}

func TestARunShowsHowItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	p := w.runWatched("--pprof")
	p.readyzSays(http.StatusOK, "state: following")
	w.put(item("USER#9", "GROUP#dev", "role", "member"))
	eventually(t, "the metrics follow", func() bool {
		return p.metric(`dynamill_records_applied_total [1-9]\d*`) && p.metric(`dynamill_records_read_total [1-9]\d*`) &&
			p.metric(`dynamill_writes_total\{rule="member-count"\} [1-9]\d*`) &&
			p.metric(`dynamill_write_units_total\{rule="member-count"\} [1-9]\S*`) &&
			p.metric(`dynamill_state\{state="following"\} 1`) && p.metric("dynamill_ready 1") &&
			p.metric(`dynamill_shards\{status="open"\} [1-9]\d*`) &&
			p.metric(`dynamill_shard_lag_seconds\{shard="shardId-\S+"\} \S+`) && p.metric("dynamill_shards_without_reader 0") &&
			p.metric(`dynamill_lease_moves_total [1-9]\d*`) && p.metric(`dynamill_shard_oldest_unapplied_seconds\{shard="shardId-\S+"\} \S+`) &&
			p.metric("dynamill_oldest_unapplied_seconds 0") && p.metric("dynamill_tasks_left 0") && p.metric("dynamill_oldest_task_seconds 0")
	})
	for _, path := range []string{"/healthz", "/debug/pprof/cmdline"} {
		if code, body := p.get(path); code != http.StatusOK {
			t.Errorf("%s says %d: %s", path, code, body)
		}
	}
	code, stderr := p.stop()
	if code != ending.ExitDone || !strings.Contains(stderr, "msg=state state=") || !strings.Contains(stderr, "/metrics") ||
		!strings.Contains(stderr, "state=stopped") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestWhatOnlyAPersonCanEndStaysVisible(t *testing.T) {
	t.Parallel()
	disable := func(w *world) {
		_, err := w.client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName: &w.table, StreamSpecification: &types.StreamSpecification{StreamEnabled: ptr(false)},
		})
		w.must(err)
	}
	for name, c := range map[string]struct {
		happens func(*world)
		state   monitor.State
		remedy  string
		code    int
	}{
		"the stream is disabled": {disable, monitor.StreamDisabled, "aws dynamodb update-table", ending.ExitEnvironment},
		"the stream is replaced": {func(w *world) { disable(w); w.enableStream() }, monitor.StreamReplaced, "`dynamill replay --restart`",
			ending.ExitFailed},
		"the state table is deleted": {func(w *world) {
			_, err := w.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: ptr(w.table + "-dynamill")})
			w.must(err)
			w.put(item("USER#9", "GROUP#dev", "role", "member"))
		}, monitor.TableDeleted, "state table", ending.ExitEnvironment},
		"the table is deleted": {func(w *world) {
			_, err := w.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &w.table})
			w.must(err)
		}, monitor.TableDeleted, "check --table", ending.ExitEnvironment},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, types.StreamViewTypeNewAndOldImages)
			w.put(community()...)
			p := w.runWatched()
			p.readyzSays(http.StatusOK, "state: following")
			c.happens(w)
			p.readyzSays(http.StatusServiceUnavailable, "not ready: "+string(c.state))
			if code, body := p.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "remedy: ") ||
				!strings.Contains(body, c.remedy) {
				t.Errorf("%d: %s; want the remedy %q", code, body, c.remedy)
			}
			if !p.metric(`dynamill_state\{state="` + string(c.state) + `"\} 1`) {
				t.Errorf("the metrics do not say %q", c.state)
			}
			if code, _ := p.get("/healthz"); code != http.StatusOK {
				t.Errorf("/healthz says %d", code)
			}
			code, stderr := p.stop()
			if code != c.code || !strings.Contains(stderr, `state="`+string(c.state)+`"`) || !strings.Contains(stderr, c.remedy) {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, stderr)
			}
		})
	}
}

// refusing stands before the endpoint, and answers every call with expired credentials while it is told to.
func (w *world) refusing() (url string, expired *atomic.Bool, calls *atomic.Int64) {
	w.t.Helper()
	behind, err := neturl.Parse(w.endpoint)
	w.must(err)
	expired, calls = new(atomic.Bool), new(atomic.Int64)
	pass := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !expired.Load() {
			pass.ServeHTTP(out, r)
			return
		}
		calls.Add(1)
		out.Header().Set("Content-Type", "application/x-amz-json-1.0")
		out.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(out, `{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"expired"}`)
	}))
	w.t.Cleanup(server.Close)
	return server.URL, expired, calls
}

// stalling puts a server before DynamoDB that gives no answer to transactions while told so, and counts them.
func (w *world) stalling() (url string, stalls *atomic.Bool, stalled *atomic.Int64) {
	behind, err := neturl.Parse(w.endpoint)
	w.must(err)
	stalls, stalled = new(atomic.Bool), new(atomic.Int64)
	pass := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !stalls.Load() || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
			pass.ServeHTTP(out, r)
			return
		}
		stalled.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client hangs up
		<-r.Context().Done()
	}))
	w.t.Cleanup(server.Close)
	return server.URL, stalls, stalled
}

func TestExpiredCredentialsDoNotEndARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	url, expired, calls := w.refusing()
	through := *w
	through.endpoint = url
	p := through.runWatched()
	p.readyzSays(http.StatusOK, "state: following")
	expired.Store(true)
	w.put(item("USER#9", "GROUP#dev", "role", "member"))
	p.readyzSays(http.StatusServiceUnavailable, "not ready: credentials expired")
	before := calls.Load()
	time.Sleep(3 * time.Second)
	// Whatever a process does at the same time, each of it waits a second and longer.
	if made := calls.Load() - before; made == 0 || made > 60 {
		t.Errorf("%d calls in 3 s", made)
	}
	expired.Store(false)
	p.readyzSays(http.StatusOK, "state: ")
	eventually(t, "what was written meanwhile is counted", func() bool {
		return w.items()["GROUP#dev METADATA"].Lookup("memberCount").Text() == "3"
	})
	if code, stderr := p.stop(); code != ending.ExitDone || !strings.Contains(stderr, "aws sso login") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	w.drain()
	w.expectTrue()
}

func TestAnAddressInUseEndsTheRunAtOnce(t *testing.T) {
	withoutAWS(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	code, _, stderr := called(t, "run", "--rules", ruleFile(t), "--table", "app", "--listen", listener.Addr().String())
	if code != ending.ExitEnvironment {
		t.Errorf("exit code %d", code)
	}
	expectSentence(t, stderr, "choose another --listen", listener.Addr().String())
}

func TestFlagsOfARunThatMakeNoSenseAreRefused(t *testing.T) {
	withoutAWS(t)
	for flags, want := range map[string]string{
		"--listen=127.0.0.1:0 --poll-interval=1m --ready-lag=30s": "--ready-lag 30s is shorter than --poll-interval 1m0s",
		"--pprof":                              "--pprof has no meaning without --listen",
		"--ready-lag=-1s":                      "--ready-lag -1s is negative",
		"--poll-interval=9ms":                  "--poll-interval 9ms is not between 10ms and 1m0s",
		"--poll-interval=2m":                   "--poll-interval 2m0s is not between",
		"--budget=-1":                          "--budget -1 is negative",
		"--drain-timeout=1s":                   "add --drain",
		"--drain-timeout=-1s":                  "--drain-timeout -1s is negative",
		"--budget=a-lot":                       "a-lot",
		"--budget=1.5":                         "1.5",
		"--lease-term=999ms":                   "--lease-term 999ms is not between 1s and 1h0m0s",
		"--lease-term=2h":                      "--lease-term 2h0m0s is not between",
		"--lease-term=0s":                      "--lease-term 0s is not between",
		"--worker=" + strings.Repeat("w", 257): "--worker has 257 bytes",
	} {
		code, _, stderr := called(t, append([]string{"run", "--rules", ruleFile(t), "--table", "app"}, strings.Fields(flags)...)...)
		if code != ending.ExitInvalid || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", flags, code, stderr)
		}
	}
}

// The items were there before the stream, so that only seeding writes for them.
func TestRunShowsWhatWaitsForItsBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(older(300)...)
	w.enableStream()
	p := w.runWatched("--budget", "20")
	eventually(t, "the metrics say that seeding waits", func() bool {
		return p.metric(`dynamill_state\{state="throttled"\} 1`) && p.metric(`dynamill_budget_wait_seconds\{work="seeding"\} [0-9.]+`) &&
			p.metric("dynamill_budget_units_per_second 20")
	})
	p.readyzSays(http.StatusOK, "--budget holds back seeding")
	eventually(t, "status says that seeding waits", func() bool {
		waits := w.status().Waits
		return len(waits) == 1 && waits[0].Work == "seeding" && waits[0].UnitsPerSecond == 20 && waits[0].Since != ""
	})
	w.put(item("USER#9", "GROUP#dev", "role", "member"))
	eventually(t, "a record does not wait", func() bool {
		out, err := w.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &w.table, Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "GROUP#dev"}, "sk": &types.AttributeValueMemberS{Value: "USER#9"},
		}})
		return err == nil && out.Item != nil
	})
	if code, stderr := p.stop(); code != ending.ExitDone || !strings.Contains(stderr, "--budget holds back seeding") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestASecondSignalAbortsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	url, stalls, stalled := w.stalling()
	through := *w
	through.endpoint = url
	p := through.runWatched()
	p.readyzSays(http.StatusOK, "state: following") // a start whose writes wait would end at the first signal
	stalls.Store(true)
	w.put(item("USER#9", "GROUP#dev", "role", "member"))
	eventually(t, "a batch's writes wait", func() bool { return stalled.Load() > 0 })
	w.must(p.cmd.Process.Signal(syscall.SIGTERM))
	p.readyzSays(http.StatusServiceUnavailable, "state: stopped")
	w.must(p.cmd.Process.Signal(os.Interrupt))
	began := time.Now()
	<-p.ended
	if code := p.cmd.ProcessState.ExitCode(); code != ending.ExitFailed || time.Since(began) > 5*time.Second ||
		!strings.Contains(p.stderr.String(), "aborted") {
		t.Errorf("exit code %d after %s\n%s", code, time.Since(began), p.stderr)
	}
}
