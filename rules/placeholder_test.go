package rules

import (
	"errors"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

func TestPlaceholdersAreToldFromConstants(t *testing.T) {
	for _, tt := range []struct {
		template  string
		corrected string // "" if the template has no placeholder
		certain   bool   // of the first placeholder
	}{
		{"USER#<userId>", "USER#${userId}", true},
		{"USER#{userId}", "USER#${userId}", true},
		{"USER#{{userId}}", "USER#${userId}", true},
		{"USER#{{ .userId }}", "USER#${userId}", true},
		{"USER#%userId%", "USER#${userId}", true},
		{"<<a>>-{b}-%c%", "${a}-${b}-${c}", true},
		{"<user-id>", "${user_id}", true},
		{"<tag...>", "${tag}", true},
		{"${a}#<b>", "${a}#${b}", true},
		{"$userId", "${userId}", false},
		{"US$userId", "US${userId}", false},
		{":userId", "${userId}", false},
		{"/users/:id/posts", "/users/${id}/posts", false},
		{"user_:id", "user_${id}", false},

		{"ORDER%", "", false},
		{"100%", "", false},
		{"5% of 10%", "", false},
		{"caf%C3%A9%20", "", false},
		{"a<b", "", false},
		{"a < b > c", "a ${b} c", true}, // a name between marks, with blanks
		{"a->b", "", false},
		{"<1>", "", false},
		{"<>", "", false},
		{"{", "", false},
		{"{}", "", false},
		{"{0}", "", false},
		{"$5", "", false},
		{"US$", "", false},
		{"CONFIG:global", "", false},
		{"a::b", "", false},
		{"12:30", "", false},
		{"${userId}", "", false},
		{"${a}:${b}", "", false},
		{`\<userId>`, "", false},
		{`\{\{userId}}`, "", false},
		{`\%userId%`, "", false},
		{`\$userId#\:postId`, "", false},
		{`\${userId}`, "", false},
		{`\\<userId>`, `\\${userId}`, true}, // the backslash is a backslash
	} {
		found := placeholdersIn(tt.template)
		if (len(found) > 0) != (tt.corrected != "") {
			t.Errorf("%q: found %+v", tt.template, found)
			continue
		}
		if len(found) == 0 {
			continue
		}
		if got := corrected(tt.template, found); got != tt.corrected || found[0].certain != tt.certain {
			t.Errorf("%q is corrected to %q, certain %t; want %q, %t", tt.template, got, found[0].certain, tt.corrected, tt.certain)
		}
		kept := keptAsText(tt.template, true)
		parsed, err := parseTemplate(kept, &[]string{})
		if err != nil || len(placeholdersIn(kept)) > 0 {
			t.Errorf("%q, which should keep %q, is refused", kept, tt.template)
		} else if !strings.Contains(tt.template, "${") && parsed.parts[0].literal != strings.ReplaceAll(tt.template, `\\`, `\`) {
			t.Errorf("%q keeps %q, want %q", kept, parsed.parts[0].literal, tt.template)
		}
	}
}

func TestBackslashKeepsACharacter(t *testing.T) {
	for _, tt := range []struct{ template, key string }{
		{`A#\<id>`, "A#<id>"},
		{`A#\{id}`, "A#{id}"},
		{`A#\%id%`, "A#%id%"},
		{`\$service#\:id`, "$service#:id"},
		{`\${id}`, "${id}"},
		{`\{\}\>`, "{}>"},
		{`a\\b`, `a\b`},
		{`a\b\`, `a\b\`}, // before another character, and at the end, it is a backslash
		{"{", "{"},
		{"a}b", "a}b"},
	} {
		sh := shape{}
		var err *templateError
		if sh.partition, err = parseTemplate(tt.template, &sh.variables); err != nil {
			t.Errorf("%q: %s", tt.template, err.message)
			continue
		}
		e := &Entity{Name: "E", shape: sh}
		m := Match{Entity: e}
		if got := m.Key().Partition; got != tt.key {
			t.Errorf("%q renders as %q, want %q", tt.template, got, tt.key)
		}
		if !e.HasKey(change.Key{Partition: tt.key}) {
			t.Errorf("%q does not match %q", tt.template, tt.key)
		}
	}
}

// The text of a template that needs no escape is its meaning, so that
// fingerprints of such rules do not depend on the version.
func TestTemplatesOfOneMeaningHaveOneText(t *testing.T) {
	meaning := func(text string) string {
		var variables []string
		parsed, err := parseTemplate(text, &variables)
		if err != nil {
			t.Fatal(text, err.message)
		}
		return parsed.meaning(variables)
	}
	for _, text := range []string{"USER#${userId}", "a${x...}", "100%", `a\b`, "$service_${x}#:y", "<a>"} {
		if got := meaning(text); got != text {
			t.Errorf("%q means %q", text, got)
		}
	}
	for _, pair := range [][2]string{{`\<a>`, "<a>"}, {`\$s`, "$s"}, {`a\\b`, `a\b`}, {`\{ `, "{ "}} {
		if meaning(pair[0]) != meaning(pair[1]) {
			t.Errorf("%q means %q and %q means %q", pair[0], meaning(pair[0]), pair[1], meaning(pair[1]))
		}
	}
	for _, pair := range [][2]string{{`\${x}`, "${x}"}, {`\\{ `, `\{ `}, {`\\${x}`, `\${x}`}} {
		if meaning(pair[0]) == meaning(pair[1]) {
			t.Errorf("%q and %q both mean %q", pair[0], pair[1], meaning(pair[0]))
		}
	}
}

const electro = `version: 1
table: { keys: [pk, sk] }
entities:
  Employee: { key: { pk: '$app#employee_${employee}', sk: '$employees_1' } }
  Task:     { key: { pk: '$app#task_${task}', sk: '$tasks_1#employee_${employee}' } }
rules:
  tasks: { count: Task, as: Employee.tasks }
`

func TestPrefixedNamesBesideVariablesAreWarnings(t *testing.T) {
	set, err := Load("dynamill.yaml", []byte(electro))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, w := range set.Warnings() {
		if !w.Warning {
			t.Errorf("%s is no warning", w.Message)
		}
		got.WriteString(w.String())
	}
	want := `warning: dynamill.yaml:4:27: template.placeholder: $app is a constant here, not a variable; it stands in 1 more place
       4 |   Employee: { key: { pk: '$app#employee_${employee}', sk: '$employees_1' } }
         |                           ^^^^
    hint: if it is a variable, write "${app}#employee_${employee}"; if the keys hold $app, keep it with a backslash: '\$app#employee_${employee}'
warning: dynamill.yaml:4:60: template.placeholder: $employees_1 is a constant here, not a variable
       4 |   Employee: { key: { pk: '$app#employee_${employee}', sk: '$employees_1' } }
         |                                                            ^^^^^^^^^^^^
    hint: if it is a variable, write "${employees_1}"; if the keys hold $employees_1, keep it with a backslash: '\$employees_1'
warning: dynamill.yaml:5:52: template.placeholder: $tasks_1 is a constant here, not a variable
       5 |   Task:     { key: { pk: '$app#task_${task}', sk: '$tasks_1#employee_${employee}' } }
         |                                                    ^^^^^^^^
    hint: if it is a variable, write "${tasks_1}#employee_${employee}"; if the keys hold $tasks_1, keep it with a backslash: '\$tasks_1#employee_${employee}'
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	kept := strings.NewReplacer("'$", `'\$`).Replace(electro)
	escaped, err := Load("dynamill.yaml", []byte(kept))
	if err != nil || len(escaped.Warnings()) > 0 {
		t.Fatalf("with backslashes: %v, %v", err, escaped.Warnings())
	}
	if escaped.Rules[0].Fingerprint != set.Rules[0].Fingerprint {
		t.Error("the backslashes change what the rule means")
	}
}

// A file that was registered with placeholders derived nothing. It must stay
// readable, because its rules are replaced by way of it.
func TestFormerFilesMayHavePlaceholders(t *testing.T) {
	src := []byte(strings.NewReplacer("${", "<", "}'", ">'").Replace(electro))
	var problems *Problems
	if _, err := Load("dynamill.yaml", src); !errors.As(err, &problems) || problems.List[0].Code != "template.placeholder" {
		t.Fatalf("Load: %v", err)
	}
	set, err := LoadFormer("former rules", []byte(strings.ReplaceAll(electro, "${task}", "<task>")))
	if err != nil || len(set.Warnings()) > 0 {
		t.Fatalf("LoadFormer: %v", err)
	}
	if _, ok := set.Identify(change.Key{Partition: "$app#task_<task>", Sort: "$tasks_1#employee_e1"}, nil); !ok {
		t.Error("the placeholder of a former file is not a constant")
	}
}

func TestSmallestExampleLoads(t *testing.T) {
	if set, err := Load("dynamill.yaml", []byte(smallestFile)); err != nil || len(set.Warnings()) > 0 {
		t.Fatalf("%v", err)
	}
}
