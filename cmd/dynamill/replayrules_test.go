package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/replaying"
	"github.com/dynamill/dynamill/internal/projections"
)

func TestARefusedReplayRegistersNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	refused := func(says string, flags ...string) {
		t.Helper()
		if code, _, stderr := w.call(append([]string{"replay"}, flags...)...); code != ending.ExitInvalid || !strings.Contains(stderr, says) {
			t.Errorf("replay %v: exit code %d, %s", flags, code, stderr)
		}
	}
	badKeys := filepath.Join(t.TempDir(), "keys")
	w.must(os.WriteFile(badKeys, []byte("no key\n"), 0o600))
	all := func() {
		t.Helper()
		refused("leave out --eventually-consistent", "--eventually-consistent", "--yes")
		refused("without --rule", "--rule", "member-name")
		refused("limit of 1000000", "--segments", "1000001", "--yes")
		refused("no keys", "--from", "keys://"+badKeys)
		for _, from := range []string{"s3://", "s3:///prefix", "archive://", "export://s3://", "keys://"} {
			refused("names no place", "--from", from)
		}
		refused("is no source", "--from", "ftp://host/file")
	}
	all()
	if rows, err := w.scan(w.table + "-dynamill"); err == nil {
		t.Fatalf("a refused replay made the state table, of %d rows", len(rows))
	}
	w.replay()
	epoch := func() string {
		t.Helper()
		_, stdout, _ := w.call("status", "--json")
		_, after, _ := strings.Cut(stdout, `"epoch":`)
		before, _, _ := strings.Cut(after, ",")
		return strings.TrimSpace(before)
	}
	before := epoch()
	w.useRules(communityRules + "  post-groups: { count: Membership, as: User.groupCount }\n")
	all()
	if after := epoch(); before == "" || after != before {
		t.Errorf("refused replays brought the rules from epoch %q to %q", before, after)
	}
}

func TestADryRunSaysWhatItDoesNotForesee(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	code, stdout, stderr := w.call("replay", "--dry-run")
	if code != ending.ExitDone || !strings.Contains(stdout, "not foreseen in full: member-name reads what member-list would write\n") ||
		strings.Count(stdout, "not foreseen") != 1 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = w.call("replay", "--dry-run", "--json")
	var result replaying.Previewed
	if err := json.Unmarshal([]byte(stdout), &result); code != ending.ExitDone || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if len(result.NotForeseen) != 1 || result.NotForeseen[0].Rule != "member-name" || result.WriteUnits == 0 || result.ReadUnits == 0 {
		t.Errorf("it says %+v", result)
	}
	w.replay()
	w.set1("USER#456", "PROFILE", "name", "Janet")
	if _, stdout, _ = w.call("replay", "--dry-run"); !strings.Contains(stdout, "member-name") || strings.Contains(stdout, "not foreseen") {
		t.Errorf("where all that is read stands there:\n%s", stdout)
	}
}

func TestAReplaySaysWhatItBringsIntoForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	says := func(want, not string, flags ...string) {
		t.Helper()
		if code, _, stderr := w.call(append([]string{"replay", "--yes"}, flags...)...); code != ending.ExitDone ||
			!strings.Contains(stderr, want) || not != "" && strings.Contains(stderr, not) {
			t.Errorf("replay %v: exit code %d, want %q and not %q in\n%s", flags, code, want, not, stderr)
		}
	}
	says("brings rules into force in", "none where all is right")
	says("none where all is right", "into force")
	changed := strings.Replace(communityRules, "  comment-count:  { count: Comment, as: Post.commentCount }\n", "", 1)
	w.useRules(strings.Replace(changed, `where: role != "banned", `, "", 1))
	says("member-count (changed), comment-count (taken back)", "member-count, member-count")
}

func TestAReplayThatWaitsForStandardInputCanBeStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	w.replay()
	folder := t.TempDir()
	cmd, _, _ := w.command("replay", "--from", "keys:-")
	cmd.Env = append(cmd.Env, "TMPDIR="+folder)
	said := &pipe{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	w.must(err)
	w.must(cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	_, err = io.WriteString(in, "USER#123/PROFILE\n")
	w.must(err)
	spooled := func() int {
		found, err := filepath.Glob(filepath.Join(folder, "*"))
		w.must(err)
		return len(found)
	}
	eventually(t, "the list is copied", func() bool { return spooled() > 0 })
	w.must(cmd.Process.Signal(syscall.SIGINT))
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatal("it still reads")
	}
	if text := strings.Join(said.lines(), ""); cmd.ProcessState.ExitCode() != ending.ExitFailed ||
		!strings.Contains(text, "stopped before anything was replayed") {
		t.Errorf("%s\n%s", cmd.ProcessState, text)
	}
	if n := spooled(); n > 0 {
		t.Errorf("%d files are left", n)
	}
}

func TestAReplaySeedsWhatAFunctionHasRegistered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	_, err := projections.Open(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set})
	w.must(err)
	w.replay()
	w.expectTrue()
	if s := w.status(); !s.Live || s.Leases.Exists {
		t.Errorf("it leaves %+v", s)
	}
}

func TestABucketThatCannotBeReadSaysWhatToCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(rw, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
	}))
	t.Cleanup(server.Close)
	for from, lacks := range map[string]string{"s3://backups/exports/1": "s3:GetObject", "archive://s3://backups/archive": "s3:ListBucket"} {
		cmd, _, stderr := w.command("replay", "--from", from)
		cmd.Env = append(cmd.Env, "AWS_ENDPOINT_URL_S3="+server.URL)
		_ = cmd.Run()
		if text := stderr.String(); cmd.ProcessState.ExitCode() != ending.ExitEnvironment || !strings.Contains(text, "AccessDenied") ||
			!strings.Contains(text, "the credentials lack "+lacks) {
			t.Errorf("%s: %s\n%s", from, cmd.ProcessState, text)
		}
	}
}
