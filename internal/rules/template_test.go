package rules

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// anyShape draws an entity's key templates.
func anyShape(t *rapid.T) templates.Shape {
	var sh templates.Shape
	names := []string{"a", "b", "c", "tag"}
	literal := rapid.SampledFrom([]string{"#", "A#", "-", "x", "#COUNT", "USER#", "ab", "é#", `\<`, `\{`, `\}`, `\\`, `\$`, `\${`, `\`, "<x>",
		"%x", "{"})
	one := func(label string) templates.Template {
		var text strings.Builder
		variable := rapid.Bool().Draw(t, label+" begins with a variable")
		n := rapid.IntRange(1, 5).Draw(t, label+" parts")
		for i := range n {
			if !variable {
				text.WriteString(literal.Draw(t, label+" literal"))
			} else if i == n-1 && rapid.Bool().Draw(t, label+" rest") {
				text.WriteString("${" + rapid.SampledFrom(names).Draw(t, label+" name") + "...}")
			} else {
				text.WriteString("${" + rapid.SampledFrom(names).Draw(t, label+" name") + "}")
			}
			variable = !variable
		}
		parsed, err := templates.Parse(text.String(), &sh.Variables)
		if err != nil {
			t.Fatalf("%q: %s", text.String(), err.Message)
		}
		return parsed
	}
	sh.Partition = one("partition")
	if sh.HasSort = rapid.Bool().Draw(t, "sort"); sh.HasSort {
		sh.Sort = one("sort")
	}
	return sh
}

// anyValue draws values that like to be mistaken for parts of a key.
var anyValue = rapid.OneOf(rapid.StringMatching(`[-#abxA]{1,6}`),
	rapid.SampledFrom([]string{"1", "COUNT", "g1#COUNT", "é", "x#", "-", "<x>", "{", `\`, `\<`, "${a}"}))

func TestWhatIsRenderedReadsBackAsTheSameVariables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &Entity{Name: "E", shape: anyShape(t)}
		var vars [VariablesMax]string
		for slot := range e.shape.Variables {
			vars[slot] = anyValue.Draw(t, "value")
		}
		key, err := e.render(&vars, func(slot int) string { return e.shape.Variables[slot] })
		if err != nil {
			var back [VariablesMax]string
			m := Match{Entity: e, vars: vars}
			var bad *ItemError
			if !errors.As(err, &bad) || bad.Code != "key.smuggled" || e.shape.Match(m.Key(), &back) && back == vars {
				t.Fatalf("%q with %q is refused: %v", e.shape.Text(), vars, err)
			}
			return
		}
		set := Set{Entities: []*Entity{e}}
		m, ok := set.Identify(key, nil)
		if !ok || m.vars != vars || m.Key() != key {
			t.Fatalf("%v of %q reads back as %q, %t; rendered from %q", key, e.shape.Text(), m.vars, ok, vars)
		}
	})
}

func TestWhatIsIdentifiedRendersBackAsTheSameKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &Entity{Name: "E", shape: anyShape(t)}
		key := change.Key{Partition: rapid.StringMatching(`[-#abxAUSER]{1,12}`).Draw(t, "partition")}
		if e.shape.HasSort {
			key.Sort = rapid.StringMatching(`[-#abxA]{1,12}`).Draw(t, "sort key")
		}
		set := Set{Entities: []*Entity{e}}
		if m, ok := set.Identify(key, nil); ok && m.Key() != key {
			t.Fatalf("%v of %q renders back as %v", key, e.shape.Text(), m.Key())
		}
	})
}

func TestNoTextFitsTwoTemplatesThatDoNotOverlap(t *testing.T) {
	var texts []string
	for next := []string{""}; len(next[0]) < 7; {
		var longer []string
		for _, text := range next {
			longer = append(longer, text+"a", text+"#", text+"-")
		}
		texts, next = append(texts, longer...), longer
	}
	var shapes []templates.Shape
	for _, text := range []string{"a", "a#", "#a", "aa", "a-a#", "${x}", "${x...}", "a${x}", "${x}a", "${x}#", "#${x}", "#${x...}", "a#${x}",
		"${x}#${y}",
		"${x}-${y}", "${x}#${y...}", "a${x}-${y}", "${x}a${y}#", "${x}aa${y}", "${x}-${y...}", "${x}#${y}#${z}", "${x}#a#${z}", "-${x}-",
		"${x}#-"} {
		var sh templates.Shape
		var err *templates.Fault
		if sh.Partition, err = templates.Parse(text, &sh.Variables); err != nil {
			t.Fatal(text, err.Message)
		}
		shapes = append(shapes, sh)
	}
	for i := range shapes {
		for k := range shapes {
			a, b := &shapes[i], &shapes[k]
			fit := ""
			for _, text := range texts {
				var va, vb [VariablesMax]string
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
			a.Partition, _ = templates.Parse(tt.a, &a.Variables)
			b.Partition, _ = templates.Parse(tt.b, &b.Variables)
			budget := templates.OverlapStepsMax
			example, overlap := templates.Overlapping(&a, &b, &budget)
			if overlap != (tt.example != "") || example != tt.example {
				t.Errorf("got %q, %t, want %q", example, overlap, tt.example)
			}
		})
	}
}
