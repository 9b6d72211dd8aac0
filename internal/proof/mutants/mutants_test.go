package mutants

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// moduleRoot is where go test finds the module: three folders above this one.
const moduleRoot = "../../.."

// TestGuardedCodeCompilesWithSwitches holds every patch file against the present source.
func TestGuardedCodeCompilesWithSwitches(t *testing.T) {
	overlay, err := Write(moduleRoot, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	guards, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, g := range guards {
		for _, h := range g.hunks {
			folders = append(folders, "./"+path.Dir(h.path))
		}
	}
	slices.Sort(folders)
	build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", overlay}, slices.Compact(folders)...)...)
	build.Dir = moduleRoot
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", build, err, out)
	}
}

func TestOverlayReplacesGuardedFilesAndInstalls(t *testing.T) {
	file, err := Write(moduleRoot, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"internal/rules/identify.go": `switches.Off("KeyParsed")`,
		installedPath:                "const Installed = true",
	} {
		copied, err := os.ReadFile(overlay.Replace[filepath.Join(root, path)])
		if err != nil || !strings.Contains(string(copied), want) {
			t.Errorf("the copy of %s lacks %s: %v", path, want, err)
		}
	}
}

const source = `package plan

func one() int {
	return 1
}

func two() int {
	return 2
}
`

const onePatch = `# numbers

guard One: one is one
@@ plan.go
-	return 1
+	if switches.Off("One") {
+		return 3
+	}
+	return 1
`

// apply applies the guards of a patch file to the source above.
func apply(t *testing.T, patch string) (string, error) {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "plan.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	guards, err := parse("numbers.patch", patch)
	if err != nil {
		return "", err
	}
	mutated, err := Apply(root, guards)
	return mutated["plan.go"], err
}

func TestGuardsOfOneFileAreAppliedTogether(t *testing.T) {
	// The blank line in the second guard's change stays, with or without its sign;
	// the third guard is made unique by lines that the second one changes around.
	got, err := apply(t, onePatch+`
guard Two: two is two
@@ plan.go
 }

 func two() int {
+	if switches.Off("Two") {
+		return 4
+	}
@@ plan.go
+var four = 4
+
 func one() int {

guard Three: two is not three
@@ plan.go
 func two() int {
+	if switches.Off("Three") {
+		return 3
+	}
 	return 2
`)
	want := `package plan; import "github.com/dynamill/dynamill/internal/proof/mutants/switches"

var four = 4

func one() int {
	if switches.Off("One") {
		return 3
	}
	return 1
}

func two() int {
	if switches.Off("Two") {
		return 4
	}
	if switches.Off("Three") {
		return 3
	}
	return 2
}
`
	if err != nil || got != want {
		t.Errorf("got %v, and\n%s\nwant\n%s", err, got, want)
	}
}

func TestWrongPatchesAreRefused(t *testing.T) {
	const head = "guard Two: two is two\n@@ plan.go\n"
	const added = "+	// switches.Off(\"Two\")\n"
	tests := map[string]struct {
		patch string
		want  []string // parts of the error
	}{
		"the guarded code has changed": {
			head + "-	return 22\n" + added,
			[]string{"the guarded code of Two in plan.go has changed: adapt internal/proof/mutants/numbers.patch", "do not occur", "return 22"},
		},
		"part of a line": {head + "-	return\n" + added, []string{"guarded code of Two", "do not occur"}},
		"lines that occur twice": {
			head + " }\n" + added, []string{"guarded code of Two", "occur 2 times"},
		},
		"only new lines":      {head + added, []string{"do not occur"}},
		"a file that is gone": {strings.Replace(head, "plan", "gone", 1) + " }\n" + added, []string{"guard Two in numbers.patch", "gone.go"}},
		"two guards that change a line": {
			onePatch + head + "-	return 1\n" + added, []string{"plan.go", "One and Two change the same lines", "return 1"},
		},
		"a change without a new line": {head + "-	return 2\n", []string{"guard Two", "adds no line"}},
		"another guard's switch":      {head + " 	return 2\n+switches.Off(\"One\")\n", []string{"numbers.patch: guard Two", `switch of "One"`}},
		"no switch":                   {head + " 	return 2\n+\n", []string{"guard Two", `want switches.Off("Two")`}},
		"no change":                   {"guard Two: two is two\n", []string{"guard Two", "no change"}},
		"no guard":                    {"@@ plan.go\n", []string{"numbers.patch:1", `want "guard <Name>`}},
		"no file":                     {"guard Two: two is two\n+	return 3\n", []string{"numbers.patch:2", `want "@@ <file>"`}},
		"a line without a sign":       {head + "return 2\n", []string{"numbers.patch:3", "return 2"}},
		"a guard that says nothing":   {"guard Two:\n", []string{"numbers.patch:1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := apply(t, test.patch)
			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
		})
	}
}
