package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestTheReferencesFirstExampleLoadsAndItsCodesExist(t *testing.T) {
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ := strings.Cut(after, "```")
	if _, err := rules.Load("rules.md", []byte(example), projections.Kinds); err != nil {
		t.Error(err)
	}
	_, table, _ := strings.Cut(string(text), "## What is refused")
	codes := 0
	for _, code := range strings.Split(table, "`") {
		if group, _, ok := strings.Cut(code, "."); !ok || strings.ContainsAny(code, " \n*") || group == "dynamill" {
			continue
		}
		codes++
		if !inSomeGoldenFile(t, code) {
			t.Errorf("no golden file has the code %s", code)
		}
	}
	if codes < 20 {
		t.Errorf("%d codes found in the reference", codes)
	}
}

func inSomeGoldenFile(t *testing.T, code string) bool {
	t.Helper()
	entries, err := os.ReadDir("testdata/bad")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".golden") {
			continue
		}
		text, err := os.ReadFile("testdata/bad/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ": "+code+": ") {
			return true
		}
	}
	return false
}
