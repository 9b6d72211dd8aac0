package templates_test

import (
	"fmt"
	"testing"

	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

func TestNoTextFitsTwoTemplatesThatDoNotOverlap(t *testing.T) {
	expectNoCommonTexts(t, "a#-", 7, "a", "a#", "#a", "aa", "a-a#", "${x}", "${x...}", "a${x}", "${x}a", "${x}#", "#${x}", "#${x...}", "a#${x}",
		"${x}#${y}",
		"${x}-${y}", "${x}#${y...}", "a${x}-${y}", "${x}a${y}#", "${x}aa${y}", "${x}-${y...}", "${x}#${y}#${z}", "${x}#a#${z}", "-${x}-",
		"${x}#-")
	expectNoCommonTexts(t, "aA0#", 5, "${x}", "${x:lower}", "${x:upper}", "${x:01}", "${x:02}", "${x:03}", "${x:lower...}", "A${x:upper}",
		"a${x:upper}", "${x:lower}A", "${x:02}a", "a#${x:02}", "0${x:02}", "${x:02}0#${y:upper}", "${x:lower}#${y:upper}", "a", "A", "a0", "#A")
	expectNoCommonTexts(t, "0-#a", 6, "0", "-", "00", "a0", "#00", "${x}", "${x...}", "0${x}", "${x}-${y}", "${x:01}", "${x:02}", "${x:03}",
		"${x:02}#", "-${x:02}", "${x}-${y:01}", "${x}-${y:02}", "${x:01}-${y}", "${x}-${y:01}-${z}", "${x}-${y:01}-", "${x:01}-${y:02}",
		"${x}-${y:01}-${z...}", "${x}a${y:01}")
	expectNoCommonTexts(t, "éÉ#1", 5, "é", "É", "#É", "${x}", "${x:lower}", "${x:upper}", "${x:lower...}", "${x:upper}É", "${x:lower}É", "É${x}",
		"${x:lower}#${y:upper}", "é#${x:lower}")
}

// expectNoCommonTexts tries all texts of some letters, up to a length, with each two templates.
func expectNoCommonTexts(t *testing.T, letters string, length int, written ...string) {
	t.Helper()
	var texts []string
	for next := []string{""}; len(next[0]) < length; {
		var longer []string
		for _, text := range next {
			for _, letter := range letters {
				longer = append(longer, text+string(letter))
			}
		}
		texts, next = append(texts, longer...), longer
	}
	var shapes []templates.Shape
	for _, text := range written {
		var sh templates.Shape
		var err *templates.Fault
		if sh.Partition, err = sh.Parse(text, templates.AsIs); err != nil {
			t.Fatal(text, err.Message)
		}
		shapes = append(shapes, sh)
	}
	for i := range shapes {
		for k := range shapes {
			a, b := &shapes[i], &shapes[k]
			fit := ""
			for _, text := range texts {
				var va, vb [templates.VariablesMax]string
				if a.Partition.Match(text, &va) && b.Partition.Match(text, &vb) {
					fit = text
					break
				}
			}
			budget := templates.OverlapStepsMax
			example, overlap := templates.Overlapping(a, b, &budget)
			if (fit != "") != overlap {
				t.Errorf("%s and %s: overlap %t (%s), but %q fits both", a.Text(), b.Text(), overlap, example, fit)
			}
			if overlap && len(example) > len(fit) {
				t.Errorf("%s and %s: %q is longer than need be: %q", a.Text(), b.Text(), example, fit)
			}
		}
	}
}

func TestOverlapsAreDecidedExactly(t *testing.T) {
	for _, tt := range []struct {
		a, b    string
		example string // "" for no overlap
	}{
		{"USER#${a}", "USER#${b}", "USER#x"},
		{"USER#${a}", "USER#${b}#${c}", ""},
		{"USER#${a...}", "USER#${b}#${c}", "USER#x#x"},
		{"PROFILE", "${x}", "PROFILE"},
		{"PRO#FILE", "${x}", ""},
		{"PRO#FILE", "${x...}", "PRO#FILE"},
		{"A${x}", "${y}B", "AB"},
		{"${x}#A", "B#${y}", "B#A"},
		{"${x}-${y}", "${z}", "x-x"},
		{"A", "AA", ""},
		{"A", "${x}A", ""},
	} {
		t.Run(fmt.Sprintf("%s and %s", tt.a, tt.b), func(t *testing.T) {
			var a, b templates.Shape
			a.Partition, _ = a.Parse(tt.a, templates.AsIs)
			b.Partition, _ = b.Parse(tt.b, templates.AsIs)
			budget := templates.OverlapStepsMax
			example, overlap := templates.Overlapping(&a, &b, &budget)
			if overlap != (tt.example != "") || example != tt.example {
				t.Errorf("got %q, %t, want %q", example, overlap, tt.example)
			}
		})
	}
}
