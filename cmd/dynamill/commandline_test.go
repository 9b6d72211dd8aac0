package main

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

// TestUnusableCommandLinesNameTheNearest runs the built command with command lines
// that cannot be used.
func TestUnusableCommandLinesNameTheNearest(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"nonsense":               "unknown command \"nonsense\" for `dynamill`; `dynamill --help` lists",
		"nonsense --help":        "unknown command \"nonsense\" for `dynamill`; `dynamill --help` lists",
		"--help nonsense":        "unknown command \"nonsense\"",
		"rnu --help":             "did you mean `dynamill run`?",
		"chekc":                  "did you mean `dynamill check`?",
		"stat":                   "did you mean `dynamill status`?",
		"retry x":                "did you mean `dynamill parked retry`?",
		"nonsense --drain":       "unknown command \"nonsense\"",
		"parked nonsense":        "unknown command \"nonsense\" for `dynamill parked`: its commands are discard, list, retry, show",
		"parked lits":            "did you mean `dynamill parked list`?",
		"parked lits --help":     "did you mean `dynamill parked list`?",
		"infra samm":             "did you mean `dynamill infra sam`?",
		"run nonsense":           "`dynamill run` takes no argument \"nonsense\"; `dynamill run --help`",
		"run nonsense --help":    "`dynamill run` takes no argument \"nonsense\"",
		"run drain":              "did you mean --drain?",
		"run --drian":            "unknown flag: --drian: did you mean --drain? `dynamill run --help`",
		"status --drain":         "`dynamill status` has no flag --drain: it is a flag of `dynamill run`",
		"--drain run":            "it is a flag of `dynamill run`",
		"run -x":                 "unknown shorthand flag: 'x'",
		"help nonsense":          "unknown command \"nonsense\" for `dynamill`",
		"help chekc":             "did you mean `dynamill check`?",
		"help parked lits":       "did you mean `dynamill parked list`?",
		"parked show a b":        "`dynamill parked show` does not take 2 arguments: it is used as `dynamill parked show ID",
		"docs man":               "does not take 0 arguments",
		"completion":             "name the shell",
		"completion tcsh":        "name the shell",
		"completion tcsh --help": "name the shell",
	} {
		cmd, stdout, stderr := commandOf(strings.Fields(line))
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != ending.ExitInvalid || stdout.String() != "" {
			t.Errorf("%s: exit code %d, standard output %q; want %d and none", line, code, stdout, ending.ExitInvalid)
		}
		if text := stderr.String(); !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: got %q, want one line with %q", line, text, want)
		}
	}
}
