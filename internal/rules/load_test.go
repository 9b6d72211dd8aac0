package rules_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGoodFilesLoadAsTheirGoldenFilesSay(t *testing.T) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	if len(files) < 2 {
		t.Fatalf("%d good files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			set, err := rules.Load(file, src, projections.Kinds)
			if err != nil {
				t.Fatalf("loading:\n%v", err)
			}
			compareGolden(t, strings.TrimSuffix(file, ".yaml")+".golden", describe(set))
		})
	}
}

// describe shows what a Set says in public.
func describe(s *rules.Set) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %q keys %q %q type %q\n", s.Table.Name, s.Table.PartitionKey, s.Table.SortKey, s.Table.TypeAttribute)
	for _, e := range s.Entities {
		fmt.Fprintf(&b, "entity %s unique=%q located=%t", e.Name, e.Unique, e.Located)
		for _, eq := range e.Equals {
			fmt.Fprintf(&b, " %s==%s:%q/%t", eq.Attribute, eq.Value.Kind(), eq.Value.Text(), eq.Value.Bool())
		}
		fmt.Fprintf(&b, " sources=%s displays=%s mirrors=%s parents=%s children=%s\n",
			ruleNames(e.Sources), ruleNames(e.Displays), ruleNames(e.Makers), ruleNames(e.Parents), ruleNames(e.Children))
	}
	for _, r := range s.Rules {
		fmt.Fprintf(&b, "rule %s: %s %s -> %s level=%d reads=%q writes=%q shards=%d byUnique=%t injective=%t joinReads=%q collection=%t\n",
			r.Name, r.Kind.Word(), r.Source.Name, r.Target.Name, r.Level, r.Reads, r.Writes, r.Suffixes(), r.ByUnique, r.Injective, r.JoinReads,
			r.Collection)
		if giver, gives := r.Form.(rules.Giver); gives {
			for i, missing := range giver.Given(nil) {
				fmt.Fprintf(&b, "  %s as %s, if missing %s %q\n", r.Attributes[i].From, r.Attributes[i].As, missing.Kind(), missing.Text())
			}
		}
	}
	return b.String()
}

func ruleNames(rs []*rules.Rule) []string {
	names := []string{}
	for _, r := range rs {
		names = append(names, r.Name)
	}
	return names
}

// compareGolden compares got with a golden file, or rewrites that.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update to accept)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
