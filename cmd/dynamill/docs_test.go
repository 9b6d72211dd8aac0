package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pagesOf runs `docs` with the given environment and returns its files.
func pagesOf(t *testing.T, form string, environment ...string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	cmd, _, stderr := commandOf([]string{"docs", form, dir})
	cmd.Env = append(os.Environ(), environment...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("docs %s: %v %s", form, err, stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[entry.Name()] = string(text)
	}
	return pages
}

func TestDocsWritesOnePageForEachCommand(t *testing.T) {
	t.Parallel()
	for form, want := range map[string][2]string{"man": {"-", ".1"}, "markdown": {"_", ".md"}} {
		pages := pagesOf(t, form, "SOURCE_DATE_EPOCH=")
		paths := commandPaths()
		if len(pages) != len(paths) {
			t.Errorf("%s: %d pages for %d commands", form, len(pages), len(paths))
		}
		for _, path := range paths {
			name := strings.ReplaceAll(strings.TrimSpace("dynamill "+path), " ", want[0]) + want[1]
			if text := pages[name]; !strings.Contains(text, "Writes:") || !strings.Contains(text, "--table") {
				t.Errorf("%s: %s has %d bytes, and no cost or no flags", form, name, len(text))
			}
		}
		if root := pages["dynamill"+want[1]]; !strings.Contains(root, "4  drift found") {
			t.Errorf("%s: the page of dynamill does not list the exit codes", form)
		}
	}
}

func TestManPagesCarryOnlyTheDateThatIsSet(t *testing.T) {
	t.Parallel()
	const name = "dynamill-run.1"
	page := pagesOf(t, "man", "SOURCE_DATE_EPOCH=")[name]
	if !strings.Contains(page, ".TH \"DYNAMILL-RUN\" \"1\" \"\" \"dynamill\"") {
		t.Errorf("the page begins with %.80q, want no date", page)
	}
	if again := pagesOf(t, "man", "SOURCE_DATE_EPOCH=")[name]; again != page {
		t.Error("a second run writes another page")
	}
	if dated := pagesOf(t, "man", "SOURCE_DATE_EPOCH=1700000000")[name]; !strings.Contains(dated, "\"Nov 2023\"") {
		t.Errorf("the page begins with %.80q, want Nov 2023", dated)
	}
}
