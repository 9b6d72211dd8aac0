package architecture

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// A module of benchmarks that requires less than the module at the root is not built until it is tidied.
func TestBenchmarksRequireWhatTheRootRequires(t *testing.T) {
	for _, folder := range []string{"benchmarks/reading", "benchmarks/peers"} {
		benchmarks := requirements(t, folder+"/go.mod")
		shared := 0
		for module, root := range requirements(t, "go.mod") {
			theirs, ok := benchmarks[module]
			if !ok {
				continue
			}
			shared++
			if semver.Compare(theirs, root) < 0 {
				t.Errorf("%s requires %s %s, and the root %s: run go mod tidy in %s", folder, module, theirs, root, folder)
			}
		}
		if shared < 20 {
			t.Fatalf("only %d modules are required by the root and by %s", shared, folder)
		}
	}
}

func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot, file))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.ParseLax(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range parsed.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}
