package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
)

// commandPaths names all commands behind "dynamill".
func commandPaths() (paths []string) {
	for _, cmd := range commandline.Commands((&app{}).rootCommand()) {
		paths = append(paths, strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "dynamill")))
	}
	return paths
}

// TestHelpOfEachCommandHasExampleAndCost fails for a command without them, and for a
// text that no command has.
func TestHelpOfEachCommandHasExampleAndCost(t *testing.T) {
	t.Parallel()
	paths := commandPaths()
	for _, path := range append(paths, "help") {
		cmd, stdout, stderr := commandOf(append(strings.Fields(path), "--help"))
		if err := cmd.Run(); err != nil || stderr.String() != "" {
			t.Errorf("%s: %v, standard error %q", path, err, stderr)
		}
		text := stdout.String()
		for _, label := range []string{"Reads:", "Writes:", "Creates:", "Costs:"} {
			if n := len(regexp.MustCompile(`(?m)^    `+label+` +\S`).FindAllString(text, -1)); n != 1 {
				t.Errorf("%s: help has %d lines with %s, want 1", path, n, label)
			}
		}
		_, examples, _ := strings.Cut(text, "\nExamples:\n")
		examples, _, _ = strings.Cut(examples, "\n\n")
		if !strings.Contains(examples, strings.TrimSpace("dynamill "+path)) {
			t.Errorf("%s: help has no example of it: %q", path, examples)
		}
		for line := range strings.Lines(text) {
			if len(line) > 160 {
				t.Errorf("%s: a line of help has %d columns: %s", path, len(line), line)
			}
		}
	}
	known := slices.Concat(paths, []string{"", "dynamill", "help", "configuration", "deployment", "exit codes"})
	for _, text := range helpTexts.Templates() {
		if !slices.Contains(known, text.Name()) {
			t.Errorf("there is a text of %q, which is not a command", text.Name())
		}
	}
}
