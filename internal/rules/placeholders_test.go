package rules_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

const electro = `version: 1
table: { keys: [pk, sk] }
entities:
  Employee: { key: { pk: '$app#employee_${employee}', sk: '$employees_1' } }
  Task:     { key: { pk: '$app#task_${task}', sk: '$tasks_1#employee_${employee}' } }
rules:
  tasks: { count: Task, as: Employee.tasks }
`

func TestPrefixedNamesBesideVariablesAreWarnings(t *testing.T) {
	set, err := rules.Load("dynamill.yaml", []byte(electro), projections.Kinds)
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
	escaped, err := rules.Load("dynamill.yaml", []byte(kept), projections.Kinds)
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
	var problems *rules.Problems
	if _, err := rules.Load("dynamill.yaml", src, projections.Kinds); !errors.As(err, &problems) ||
		problems.List[0].Code != "template.placeholder" {
		t.Fatalf("Load: %v", err)
	}
	set, err := rules.LoadFormer("former rules", []byte(strings.ReplaceAll(electro, "${task}", "<task>")), projections.Kinds)
	if err != nil || len(set.Warnings()) > 0 {
		t.Fatalf("LoadFormer: %v", err)
	}
	if _, ok := set.Identify(change.Key{Partition: "$app#task_<task>", Sort: "$tasks_1#employee_e1"}, nil); !ok {
		t.Error("the placeholder of a former file is not a constant")
	}
}

func TestSmallestExampleLoads(t *testing.T) {
	var problems *rules.Problems
	if _, err := rules.Load("dynamill.yaml", nil, projections.Kinds); !errors.As(err, &problems) || problems.List[0].Example == "" {
		t.Fatalf("an empty file: %v", err)
	}
	if set, err := rules.Load("dynamill.yaml", []byte(problems.List[0].Example), projections.Kinds); err != nil || len(set.Warnings()) > 0 {
		t.Fatalf("%v", err)
	}
}

// TestExpressionsWithoutTheirMarkAreWarnings has texts that read as expressions, and others that do not.
func TestExpressionsWithoutTheirMarkAreWarnings(t *testing.T) {
	set, err := rules.Load("dynamill.yaml", []byte(`version: 1
table: { keys: [pk, sk] }
entities:
  Line: { key: { pk: "LINE#${lineId}", sk: "LINE" } }
rules:
  meant: { set: { total: price * quantity, mail: lower(email), open: 'state == "new"', label: a + b }, of: Line }
  not:   { set: { product: "= price * quantity", text: ACTIVE, host: example.com, note: paid at once, key: "X#${lineId}", n: 3 }, of: Line }
  signs: { set: { kind: blog-post, mime: text/plain, na: N/A, state: (draft), title: "Mr " }, of: Line }
`), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range set.Warnings() {
		got = append(got, w.Code+": "+w.Message+": "+w.Hint)
	}
	want := []string{
		`rule.constant: every item gets the text "price * quantity": if it is an expression, write "= price * quantity"`,
		`rule.constant: every item gets the text "lower(email)": if it is an expression, write "= lower(email)"`,
		`rule.constant: every item gets the text "state == \"new\"": if it is an expression, write "= state == \"new\""`,
		`rule.constant: every item gets the text "a + b": if it is an expression, write "= a + b"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
