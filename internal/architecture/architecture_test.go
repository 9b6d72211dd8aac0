package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moduleRoot is where go test finds this module: two folders above this one.
const moduleRoot = "../.."

func readModule(t *testing.T) []source {
	t.Helper()
	tree, err := readTree(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(tree, func(s source) bool { return s.folder() == "./change" }) {
		t.Fatalf("%s is not the module's root: no file of ./change found there", moduleRoot)
	}
	return tree
}

func TestRoomsImportOnlyWhatTheLayoutAllows(t *testing.T) {
	for _, breach := range breaches(graphOf(readModule(t)), arrows) {
		t.Error(breach)
	}
}

func TestFilesAreShortAndWhereTheLayoutPutsThem(t *testing.T) {
	for _, misshape := range misshapes(readModule(t)) {
		t.Error(misshape)
	}
}

func TestBreachesAreFound(t *testing.T) {
	tests := map[string]struct {
		graph imports
		want  []string // the rooms and the way of each breach
	}{
		"the layout's own arrows are allowed": {
			graph: imports{
				"./cmd/dynamill": {"./internal/projections", "./internal/streamreader", "./internal/replay", "./internal/handlers",
					"./internal/sim/dynamosim",
					awsSDK + "/config"},
				"./internal/projections":  {"./internal/rules", "./change", "./internal/attributes", awsSDK + "/service/dynamodb"},
				"./internal/rules":        {"./change", "./internal/rules/expr", "./internal/decimal", "github.com/goccy/go-yaml"},
				"./internal/rules/expr":   {"./change", "strings"},
				"./internal/streamreader": {"./change", "./internal/attributes", "./internal/streamreader/lineage"},
				"./internal/handlers":     {"./change"},
				"./internal/replay":       {"./change", "./internal/rules"},
				"./change":                {"strings"},
				"./internal/decimal":      {"github.com/cockroachdb/apd/v3"},
			},
		},
		"change imports another room": {
			graph: imports{"./change": {"./internal/decimal"}},
			want:  []string{"./change -> ./internal/decimal"},
		},
		"rules import the AWS SDK": {
			graph: imports{"./internal/rules": {awsSDK + "/service/dynamodb/types"}},
			want:  []string{"./internal/rules -> " + awsSDK + "/service/dynamodb/types"},
		},
		"rules reach the AWS SDK through another package": {
			graph: imports{
				"./internal/rules":      {"./change", "./internal/attributes"},
				"./internal/attributes": {"./change", awsSDK + "/service/dynamodb/types"},
			},
			want: []string{"./internal/rules -> ./internal/attributes -> " + awsSDK + "/service/dynamodb/types",
				"./internal/rules -> ./internal/attributes"},
		},
		"rules use a folder of their own": {
			graph: imports{"./internal/rules": {"./internal/rules/internal/spelling", "./internal/printable"},
				"./internal/rules/internal/spelling": {"strings"}},
		},
		"rules import a kind": {
			graph: imports{"./internal/rules": {"./internal/projections/internal/kinds/copies"}},
			want:  []string{"./internal/rules -> ./internal/projections/internal/kinds/copies"},
		},
		"the list imports the families": {
			graph: imports{"./internal/projections/internal/kinds": {"./internal/projections/internal/kinds/copies"},
				"./internal/projections": {"./internal/projections/internal/kinds"}},
		},
		"a family imports what all kinds share": {
			graph: imports{"./internal/projections/internal/kinds/copies": {"./internal/projections/internal/plan", "./internal/rules"}},
		},
		"a family imports another family": {
			graph: imports{"./internal/projections/internal/kinds/copies": {"./internal/projections/internal/kinds/mirrors"}},
			want:  []string{"./internal/projections/internal/kinds/copies -> ./internal/projections/internal/kinds/mirrors"},
		},
		"a family compares rules": {
			graph: imports{"./internal/projections/internal/kinds/copies": {"./internal/rules/rulediff"}},
			want:  []string{"./internal/projections/internal/kinds/copies -> ./internal/rules/rulediff"},
		},
		"what all kinds share knows a family": {
			graph: imports{"./internal/projections/internal/plan": {"./internal/projections/internal/kinds/aggregates"}},
			want:  []string{"./internal/projections/internal/plan -> ./internal/projections/internal/kinds/aggregates"},
		},
		"a folder inside rules imports the AWS SDK": {
			graph: imports{"./internal/rules/expr": {awsSDK}},
			want:  []string{"./internal/rules/expr -> " + awsSDK},
		},
		"the engine's pure half reaches the AWS SDK": {
			graph: imports{
				"./internal/projections/internal/plan": {"./internal/attributes"},
				"./internal/attributes":                {awsSDK + "/service/dynamodb/types"},
			},
			want: []string{"./internal/projections/internal/plan -> ./internal/attributes -> " + awsSDK + "/service/dynamodb/types"},
		},
		"the audit's repairs know a family": {
			graph: imports{"./internal/projections/internal/auditing": {"./internal/projections/internal/kinds/aggregates",
				"./internal/projections/internal/audit"}},
			want: []string{"./internal/projections/internal/auditing -> ./internal/projections/internal/kinds/aggregates"},
		},
		"the audit's pure half reaches its repairs": {
			graph: imports{"./internal/projections/internal/audit": {"./internal/projections/internal/auditing"}},
			want:  []string{"./internal/projections/internal/audit -> ./internal/projections/internal/auditing"},
		},
		"requests reach the planner": {
			graph: imports{"./internal/projections/internal/table": {"./internal/projections/internal/plan"}},
			want:  []string{"./internal/projections/internal/table -> ./internal/projections/internal/plan"},
		},
		"the oracle reaches the engine": {
			graph: imports{"./internal/proof/oracle": {"./internal/rules", "./change", "./internal/projections/internal/plan"}},
			want:  []string{"./internal/proof/oracle -> ./internal/projections/internal/plan"},
		},
		"the switches import another room": {
			graph: imports{"./internal/proof/mutants/switches": {"./change"}, "./internal/proof/mutants": {"./internal/proof/mutants/switches"}},
			want: []string{"./internal/proof/mutants -> ./internal/proof/mutants/switches -> ./change",
				"./internal/proof/mutants/switches -> ./change"},
		},
		"code that ships imports the switches": {
			graph: imports{
				"./internal/projections/internal/plan": {"./internal/proof/mutants/switches"},
				"./internal/proof/histories":           {"./internal/proof/mutants/switches"},
			},
			want: []string{"./internal/projections/internal/plan -> ./internal/proof/mutants/switches"},
		},
		"errors of AWS are explained with another room": {
			graph: imports{"./internal/awserror": {"./internal/printable"}},
			want:  []string{"./internal/awserror -> ./internal/printable"},
		},
		"progress reaches a driver": {
			graph: imports{"./cmd/dynamill/internal/progress": {"./internal/printable", "./internal/replay/verify"}},
			want:  []string{"./cmd/dynamill/internal/progress -> ./internal/replay/verify"},
		},
		"the judgement of health imports a driver": {
			graph: imports{"./internal/health": {"./internal/streamreader"}},
			want:  []string{"./internal/health -> ./internal/streamreader"},
		},
		"the command imports what the proof needs": {
			graph: imports{"./cmd/dynamill": {"./internal/proof/adversary"},
				"./internal/proof/histories": {"./internal/proof/adversary", "./internal/proof/oracle"}},
			want: []string{"./cmd/dynamill -> ./internal/proof/adversary"},
		},
		"the engine imports a driver": {
			graph: imports{"./internal/projections": {"./internal/streamreader"}},
			want:  []string{"./internal/projections -> ./internal/streamreader"},
		},
		"a driver imports the engine": {
			graph: imports{"./internal/handlers": {"./internal/projections"}},
			want:  []string{"./internal/handlers -> ./internal/projections"},
		},
		"a driver reaches another driver through an internal package": {
			graph: imports{
				"./internal/replay":   {"./internal/progress"},
				"./internal/progress": {"./internal/streamreader/lineage"},
			},
			want: []string{"./internal/replay -> ./internal/progress -> ./internal/streamreader/lineage"},
		},
		"a source of keys knows the run": {
			graph: imports{
				"./internal/replay":         {"./internal/replay/sources"},
				"./internal/replay/sources": {"./internal/replay/archive", "./internal/replay/internal/progress"},
			},
			want: []string{"./internal/replay/sources -> ./internal/replay/internal/progress"},
		},
		"the library uses the simulator": {
			graph: imports{"./internal/streamreader": {"./internal/sim/dynamosim"}},
			want:  []string{"./internal/streamreader -> ./internal/sim/dynamosim"},
		},
		"templates reach the engine": {
			graph: imports{"./internal/infra": {"./internal/rules", "./internal/projections"}},
			want:  []string{"./internal/infra -> ./internal/projections"},
		},
		"the function reaches the simulator": {
			graph: imports{"./cmd/dynamill-lambda": {"./internal/projections", "./internal/handlers", "./internal/bench"},
				"./internal/bench": {"./internal/sim/dynamosim"}},
			want: []string{"./cmd/dynamill-lambda -> ./internal/bench -> ./internal/sim/dynamosim"},
		},
		"a room imports the command": {
			graph: imports{"./examples/forum": {"./cmd/dynamill/internal/flags"}, "./cmd/dynamill": {"./cmd/dynamill/internal/flags"}},
			want:  []string{"./examples/forum -> ./cmd/dynamill/internal/flags"},
		},
		"a room of the command imports one beside it, and one above it": {
			graph: imports{
				"./cmd/dynamill":                    {"./cmd/dynamill/internal/status"},
				"./cmd/dynamill/internal/status":    {"./cmd/dynamill/internal/parked", "./cmd/dynamill/internal/output"},
				"./cmd/dynamill/internal/output":    {"./cmd/dynamill/internal/ending"},
				"./cmd/dynamill/internal/followed":  {"./cmd/dynamill/internal/replaying"},
				"./cmd/dynamill/internal/replaying": {"./cmd/dynamill/internal/verifying"},
			},
			want: []string{
				"./cmd/dynamill/internal/followed -> ./cmd/dynamill/internal/replaying",
				"./cmd/dynamill/internal/status -> ./cmd/dynamill/internal/parked",
			},
		},
		"the library's door opens on the rooms": {
			graph: imports{rootPackage: {"./internal/projections", "./internal/streamreader", "./internal/handlers", "./internal/replay",
				"./internal/pace"},
				"./cmd/dynamill": {rootPackage}, "./examples": {rootPackage}},
		},
		"a room imports the library's door": {
			graph: imports{"./internal/replay": {rootPackage}},
			want:  []string{"./internal/replay -> " + rootPackage},
		},
		"a program of its own links the metrics of the command": {
			graph: imports{rootPackage: {"./internal/sighting"}, "./internal/sighting": {"github.com/prometheus/client_golang/prometheus"}},
			want:  []string{rootPackage + " -> ./internal/sighting -> github.com/prometheus/client_golang/prometheus"},
		},
		"the library uses the simulator through what is for tests": {
			graph: imports{rootPackage: {"./dynamilltest"}, "./dynamilltest": {"./internal/sim/dynamosim"}},
			want:  []string{rootPackage + " -> ./dynamilltest", rootPackage + " -> ./dynamilltest -> ./internal/sim/dynamosim"},
		},
		"a circle ends": {
			graph: imports{"./internal/rules": {"./internal/rules/expr"}, "./internal/rules/expr": {"./internal/rules"}},
		},
		"names that only begin alike are different rooms": {
			graph: imports{"./change": {"changes"}, "./internal/projections": {"./replayed"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var ways []string
			for _, breach := range breaches(test.graph, arrows) {
				if !strings.Contains(breach, " must not import ") {
					t.Errorf("%q does not say which arrow is broken", breach)
				}
				ways = append(ways, strings.TrimSuffix(breach[strings.LastIndex(breach, "(")+1:], ")"))
			}
			if diff := cmp.Diff(test.want, ways); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABreachSaysWhy(t *testing.T) {
	got := breaches(imports{"./internal/handlers": {"./internal/replay"}}, arrows)
	want := []string{"./internal/handlers must not import ./internal/replay: a driver feeds the Processor that it declares; the package at " +
		"the root wires an engine to it (./internal/handlers -> ./internal/replay)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}

func TestMisshapesAreFound(t *testing.T) {
	tests := map[string]struct {
		file source
		want string // part of the sentence; "" means none
	}{
		"a file at the limit":            {source{path: "rules/parse.go", pkg: "rules", lines: linesMax}, ""},
		"a file over the limit":          {source{path: "rules/parse.go", pkg: "rules", lines: linesMax + 1}, "rules/parse.go has 501 lines"},
		"a long test":                    {source{path: "rules/parse_test.go", pkg: "rules_test", lines: 900}, "900 lines"},
		"a long generated file":          {source{path: "rules/table.go", pkg: "rules", lines: 9000, generated: true}, ""},
		"an unknown top-level folder":    {source{path: "engine/plan.go", pkg: "engine"}, `"engine", which is no room`},
		"a file at the root":             {source{path: "doc.go", pkg: "dynamill"}, ""},
		"a package that says nothing":    {source{path: "internal/util/x.go", pkg: "util"}, "package util says nothing"},
		"its tests":                      {source{path: "internal/util/x_test.go", pkg: "util_test"}, "package util_test says nothing"},
		"a package named after its noun": {source{path: "internal/decimal/x.go", pkg: "decimal"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := misshapes([]source{test.file})
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("found %q, want nothing", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Errorf("found %q, want one sentence with %q", got, test.want)
			}
		})
	}
}

func TestTheTreeIsReadAsTheGoCommandSeesIt(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"dynamill.go":                 "package dynamill\n\nimport \"" + module + "/rules\"\n",
		"cmd/dynamill/main.go":        "package main\n\nimport \"" + module + "\"\n",
		"change/record.go":            "package change\n\nimport \"strings\"\n",
		"rules/set.go":                "package rules\n\nimport (\n\t\"" + module + "/change\"\n)\n",
		"rules/set_test.go":           "package rules_test\n\nimport \"" + module + "/projections\"\n",
		"rules/gen.go":                "// Code generated by hand. DO NOT EDIT.\n\npackage rules\n",
		"rules/testdata/bad.go":       "not Go",
		".tools/emulators/x.go":       "not Go",
		"_scratch/x.go":               "not Go",
		"docs/guide.md":               "not Go",
		"benchmarks/other/go.mod":     "module other\n",
		"benchmarks/other/x.go":       "package types\n",
		"go.mod":                      "module " + module + "\n",
		"internal/last/no_newline.go": "package last",
	}
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range tree {
		got = append(got, fmt.Sprintf("%s %s %d %v %v", s.path, s.pkg, s.lines, s.imports, s.generated))
	}
	want := []string{
		"change/record.go change 3 [strings] false",
		"cmd/dynamill/main.go main 3 [./.] false",
		"dynamill.go dynamill 3 [./rules] false",
		"internal/last/no_newline.go last 1 [] false",
		"rules/gen.go rules 3 [] true",
		"rules/set.go rules 5 [./change] false",
		"rules/set_test.go rules_test 3 [./projections] false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	wantGraph := imports{rootPackage: {"./rules"}, "./cmd/dynamill": {rootPackage}, "./change": {"strings"}, "./internal/last": nil,
		"./rules": {"./change"}}
	if diff := cmp.Diff(wantGraph, graphOf(tree)); diff != "" {
		t.Errorf("graph without tests (-want +got):\n%s", diff)
	}
}
