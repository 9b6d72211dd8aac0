package rules_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// refusedMark stands at the end of a line of the reference that is refused, before the code.
const refusedMark = "# refused: "

func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheReferencesExamplesLoad loads each example without its refused lines, and then with one of them at a time.
func TestTheReferencesExamplesLoad(t *testing.T) {
	text, err := os.ReadFile("testdata/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}
	base, refused := string(text), 0
	examples := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(reference(t), -1)
	for _, example := range examples {
		lines := strings.Split(strings.TrimRight(example[1], "\n"), "\n")
		isRefused := func(line string) bool { return strings.Contains(line, refusedMark) }
		if codes := codesOf(whole(base, slices.DeleteFunc(slices.Clone(lines), isRefused))); len(codes) > 0 {
			t.Errorf("%v in the example\n%s", codes, example[1])
		}
		for i, line := range lines {
			_, code, found := strings.Cut(line, refusedMark)
			if !found {
				continue
			}
			refused++
			with := slices.Concat(slices.DeleteFunc(slices.Clone(lines[:i]), isRefused), lines[i:i+1],
				slices.DeleteFunc(slices.Clone(lines[i+1:]), isRefused))
			if codes := codesOf(whole(base, with)); !slices.Equal(codes, []string{code}) {
				t.Errorf("%v is found, not %s, in the line\n%s", codes, code, line)
			}
		}
	}
	if len(examples) < 12 || refused < 8 {
		t.Errorf("only %d examples, %d refused lines", len(examples), refused)
	}
}

// codesOf returns the codes of a file's problems, each once.
func codesOf(file string) (codes []string) {
	_, err := rules.Load("rules.md", []byte(file), projections.Kinds)
	var problems *rules.Problems
	if errors.As(err, &problems) {
		for _, p := range problems.List {
			codes = append(codes, p.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// whole completes an example: what it lacks is the base's, and what it gives replaces the base's entity or section of that name.
// Keys at the margin that begin no section are rules.
func whole(base string, example []string) string {
	if strings.HasPrefix(example[0], "version:") {
		return strings.Join(example, "\n")
	}
	given, entities, inRules := map[string]string{}, map[string]string{}, ""
	section, entity := "", ""
	for _, line := range example {
		name, _, _ := strings.Cut(line, ":")
		if trimmed := strings.TrimSpace(line); line != "" && trimmed == line && !strings.HasPrefix(line, "#") {
			section = ""
			if slices.Contains([]string{"table", "entities", "rules"}, name) {
				section = name
			}
		}
		switch inner, indented := strings.CutPrefix(name, "  "); {
		case section == "":
			inRules += "  " + line + "\n"
		case section == "rules" && line != "rules:":
			inRules += line + "\n"
		case section == "entities" && line != "entities:":
			if indented && !strings.HasPrefix(inner, " ") {
				entity = inner
			}
			entities[entity] += line + "\n"
		case section == "table":
			given["table"] += line + "\n"
		}
	}
	file := ""
	for line := range strings.Lines(base) {
		name, _, _ := strings.Cut(line, ":")
		switch inner := strings.TrimSpace(name); {
		case given[name] != "":
			file += given[name]
		case strings.HasPrefix(line, "  ") && entities[inner] != "":
			file += entities[inner]
			delete(entities, inner)
		case name == "rules":
			for _, text := range entities {
				file += text
			}
			file += line + inRules
		case inRules == "" || !strings.HasPrefix(line, "  any-rule:"):
			file += line
		}
	}
	if text := strings.Join(example, "\n"); strings.Contains(text, "PK") {
		file = strings.NewReplacer("pk:", "PK:", "sk:", "SK:", "[pk, sk]", "[PK, SK]").Replace(file)
	}
	return file
}

func TestTheReferencesCodesExist(t *testing.T) {
	_, table, _ := strings.Cut(reference(t), "## What is refused")
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

// TestTheReferenceHasEveryCode looks in the reference for the codes of all golden files.
func TestTheReferenceHasEveryCode(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	known, code := reference(t), regexp.MustCompile(`(?m)^\S+:(?:\d+:\d+:)? ([a-z]+\.[a-z_]+): `)
	codes := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range code.FindAllStringSubmatch(string(text), -1) {
			codes[found[1]] = true
		}
	}
	for code := range codes {
		family, _, _ := strings.Cut(code, ".")
		if !strings.Contains(known, "`"+code+"`") && !strings.Contains(known, "`"+family+".*`") {
			t.Errorf("docs/rules.md does not have %s", code)
		}
	}
	if len(codes) < 60 {
		t.Errorf("%d codes found in golden files", len(codes))
	}
}
