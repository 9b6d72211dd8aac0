package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// completed asks the built command what it offers; the last argument is the typed one.
func completed(t *testing.T, environment []string, args ...string) (offers []string, directive string) {
	t.Helper()
	cmd, stdout, stderr := commandOf(append([]string{"__complete"}, args...))
	cmd.Env = append(os.Environ(), environment...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v %s", args, err, stderr)
	}
	if text := stderr.String(); strings.Contains(text, "dynamill:") || strings.Contains(text, "level=") {
		t.Errorf("%q: standard error holds %s", args, text)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	for _, line := range lines[:len(lines)-1] {
		name, _, _ := strings.Cut(line, "\t")
		offers = append(offers, name)
	}
	return offers, lines[len(lines)-1]
}

func TestCompletionOffersWhatIsKnownWithoutAWS(t *testing.T) {
	t.Parallel()
	rules := ruleFile(t)
	for _, c := range []struct {
		args      []string
		want      []string
		directive string
	}{
		{[]string{"ver"}, []string{"verify", "version"}, ":4"},
		{[]string{"parked", ""}, []string{"discard", "list", "retry", "show"}, ":4"},
		{[]string{"infra", ""}, []string{"cloudformation", "sam", "state-machine", "terraform"}, ":4"},
		{[]string{"help", "parked", "re"}, []string{"retry"}, ":4"},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish", "powershell"}, ":4"},
		{[]string{"run", "--log-level", ""}, []string{"debug", "info", "warn", "error"}, ":4"},
		{[]string{"infra", "sam", "--arch", ""}, []string{"arm64", "x86_64"}, ":4"},
		{[]string{"infra", "sam", "--rules-from", ""}, []string{"zip", "inline", "s3://", "ssm:"}, ":6"},
		{[]string{"replay", "--from", ""}, []string{"scan", "export://", "s3://", "archive://", "keys://", "keys:-", "parked"}, ":6"},
		{[]string{"replay", "--rules", rules, "--rule", ""}, []string{"comment-count"}, ":4"},
		{[]string{"verify", "--rules", rules, "--rule", "com"}, []string{"comment-count"}, ":4"},
		{[]string{"verify", "--rules", rules, "--rule", "x"}, nil, ":4"},
		{[]string{"verify", "--rules", "nowhere.yaml", "--rule", ""}, nil, ":4"},
		{[]string{"run", "--rules", ""}, []string{"yaml", "yml"}, ":8"},
		{[]string{"run", "--archive", ""}, nil, ":16"},
		{[]string{"run", "--drain-timeout", ""}, nil, ":4"},
		{[]string{"run", ""}, nil, ":4"},
		{[]string{"run", "--table", "a", "--endpoint", "http://127.0.0.1:1", "--table", ""}, nil, ":4"},
	} {
		offers, directive := completed(t, nil, c.args...)
		if !slices.Equal(offers, c.want) || directive != c.directive {
			t.Errorf("%q: got %q %s, want %q %s", c.args, offers, directive, c.want, c.directive)
		}
	}
	if offers, _ := completed(t, []string{"DYNAMILL_RULES=" + rules}, "verify", "--rule", ""); !slices.Equal(offers,
		[]string{"comment-count"}) {
		t.Errorf("with the rule file in the environment: %q", offers)
	}
	if offers, _ := completed(t, []string{"DYNAMILL_LOG_LEVEL=loud"}, "verify", "--rules", rules, "--rule", ""); len(offers) > 0 {
		t.Errorf("with an environment that cannot be used: %q", offers)
	}
}

// TestCompletionOfTablesEndsInTime lets a server keep its answer back.
func TestCompletionOfTablesEndsInTime(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer server.Close()
	defer close(released)
	began := time.Now()
	if offers, directive := completed(t, nil, "run", "--endpoint", server.URL, "--table", ""); len(offers) > 0 || directive != ":4" {
		t.Errorf("got %q %s", offers, directive)
	}
	if took := time.Since(began); took < completionTimeout/2 || took > 5*completionTimeout {
		t.Errorf("it took %s, want about %s", took, completionTimeout)
	}
}

// TestCompletionOffersTablesAndParkedRecords completes on a real endpoint, with the flags
// that are typed before, those of the environment, and those of a configuration file.
func TestCompletionOffersTablesAndParkedRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(item("POST#1", "COMMENT#1#1", "userId", "u#1"), item("POST#1", "COMMENT#1#2", "userId", "u1"))
	w.drain() // makes the state table and the lease table
	want := []string{w.table}
	file := filepath.Join(t.TempDir(), "flags.yaml")
	w.must(os.WriteFile(file, []byte("endpoint: "+w.endpoint+"\n"), 0o600))
	for name, c := range map[string]struct {
		environment, args []string
	}{
		"typed":       {nil, []string{"--endpoint", w.endpoint}},
		"environment": {[]string{"DYNAMILL_ENDPOINT=" + w.endpoint}, nil},
		"file":        {nil, []string{"--config", file}},
	} {
		args := append(append([]string{"status"}, c.args...), "--table", w.table[:len(w.table)-2])
		if offers, _ := completed(t, w.server.Environ(c.environment...), args...); !slices.Equal(offers, want) {
			t.Errorf("%s: got %q, want %q", name, offers, want)
		}
	}
	var ids []string
	for _, p := range w.parked() {
		ids = append(ids, p.ID)
	}
	if len(ids) == 0 {
		t.Fatal("nothing is parked")
	}
	for _, verb := range []string{"show", "retry", "discard"} {
		offers, _ := completed(t, w.server.Environ(), append(w.args("parked", verb), "")...)
		if !slices.Equal(slices.Sorted(slices.Values(offers)), slices.Sorted(slices.Values(ids))) {
			t.Errorf("parked %s: got %q, want %q", verb, offers, ids)
		}
	}
	if offers, _ := completed(t, w.server.Environ(), append(w.args("parked", "retry", ids[0]), "")...); slices.Contains(offers, ids[0]) {
		t.Errorf("%q is offered a second time", ids[0])
	}
}

// TestCompletionScriptsAreTakenByTheirShells has bash read its script.
func TestCompletionScriptsAreTakenByTheirShells(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{"bash": "__start_dynamill", "zsh": "#compdef dynamill", "fish": "complete -c dynamill",
		"powershell": "Register-ArgumentCompleter"} {
		cmd, stdout, stderr := commandOf([]string{"completion", shell})
		if err := cmd.Run(); err != nil || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: %v %s, want %q in the script", shell, err, stderr, want)
		}
		path, err := exec.LookPath(shell)
		if err != nil || shell == "powershell" {
			continue // this machine does not have the shell
		}
		reading := exec.Command(path, "-n")
		reading.Stdin = stdout
		if out, err := reading.CombinedOutput(); err != nil {
			t.Errorf("%s does not read its script: %v %s", shell, err, out)
		}
	}
}
