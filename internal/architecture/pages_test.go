package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var fileInText = regexp.MustCompile("`([a-zA-Z0-9_./-]+\\.(?:go|txt|yaml|md))`")

// TestFilesThatDocumentsNameExist reads docs/architecture.md, which names a file by its whole path or by the end of it.
func TestFilesThatDocumentsNameExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(moduleRoot, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && file != moduleRoot {
			return fs.SkipDir
		}
		files = append(files, filepath.ToSlash(file))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := fileInText.FindAllStringSubmatch(string(page), -1)
	if len(named) < 30 {
		t.Fatalf("only %d files are found in the page", len(named))
	}
	for _, match := range named {
		isFile := func(file string) bool { return strings.HasSuffix(file, "/"+match[1]) }
		if match[1] != "dynamill.yaml" && !slices.ContainsFunc(files, isFile) { // that one is the user's
			t.Errorf("docs/architecture.md names %s, which does not exist", match[1])
		}
	}
}
