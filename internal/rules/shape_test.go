package rules_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// drawn is an entity Drawn with random key templates, and a rule that finds its items by the attributes of a Mark that
// have the names of their variables.
type drawn struct {
	set       *rules.Set
	text      string
	variables []string
	sorted    bool // its keys have a sort key
	padded    bool
}

func anyEntity(t *rapid.T) *drawn {
	d := &drawn{}
	var names []string // with their formats: one name is written in one way
	for _, name := range []string{"a", "b", "c", "tag"} {
		names = append(names, name+rapid.SampledFrom([]string{"", "", "", ":lower", ":upper", ":02"}).Draw(t, "format"))
	}
	literal := rapid.SampledFrom([]string{"#", "A#", "-", "x", "#COUNT", "USER#", "ab", "é#", `\<`, `\{`, `\}`, `\\`, `\$`, `\${`, `\<x>`, "%x",
		`\{x`})
	one := func(label string) string {
		var text strings.Builder
		variable := rapid.Bool().Draw(t, label+" begins with a variable")
		n := rapid.IntRange(1, 5).Draw(t, label+" parts")
		for i := range n {
			if !variable {
				text.WriteString(literal.Draw(t, label+" literal"))
			} else {
				name := rapid.SampledFrom(names).Draw(t, label+" name")
				bare, format, _ := strings.Cut(name, ":")
				d.padded = d.padded || format == "02"
				if !slices.Contains(d.variables, bare) {
					d.variables = append(d.variables, bare)
				}
				if i == n-1 && rapid.Bool().Draw(t, label+" rest") && format != "02" {
					name += "..."
				}
				text.WriteString("${" + name + "}")
			}
			variable = !variable
		}
		return text.String()
	}
	keys, key := []string{"PK"}, map[string]string{"PK": one("partition")}
	d.text, d.sorted = key["PK"], rapid.Bool().Draw(t, "sort")
	if d.sorted {
		keys, key["SK"] = append(keys, "SK"), one("sort")
		d.text += " / " + key["SK"]
	}
	d.set = d.load(t, keys, key)
	return d
}

func (d *drawn) load(t *rapid.T, keys []string, key map[string]string) *rules.Set {
	by := map[string]string{}
	for _, name := range d.variables {
		by[name] = name
	}
	mark := maps.Clone(key)
	for i, attribute := range keys {
		mark[attribute] = []string{"MARK", "${mark}"}[i]
	}
	file := map[string]any{
		"version":  1,
		"table":    map[string]any{"keys": keys, "type": "kind"},
		"entities": map[string]any{"Drawn": map[string]any{"key": key}, "Mark": map[string]any{"key": mark}},
		"rules":    map[string]any{"marks": map[string]any{"count": "Mark", "as": "Drawn.marks", "by": by}},
	}
	source, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	set, err := rules.Load("dynamill.yaml", source, projections.Kinds)
	if err != nil {
		t.Fatalf("%s is refused: %v", d.text, err)
	}
	return set
}

func (d *drawn) target(t *rapid.T, values map[string]string) (change.Key, error) {
	item := change.Item{"kind": change.String("Mark")}
	for name, value := range values {
		item[name] = change.String(value)
	}
	mark := change.Key{Partition: "MARK"}
	if d.sorted {
		mark.Sort = "1"
	}
	m, ok := d.set.Identify(mark, item)
	if !ok {
		t.Fatal("the mark is of no entity")
	}
	key, _, err := d.set.Rules[0].JoinedKey(&m, item)
	return key, err
}

// anyValue draws values that like to be mistaken for parts of a key.
var anyValue = rapid.OneOf(rapid.StringMatching(`[-#abxA]{1,6}`),
	rapid.SampledFrom([]string{"1", "007", "12", "-1", "0.5", "0", "300", "-0", "1e1", "COUNT", "g1#COUNT", "é", "x#", "-", "<x>", "{", `\`, `\<`, "${a}"}))

func TestWhatIsRenderedReadsBackAsTheSameVariables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyEntity(t)
		values := map[string]string{}
		for _, name := range d.variables {
			values[name] = anyValue.Draw(t, name)
		}
		key, err := d.target(t, values)
		if err != nil {
			var bad *rules.ItemError
			errors.As(err, &bad)
			likeKey := strings.ContainsAny(strings.Join(slices.Collect(maps.Values(values)), ""), "#"+d.text)
			if bad == nil || !(bad.Code == "key.smuggled" && likeKey) &&
				!(d.padded && (bad.Code == "value.type" || bad.Code == "number.width")) {
				t.Fatalf("%q with %q is refused: %v", d.text, values, err)
			}
			return
		}
		m, ok := d.set.Identify(key, change.Item{"kind": change.String("Drawn")})
		if !ok || m.Key() != key {
			t.Fatalf("%v of %q reads back as %v, %t", key, d.text, m.Key(), ok)
		}
		back := map[string]string{}
		for name, value := range values {
			read := m.Entity.Value(name, &m, nil)
			if back[name] = read.Text(); read.Kind() == change.KindString && !strings.EqualFold(read.Text(), value) {
				t.Fatalf("%s of %v of %q reads back as %q; rendered from %q", name, key, d.text, read.Text(), value)
			}
		}
		if again, err := d.target(t, back); again != key {
			t.Fatalf("%v of %q reads back as %q, which renders as %v, %v", key, d.text, back, again, err)
		}
	})
}

func TestWhatIsIdentifiedRendersBackAsTheSameKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyEntity(t)
		key := change.Key{Partition: rapid.StringMatching(`[-#abxAUSER07]{1,12}`).Draw(t, "partition")}
		if d.sorted {
			key.Sort = rapid.StringMatching(`[-#abxA07]{1,12}`).Draw(t, "sort key")
		}
		if m, ok := d.set.Identify(key, change.Item{"kind": change.String("Drawn")}); ok && m.Key() != key {
			t.Fatalf("%v of %q renders back as %v", key, d.text, m.Key())
		}
	})
}
