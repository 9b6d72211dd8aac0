package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

// situation is one in which the built command ends with one exit code.
type situation struct {
	command, situation string
	code               int
	args               []string
}

// endingsWithoutTable are those that need no table.
func endingsWithoutTable(t *testing.T) []situation {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	rules := file("rules.yaml", smallRules)
	bad := file("bad.yaml", strings.Replace(smallRules, "count: Comment", "count: Coment", 1))
	record := file("record.json", `{"eventName": "INSERT", "dynamodb": {"SequenceNumber": "1",
		"Keys": {"pk": {"S": "POST#1"}, "sk": {"S": "METADATA"}}, "NewImage": {"pk": {"S": "POST#1"}, "sk": {"S": "METADATA"}}}}`)
	noRecord := file("no-record.json", "no record")
	here := []string{"--rules", rules, "--table", "app"}
	broken := answering(t, 400, refusal("ValidationException", "a test"))
	all := []situation{
		{"check", "rules are right", ending.ExitDone, []string{"check", "--rules", rules}},
		{"explain", "a record", ending.ExitDone, []string{"explain", record, "--rules", rules}},
		{"explain", "no record", ending.ExitInvalid, []string{"explain", noRecord, "--rules", rules}},
		{"explain", "nothing to explain", ending.ExitInvalid, []string{"explain", "--rules", rules}},
		{"explain", "a record and a key", ending.ExitInvalid, []string{"explain", record, "--key", "POST#1/METADATA", "--rules", rules}},
		{"version", "always", ending.ExitDone, []string{"version"}},
		{"help", "a command", ending.ExitDone, []string{"help", "run"}},
		{"help", "no command", ending.ExitInvalid, []string{"help", "nonsense"}},
		{"demo", "an example", ending.ExitDone, []string{"demo"}},
		{"demo", "no example", ending.ExitInvalid, []string{"demo", "nonsense"}},
		{"completion", "a shell", ending.ExitDone, []string{"completion", "zsh"}},
		{"completion", "no shell", ending.ExitInvalid, []string{"completion", "nonsense"}},
		{"docs", "a folder", ending.ExitDone, []string{"docs", "man", filepath.Join(dir, "man")}},
		{"docs", "a file in the place of the folder", ending.ExitFailed, []string{"docs", "man", record}},
		{"infra", "a template", ending.ExitDone, append([]string{"infra", "sam"}, here...)},
		{"infra", "a folder that is missing", ending.ExitFailed, append([]string{"infra", "sam", "-o", filepath.Join(dir, "none", "x")},
			here...)},
		{"infra", "a size that is wrong", ending.ExitInvalid, append([]string{"infra", "sam", "--memory-size", "0"}, here...)},
	}
	for _, line := range []string{"check", "explain " + record, "infra sam", "infra state-machine", "plan", "run", "run --drain", "replay",
		"replay --dry-run", "verify", "parked retry --all", "parked discard --all", "explain --key POST#1/METADATA"} {
		args := strings.Fields(line)
		all = append(all, situation{line, "rules are wrong", ending.ExitInvalid,
			append(args, "--rules", bad, "--table", "app", "--endpoint", "http://127.0.0.1:1")})
	}
	for _, line := range commandPaths() {
		all = append(all,
			situation{line, "a flag that does not exist", ending.ExitInvalid, append(strings.Fields(line), "--nonsense")},
			situation{line, "--help", ending.ExitDone, append(strings.Fields(line), "--help")})
	}
	for _, line := range []string{"plan", "run", "run --drain", "replay", "replay --dry-run", "verify", "status", "parked list",
		"parked show x", "parked retry --all", "parked discard --all", "explain --key POST#1/METADATA"} {
		args := append(strings.Fields(line), here...)
		all = append(all,
			situation{line, "the table's name is wrong", ending.ExitInvalid, append(strings.Fields(line), "--rules", rules, "--table", "a/b")},
			situation{line, "no server is reached", ending.ExitEnvironment, append(args[:len(args):len(args)], "--endpoint", "http://127.0.0.1:1")},
			situation{line, "no region is set", ending.ExitEnvironment, append(args[:len(args):len(args)], "--region", "")},
			situation{line, "AWS refuses a call as invalid", ending.ExitFailed, append(args[:len(args):len(args)], "--endpoint", broken)})
	}
	return all
}

