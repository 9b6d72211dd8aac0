package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ending is one situation in which the built command ends with one exit code.
type ending struct {
	command, situation string
	code               int
	args               []string
}

// endingsWithoutTable are those that need no table.
func endingsWithoutTable(t *testing.T) []ending {
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
	all := []ending{
		{"check", "rules are right", exitDone, []string{"check", "--rules", rules}},
		{"explain", "a record", exitDone, []string{"explain", record, "--rules", rules}},
		{"explain", "no record", exitInvalid, []string{"explain", noRecord, "--rules", rules}},
		{"version", "always", exitDone, []string{"version"}},
		{"help", "a command", exitDone, []string{"help", "run"}},
		{"help", "no command", exitInvalid, []string{"help", "nonsense"}},
		{"demo", "an example", exitDone, []string{"demo"}},
		{"demo", "no example", exitInvalid, []string{"demo", "nonsense"}},
		{"completion", "a shell", exitDone, []string{"completion", "zsh"}},
		{"completion", "no shell", exitInvalid, []string{"completion", "nonsense"}},
		{"docs", "a folder", exitDone, []string{"docs", "man", filepath.Join(dir, "man")}},
		{"docs", "a file in the place of the folder", exitFailed, []string{"docs", "man", record}},
		{"infra", "a template", exitDone, append([]string{"infra", "sam"}, here...)},
		{"infra", "a folder that is missing", exitFailed, append([]string{"infra", "sam", "-o", filepath.Join(dir, "none", "x")}, here...)},
		{"infra", "a size that is wrong", exitInvalid, append([]string{"infra", "sam", "--memory-size", "0"}, here...)},
	}
	for _, line := range []string{"check", "explain " + record, "infra sam", "infra state-machine", "plan", "run", "run --drain", "replay", "replay --dry-run", "verify", "parked retry --all", "parked discard --all"} {
		args := strings.Fields(line)
		all = append(all, ending{line, "rules are wrong", exitInvalid, append(args, "--rules", bad, "--table", "app", "--endpoint", "http://127.0.0.1:1")})
	}
	for _, line := range commandPaths() {
		all = append(all,
			ending{line, "a flag that does not exist", exitInvalid, append(strings.Fields(line), "--nonsense")},
			ending{line, "--help", exitDone, append(strings.Fields(line), "--help")})
	}
	for _, line := range []string{"plan", "run", "run --drain", "replay", "replay --dry-run", "verify", "status", "parked list", "parked show x", "parked retry --all", "parked discard --all"} {
		args := append(strings.Fields(line), here...)
		all = append(all,
			ending{line, "the table's name is wrong", exitInvalid, append(strings.Fields(line), "--rules", rules, "--table", "a/b")},
			ending{line, "no server is reached", exitEnvironment, append(args[:len(args):len(args)], "--endpoint", "http://127.0.0.1:1")},
			ending{line, "no region is set", exitEnvironment, append(args[:len(args):len(args)], "--region", "")},
			ending{line, "AWS refuses a call as invalid", exitFailed, append(args[:len(args):len(args)], "--endpoint", broken)})
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
			if e.code != exitDone && stderr.Len() == 0 {
				t.Errorf("it ended with %d in silence", e.code)
			}
		})
	}
}

// TestExitCodesOnATable leads one table through the situations that need one, in turn.
func TestExitCodesOnATable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(item("USER#u1", "PROFILE", "name", "A"), item("POST#1", "METADATA"), item("POST#1", "COMMENT#1#1", "userId", "u1"), item("POST#1", "COMMENT#1#2", "userId", "u#1"))
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
	expect(&missing, "there is no table", exitEnvironment, line("run --drain"), line("run"), line("plan"), line("replay"), line("verify"), line("status"), line("parked list"))
	expect(w, "nothing has run", exitEnvironment, verify(), line("status"), line("parked list"), line("parked show x"), line("parked retry --all"), line("parked discard --all"))
	expect(w, "nothing has run", exitDone, line("plan"), line("replay --dry-run"))
	expect(w, "the time is too short", exitFailed, line("run --drain --drain-timeout 1ms"))
	expect(w, "all is well", exitDone, line("run --drain"), line("plan"), line("status"), line("parked list"), line("replay"), line("replay --dry-run"))
	expect(w, "the folder of the archive is a file", exitEnvironment, []string{"run", "--drain", "--archive", changed.rules})
	expect(&changed, "a rule is changed", exitInvalid, line("run --drain"), line("replay"))
	expect(&changed, "a rule is changed", exitDone, line("plan"))
	expect(w, "an id is not parked", exitInvalid, line("parked show none"), line("parked retry none"), line("parked discard none"))
	expect(w, "an entry is still bad", exitFailed, line("parked retry --all"))
	expect(w, "an entry is parked", exitDone, []string{"parked", "show", w.parked()[0].ID})
	expect(w, "nothing drifts", exitDone, verify())
	w.set1("POST#1", "COMMENT#1#1", "userName", "another")
	expect(w, "something drifts", exitDrift, verify())
	expect(w, "something drifts and is mended", exitDone, verify("--repair"), verify())
	expect(w, "an entry is discarded", exitDone, line("parked discard --all"))
	without := newWorld(t, "")
	expect(without, "the table has no stream", exitEnvironment, line("run"), line("run --drain"))
}
