package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

// configured returns the flags of a command line after environment and file had their say.
func configured(t *testing.T, file string, environment map[string]string, args ...string) (*pflag.FlagSet, error) {
	t.Helper()
	a := &app{}
	root := a.rootCommand()
	cmd, rest, err := root.Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if file != "" {
		path := filepath.Join(t.TempDir(), "dynamill-run.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		rest = append(rest, "--config", path)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	return cmd.Flags(), commandline.Configure(cmd, func(name string) string { return environment[name] })
}

func TestTheCommandLineComesFirstThenTheEnvironmentThenTheFile(t *testing.T) {
	const file = "table: from-file\nregion: eu-file-1\nready-lag: 2m\nbudget: 250\ndrain: true\njson: true\nlisten: 127.0.0.1:9464\n"
	environment := map[string]string{"DYNAMILL_TABLE": "from-env", "DYNAMILL_REGION": "eu-env-1", "DYNAMILL_READY_LAG": "3m",
		"DYNAMILL_LISTEN": ""}
	flags, err := configured(t, file, environment, "run", "--table", "from-flag", "--ready-lag=0", "--drain=false")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"table": "from-flag", "ready-lag": "0s", "drain": "false", // the command line, also where it says what is the default's opposite
		"region": "eu-env-1",
		"budget": "250", "json": "true", "listen": "127.0.0.1:9464", // an empty variable is none
		"rules": "dynamill.yaml", // the default
	} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	if lag, _ := flags.GetDuration("ready-lag"); lag != time.Duration(0) {
		t.Errorf("--ready-lag is %s", lag)
	}
}

// fileOf is a configuration file.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flags.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAFileServesEveryCommandAndNoKeyIsGuessed(t *testing.T) {
	flags, err := configured(t, "listen: 127.0.0.1:9464\ntable: app\n", nil, "parked", "list")
	if err != nil || flags.Lookup("table").Value.String() != "app" {
		t.Errorf("a file with flags of another command: %v", err)
	}
	withoutAWS(t)
	file := fileOf(t, "budget: 200\nsegments: 8\npoll-interval: 5s\ntable: app\n")
	for _, args := range [][]string{{"run"}, {"replay", "--from", "parked"}, {"verify"}} {
		// All that is wrong is that there is no region.
		if code, _, stderr := called(t, append(args, "--config", file, "--rules", ruleFile(t))...); code != ending.ExitEnvironment {
			t.Errorf("%v with a file for all: exit code %d, %s", args, code, stderr)
		}
		if code, _, stderr := called(t, append(args, "--budget", "1", "--segments", "1", "--rules", ruleFile(t), "--table",
			"app")...); code != ending.ExitInvalid {
			t.Errorf("%v with flags of no meaning: exit code %d, %s", args, code, stderr)
		}
	}
	for _, args := range [][]string{{"verify"}, {"replay"}} {
		code, _, stderr := called(t, append(args, "--config", fileOf(t, "segments: -5\ntable: app\n"), "--rules", ruleFile(t))...)
		if code != ending.ExitInvalid || !strings.Contains(stderr, "--segments -5") {
			t.Errorf("%v with segments that read nothing: exit code %d, %s", args, code, stderr)
		}
	}
	for _, args := range [][]string{{"status", "--check"}, {"verify"}} {
		settings := fileOf(t, "watch: 2s\ndry-run: true\ntable: app\n")
		if code, _, stderr := called(t, append(args, "--config", settings, "--rules", ruleFile(t))...); code != ending.ExitEnvironment {
			t.Errorf("%v with flags of other commands: exit code %d, %s", args, code, stderr)
		}
	}
	for name, c := range map[string]struct {
		file        string
		environment map[string]string
		want        []string
	}{
		"unknown keys":        {"tabel: app\nready_lag: 1m\n", nil, []string{`"tabel" is no flag`, `"ready_lag" is no flag`}},
		"a file in a file":    {"config: other.yaml\n", nil, []string{`"config" is no flag`}},
		"help":                {"help: true\n", nil, []string{`"help" is no flag`}},
		"a map":               {"table: { name: app }\n", nil, []string{"table wants one value"}},
		"nothing":             {"table:\n", nil, []string{"table wants one value"}},
		"several tables":      {"table: [a, b]\n", nil, []string{"dynamill-run.yaml: table: give one value"}},
		"a value that is bad": {"ready-lag: soon\n", nil, []string{"dynamill-run.yaml: ready-lag", "soon"}},
		"twice":               {"table: a\ntable: b\n", nil, []string{"no YAML of `flag: value` lines", "table"}},
		"not YAML":            {"table: [\n", nil, []string{"no YAML of `flag: value` lines"}},
		"a list":              {"- table\n", nil, []string{"no YAML of `flag: value` lines"}},
		"a bad variable":      {"", map[string]string{"DYNAMILL_BUDGET": "fast"}, []string{"DYNAMILL_BUDGET", "fast"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configured(t, c.file, c.environment, "run")
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q in it", err, want)
				}
			}
		})
	}
}

func TestEveryFlagCanComeFromTheEnvironmentAndFromAFile(t *testing.T) {
	a := &app{}
	for name := range commandline.FlagsOf(a.rootCommand()) {
		if !commandline.Configurable(name) {
			continue
		}
		if variable := commandline.VariableOf(name); strings.Trim(variable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
			t.Errorf("--%s would be %s, which is no name of a variable", name, variable)
		}
	}
	withoutAWS(t)
	path := filepath.Join(t.TempDir(), "x.yaml")
	t.Setenv("DYNAMILL_CONFIG", path)
	code, _, stderr := called(t, "check", "--rules", ruleFile(t))
	if code != ending.ExitInvalid || !strings.Contains(stderr, "there is no configuration file") || !strings.Contains(stderr, path) {
		t.Errorf("a file that is missing: exit code %d, %s", code, stderr)
	}
	if err := os.WriteFile(path, []byte("log-level: loud\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = called(t, "check", "--rules", ruleFile(t))
	if code != ending.ExitInvalid || !strings.Contains(stderr, `--log-level "loud"`) {
		t.Errorf("a file with a bad level: exit code %d, %s", code, stderr)
	}
	code, stdout, _ := called(t, "run", "--help")
	if code != ending.ExitDone || !strings.Contains(stdout, "DYNAMILL_READY_LAG") {
		t.Errorf("run --help does not speak of the environment: exit code %d", code)
	}
}

func TestColorRefusesOtherValues(t *testing.T) {
	code, _, stderr := command(t, "version", "--color", "sometimes")
	if code != ending.ExitInvalid || !strings.Contains(stderr, `--color "sometimes" is not one of auto, always, never`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "version", "--color", "sometimes", "--color", "never"); code != ending.ExitDone {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