// TestExitCodesWithoutTable runs the built command in all situations that need no table.
func TestExitCodesWithoutTable(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, e := range endingsWithoutTable(t) {
		t.Run(e.command+" where "+e.situation, func(t *testing.T) {
			t.Parallel()
			cmd, _, stderr := commandOf(e.args)
			cmd.Dir = home
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1"}
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != e.code {
				t.Errorf("exit code %d, want %d: %s", code, e.code, stderr)
			}
			if e.code != ending.ExitDone && stderr.Len() == 0 {
				t.Errorf("it ended with %d in silence", e.code)
			}
		})
	}
}

// TestExitCodesOnATable leads one table through the situations that need one, in turn.
func TestExitCodesOnATable(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(item("USER#u1", "PROFILE", "name", "A"), item("POST#1", "METADATA"), item("POST#1", "COMMENT#1#1", "userId", "u1"),
		item("POST#1", "COMMENT#1#2", "userId", "u#1"))
	quick := []string{"--lag-max", "1ms", "--settle", "1s"}
	verify := func(more ...string) []string { return append(append([]string{"verify"}, quick...), more...) }
	changed := *w
	changed.rules = w.file("changed.yaml", strings.Replace(communityRules, `role != "banned"`, `role != "gone"`, 1))
	missing := *w
	missing.table += "-none"

	expect := func(w *world, situation string, code int, lines ...[]string) {
		t.Helper()
		for _, args := range lines {
			if got, stdout, stderr := w.call(args...); got != code {
				t.Errorf("%s where %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), situation, got, code, stdout, stderr)
			}
		}
	}
	line := strings.Fields
	expect(&missing, "there is no table", ending.ExitEnvironment, line("run --drain"), line("run"), line("plan"), line("replay"),
		line("verify"), line("status"), line("parked list"), line("explain --key POST#1/METADATA"))
	expect(w, "nothing has run", ending.ExitEnvironment, verify(), line("status"), line("parked list"), line("parked show x"),
		line("parked retry --all"), line("parked discard --all"), line("explain --key POST#1/METADATA"))
	expect(w, "nothing has run", ending.ExitDone, line("plan"), line("replay --dry-run"))
	expect(w, "the time is too short", ending.ExitFailed, line("run --drain --drain-timeout 1ms"))
	expect(w, "all is well", ending.ExitDone, line("run --drain"), line("plan"), line("status"), line("parked list"), line("replay"),
		line("replay --dry-run"), line("explain --key POST#1/METADATA"), line("explain --key POST#none/METADATA"))
	expect(w, "the folder of the archive is a file", ending.ExitEnvironment, []string{"run", "--drain", "--archive", changed.rules})
	expect(&changed, "a rule is changed", ending.ExitInvalid, line("run --drain"), line("replay"),
		line("explain --key POST#1/METADATA"))
	expect(&changed, "a rule is changed", ending.ExitDone, line("plan"))
	expect(w, "an id is not parked", ending.ExitInvalid, line("parked show none"), line("parked retry none"), line("parked discard none"))
	expect(w, "an entry is still bad", ending.ExitFailed, line("parked retry --all"))
	expect(w, "an entry is parked", ending.ExitDone, []string{"parked", "show", w.parked()[0].ID})
	expect(w, "nothing drifts", ending.ExitDone, verify())
	w.set1("POST#1", "COMMENT#1#1", "userName", "another")
	expect(w, "something drifts", ending.ExitDrift, verify())
	expect(w, "something drifts and is mended", ending.ExitDone, verify("--repair"), verify())
	expect(w, "an entry is discarded", ending.ExitDone, line("parked discard --all"))
	without := newLocalWorld(t, "")
	expect(without, "the table has no stream", ending.ExitEnvironment, line("run"), line("run --drain"))
}
