package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// largest is a rule file of as many entities and rules as there may be.
func largest() string {
	var b strings.Builder
	b.WriteString("version: 1\ntable: { keys: [pk, sk] }\nentities:\n")
	for i := range rules.EntitiesMax {
		fmt.Fprintf(&b, "  E%d: { key: { pk: \"E#${a}#${b}#${c}#%d\", sk: \"E#${d}-${e}-%d\" } }\n", i, i, i)
	}
	b.WriteString("rules:\n")
	for i := range rules.RulesMax {
		fmt.Fprintf(&b, "  r%d:\n    count: E%d\n    as: E%d.n%d\n    where: 'a == \"x\" && size(tags) > %d'\n    write_shards: 4\n",
			i, i%rules.EntitiesMax, (i+1)%rules.EntitiesMax, i, i)
	}
	return b.String()
}

func TestTheLargestFileLoadsWithinSeconds(t *testing.T) {
	start := time.Now()
	set := loadText(t, largest())
	if len(set.Entities) != rules.EntitiesMax || len(set.Rules) != rules.RulesMax {
		t.Errorf("%d entities, %d rules", len(set.Entities), len(set.Rules))
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	t.Logf("%d bytes in %v", len(largest()), time.Since(start))
}

func TestOneEntityMoreThanTheLargestFileIsRefused(t *testing.T) {
	_, err := rules.Load("dynamill.yaml", []byte(strings.Replace(largest(), "rules:", "  More: { key: { pk: M, sk: M } }\nrules:", 1)),
		projections.Kinds)
	if err == nil || !strings.Contains(err.Error(), "file.too_many") {
		t.Errorf("got %v", err)
	}
}

func TestProblemsThatAreNotListedAreCounted(t *testing.T) {
	_, err := rules.Load("dynamill.yaml", []byte("version: 1\n"+strings.Repeat("x: 1\n", 300)), projections.Kinds)
	var problems *rules.Problems
	if !errors.As(err, &problems) || len(problems.List) != 201 {
		t.Fatalf("want 201 problems, got %.200v", err)
	}
	last := problems.List[200]
	want := "dynamill.yaml: file.more: 101 more are not listed: 200 are listed at once\n" +
		"    hint: correct these first, then check the file again\n"
	if got := last.String(); got != want {
		t.Errorf("the last one says %q, want %q", got, want)
	}
}
