package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

const caseRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Employee: { key: { pk: "$app#employee_${employee}", sk: "$employee_1" }, unique: badge }
  Task:     { key: { pk: "$app#task_${task}", sk: "$task_1" } }
  Shift:    { key: { pk: "$app#shift_${badge}", sk: "$shift_1#${employee}" } }
  Door:     { key: { pk: "$app#door_${badge}", sk: "$door_1" } }
  Order:    { key: { pk: "$app#order_${order}", sk: "$order_1" }, unique: order }
rules:
  tasks:   { count: Task, as: Employee.tasks, by: employee }
  shifts:  { count: Shift, as: Employee.shifts, by: { employee: employee } }
  badges:  { count: Door,  as: Employee.badged, by: badge }
  name:    { copy: name, from: Employee, to: Task, by: employee }
  orders:  { sum: amount, of: Task, as: Order.total, by: order }
`

func TestCaseDiffersInLetterCaseAlone(t *testing.T) {
	set := loadText(t, caseRules)
	for name, c := range map[string]struct {
		key       string
		attribute change.Value
		want      bool
	}{
		"lower case in the key":   {"e3", change.String("E3"), true},
		"upper case in the key":   {"E3", change.String("e3"), true},
		"the same":                {"e3", change.String("e3"), false},
		"another text":            {"e3", change.String("E4"), false},
		"mixed case in both":      {"eDdy", change.String("EdDy"), false},
		"no attribute":            {"e3", change.Value{}, false},
		"a number":                {"3", change.Number("3"), false},
		"letters of other length": {"i̇x", change.String("İX"), false},
	} {
		key, img := change.Key{Partition: "$app#employee_" + c.key, Sort: "$employee_1"}, change.Item{"employee": c.attribute}
		m, ok := set.Identify(key, img)
		if !ok {
			t.Fatalf("%s: %v is of no entity", name, key)
		}
		got, differs := m.CaseDiffers(img)
		if differs != c.want || differs && got != (rules.CaseDifference{"employee", c.attribute.Text(), c.key}) {
			t.Errorf("%s: %+v %v, want %v", name, got, differs, c.want)
		}
	}
}

func TestOtherCasesChangeVariablesAlone(t *testing.T) {
	set := loadText(t, caseRules)
	shift := set.Entities[2]
	for key, want := range map[change.Key][]change.Key{
		{Partition: "$app#shift_Ab", Sort: "$shift_1#E3"}: {
			{Partition: "$app#shift_ab", Sort: "$shift_1#e3"}, {Partition: "$app#shift_AB", Sort: "$shift_1#E3"}},
		{Partition: "$app#shift_a", Sort: "$shift_1#e"}: {{Partition: "$app#shift_A", Sort: "$shift_1#E"}},
		{Partition: "$app#shift_1", Sort: "$shift_1#2"}: nil,
		{Partition: "other", Sort: "$shift_1#2"}:        nil,
	} {
		if diff := cmp.Diff(want, shift.OtherCases(key), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v: want (-) and got (+):\n%s", key, diff)
		}
	}
}

func TestJoinsAcrossCase(t *testing.T) {
	set := loadText(t, caseRules)
	got := map[string][]string{}
	for _, e := range set.Entities {
		for _, variable := range []string{"employee", "badge", "order", "task"} {
			for _, r := range set.Rules {
				if r.JoinsAcrossCase(e, variable) {
					got[e.Name+"."+variable] = append(got[e.Name+"."+variable], r.Name)
				}
			}
		}
	}
	want := map[string][]string{
		"Employee.employee": {"tasks", "name"}, // filled from the attribute of Task; Shift has it in its key
		"Door.badge":        {"badges"},        // compared with the attribute of Employee
		"Order.order":       {"orders"},        // known by it, and looked up by the attribute of Task
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-) and got (+):\n%s", diff)
	}
}

// TestCaseDiffersFromTemplate has attributes of which the key holds, in the template's case, what they hold or something else.
func TestCaseDiffersFromTemplate(t *testing.T) {
	set := loadText(t, strings.Replace(caseRules, "keys: [pk, sk]", "keys: [pk, sk], case: lower", 1))
	for attribute, want := range map[string]bool{"E3": false, "e3": false, "E4": true, "": false} {
		key, img := change.Key{Partition: "$app#employee_e3", Sort: "$employee_1"}, change.Item{"employee": change.String(attribute)}
		m, ok := set.Identify(key, img)
		if got, differs := m.CaseDiffers(img); !ok || differs != want {
			t.Errorf("%q: %+v %v %v, want %v", attribute, got, differs, ok, want)
		}
	}
	if others := set.Entities[0].OtherCases(change.Key{Partition: "$app#employee_e3", Sort: "$employee_1"}); len(others) > 0 {
		t.Errorf("no other case is a key of the entity, got %v", others)
	}
	var across []string
	for _, r := range set.Rules {
		if r.JoinsAcrossCase(set.Entities[2], "employee") {
			across = append(across, r.Name)
		}
	}
	if !slices.Equal(across, []string{"shifts"}) {
		t.Errorf("%v go by the employee in the key of a Shift, want shifts", across)
	}
}
