package rules_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// FuzzLoad holds that any text either loads or is refused with problems that
// can be shown, and that what loads can be used.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	item := change.Item{"kind": change.String("c"), "a": change.Number("1")}
	f.Fuzz(func(t *testing.T, src []byte) {
		set, err := rules.Load("dynamill.yaml", src, projections.Kinds)
		if err != nil {
			checkProblems(t, err)
			return
		}
		for _, r := range set.Rules {
			m := rules.Match{Entity: r.Source}
			switch form := r.Form.(type) {
			case rules.Giver:
				m.Entity = r.Target
				form.Given(item)
				_, _, _ = r.JoinedKey(&m, item)
			case rules.Maker:
				_ = r.ForEach(&m, item, func(_ string, m *rules.Match) error {
					_, _, err := form.Item(m, item)
					return err
				})
			case rules.Adder:
				_ = r.ForEach(&m, item, func(_ string, m *rules.Match) error {
					_, _, err := form.Contribution(m, item)
					return err
				})
			case rules.Setter:
				_, _ = form.Values(&m, item)
			default:
				if r.Displays() {
					_, _, _ = r.JoinedText(&m, item)
					break
				}
				t.Fatalf("rule %s of kind %s has no effect", r.Name, r.Kind.Word())
			}
		}
	})
}

func checkProblems(t *testing.T, err error) {
	t.Helper()
	var problems *rules.Problems
	if !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Fatalf("refused with %v", err)
	}
	for _, p := range problems.List {
		if p.Code == "" || p.Message == "" || p.Line < 0 || p.Line > 0 && p.Column < 1 {
			t.Fatalf("a problem that cannot be shown: %+v", p)
		}
	}
	if err.Error() == "" {
		t.Fatal("an error without words")
	}
}

func TestBombsAreRefusedAtOnce(t *testing.T) {
	big := 1 << 18 // a quarter of what a file may have
	pad := func(unit string) string { return strings.Repeat(unit, (big-100)/len(unit)) }
	var ladder strings.Builder
	for i := 0; ladder.Len() < big-2000; i++ {
		ladder.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	laughs := "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n"
	for name, src := range map[string]string{
		"brackets":     pad("["),
		"braces":       pad("{a: "),
		"dashes":       pad("- "),
		"indentation":  ladder.String(),
		"anchors":      pad("&a "),
		"tags":         pad("!a "),
		"aliases":      laughs,
		"question":     pad("? "),
		"long line":    "version: " + pad("x"),
		"many keys":    pad("a: 1\n"),
		"many rules":   "rules:\n" + pad("  ab: {}\n"),
		"dash lines":   pad("-\n"),
		"colons":       pad("a: "),
		"quotes":       pad(`"`),
		"too long":     strings.Repeat(" ", 4*big) + "x",
		"comments":     pad("a: # b\n"),
		"block scalar": "a: |\n" + pad(" x\n"),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := rules.Load("dynamill.yaml", []byte(src), projections.Kinds)
			checkProblems(t, err)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}
