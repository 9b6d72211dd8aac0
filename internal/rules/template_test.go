package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// anyShape draws an entity's key templates.
func anyShape(t *rapid.T) templates.Shape {
	var sh templates.Shape
	var names []string // with their formats: one name is written in one way
	for _, name := range []string{"a", "b", "c", "tag"} {
		names = append(names, name+rapid.SampledFrom([]string{"", "", "", ":lower", ":upper", ":02"}).Draw(t, "format"))
	}
	literal := rapid.SampledFrom([]string{"#", "A#", "-", "x", "#COUNT", "USER#", "ab", "é#", `\<`, `\{`, `\}`, `\\`, `\$`, `\${`, `\`, "<x>",
		"%x", "{"})
	one := func(label string) templates.Template {
		var text strings.Builder
		variable := rapid.Bool().Draw(t, label+" begins with a variable")
		n := rapid.IntRange(1, 5).Draw(t, label+" parts")
		for i := range n {
			if !variable {
				text.WriteString(literal.Draw(t, label+" literal"))
			} else {
				name := rapid.SampledFrom(names).Draw(t, label+" name")
				if i == n-1 && rapid.Bool().Draw(t, label+" rest") && !strings.HasSuffix(name, ":02") {
					name += "..."
				}
				text.WriteString("${" + name + "}")
			}
			variable = !variable
		}
		parsed, err := sh.Parse(text.String(), templates.AsIs)
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
	rapid.SampledFrom([]string{"1", "007", "12", "-1", "0.5", "0", "300", "-0", "1e1", "COUNT", "g1#COUNT", "é", "x#", "-", "<x>", "{", `\`, `\<`, "${a}"}))

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
			padded := slices.ContainsFunc(e.shape.Formats, func(f templates.Format) bool { return f.Width > 0 })
			if errors.As(err, &bad) && padded && (bad.Code == "value.type" || bad.Code == "number.width") {
				return
			}
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
		key := change.Key{Partition: rapid.StringMatching(`[-#abxAUSER07]{1,12}`).Draw(t, "partition")}
		if e.shape.HasSort {
			key.Sort = rapid.StringMatching(`[-#abxA07]{1,12}`).Draw(t, "sort key")
		}
		set := Set{Entities: []*Entity{e}}
		if m, ok := set.Identify(key, nil); ok && m.Key() != key {
			t.Fatalf("%v of %q renders back as %v", key, e.shape.Text(), m.Key())
		}
	})
}

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
