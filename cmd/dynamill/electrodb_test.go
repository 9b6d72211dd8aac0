package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/follow"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/replaying"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/verifying"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// electroRules join on the attribute employee, which holds the text as it was given.
const electroRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Employee: { key: { pk: "$taskapp#employee_${employee}", sk: "$employee_1" } }
  Task:     { key: { pk: "$taskapp#task_${task}", sk: "$task_1#project_${project}" } }
  Team:     { key: { pk: "$taskapp#team_${team}", sk: "$team_1" } }
rules:
  employee-tasks:  { count: Task, as: Employee.taskCount, by: employee }
  employee-points: { sum: points, of: Task, as: Employee.points, by: employee }
  task-owner:      { copy: firstName as ownerName, from: Employee, to: Task, by: employee }
  team-size:       { count: Employee, as: Team.size, by: team }
`

// electroItem is an item as npm electrodb 3 writes it with its defaults: keys in lower case,
// attributes as they were given, and the entity's name and version beside them.
func electroItem(entity, pk, sk string, attributes ...string) change.Item {
	it := item(strings.ToLower("$taskapp#"+pk), strings.ToLower("$"+entity+"_1"+sk), attributes...)
	it["__edb_e__"], it["__edb_v__"] = change.String(entity), change.String("1")
	return it
}

// electroTable has two employees, of one team, with tasks of theirs.
func electroTable() []change.Item {
	items := []change.Item{electroItem("team", "team_Blue", "", "team", "Blue", "title", "Blue")}
	for _, employee := range []string{"E3", "E4"} {
		it := electroItem("employee", "employee_"+employee, "", "employee", employee, "firstName", "Ann", "team", "Blue")
		it["gsi1pk"], it["gsi1sk"] = change.String("$taskapp#team_blue"), change.String("$staff#employee_1#employee_"+strings.ToLower(employee))
		items = append(items, it)
	}
	for i := range 7 {
		employee := "E" + strconv.Itoa(3+i%2)
		task := "T" + strconv.Itoa(i)
		it := electroItem("task", "task_"+task, "#project_P1", "task", task, "project", "P1", "employee", employee)
		it["points"] = change.Number("3")
		it["gsi1pk"], it["gsi1sk"] = change.String("$taskapp#employee_"+strings.ToLower(employee)),
			change.String("$task_1#task_"+strings.ToLower(task))
		items = append(items, it)
	}
	return items
}

// expectElectro looks for the rules, with keys and remedy, in what a command said.
func expectElectro(t *testing.T, command string, rules []report.MissingReport, warnings []string) {
	t.Helper()
	found := map[string]report.MissingReport{}
	for _, m := range rules {
		found[m.Rule] = m
	}
	for _, rule := range []string{"employee-tasks", "employee-points", "task-owner"} {
		m := found[rule]
		if m.Sources != 7 || m.Targets != 2 || !m.All || m.About || len(m.Examples) != 2 || m.Examples[0] != "$taskapp#employee_E3/$employee_1" ||
			m.OtherCase != "$taskapp#employee_e3/$employee_1" {
			t.Errorf("%s says of rule %s %+v: want 7 sources that point at E3 and E4, which e3 and e4 are", command, rule, m)
		}
	}
	if m := found["team-size"]; m.Sources != 2 || m.Targets != 1 || m.OtherCase != "$taskapp#team_blue/$team_1" {
		t.Errorf("%s says of rule team-size %+v: want 2 sources that point at one team", command, m)
	}
	all := strings.Join(warnings, "\n")
	for _, part := range []string{`the key of Employee $taskapp#employee_e`, `where its attribute employee says E`, "table: { case: lower }",
		"rule employee-tasks:"} {
		if !strings.Contains(all, part) {
			t.Errorf("the warnings of %s lack %q:\n%s", command, part, all)
		}
	}
}

func TestElectroDBKeysInLowerCaseAreTold(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Local(t))
	w.useRules(electroRules)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(electroTable()...)

	code, stdout, stderr := w.call("replay", "--dry-run", "--json")
	if code != ending.ExitDone {
		t.Fatalf("replay --dry-run: exit code %d, %s", code, stderr)
	}
	var foreseen replaying.Previewed
	w.must(json.Unmarshal([]byte(stdout), &foreseen))
	expectElectro(t, "replay --dry-run", foreseen.Missing, foreseen.Warnings)

	code, stdout, stderr = w.call("run", "--drain", "--json")
	if code != ending.ExitDone {
		t.Fatalf("run --drain: exit code %d, %s", code, stderr)
	}
	var result follow.Drained
	w.must(json.Unmarshal([]byte(stdout), &result))
	expectElectro(t, "run --drain", result.Missing, result.Warnings)
	for _, e := range result.Matched.Entities {
		if want := map[string]int64{"Employee": 2, "Task": 7, "Team": 1}[e.Entity]; e.Items != want {
			t.Errorf("the drain says that %d items are of %s, want %d", e.Items, e.Entity, want)
		}
	}

	code, stdout, stderr = w.call("verify", "--json", "--settle", "100ms")
	if code != ending.ExitDone {
		t.Fatalf("verify: exit code %d, %s: what points at nothing is no drift", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var summary verifying.Summary
	w.must(json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
	expectElectro(t, "verify", summary.Missing, summary.Warnings)

	code, stdout, stderr = w.call("replay", "--json")
	if code != ending.ExitDone {
		t.Fatalf("replay: exit code %d, %s", code, stderr)
	}
	var again replaying.Replayed
	w.must(json.Unmarshal([]byte(stdout), &again))
	expectElectro(t, "replay", again.Missing, again.Warnings)

	_, stdout, _ = w.call("status")
	for _, part := range []string{"targets that do not exist", "rule task-owner: 7 sources point at 2 Employee items that do not exist",
		"after a look at the whole table"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("status does not say %q:\n%s", part, stdout)
		}
	}
}

// TestElectroDBKeysInLowerCaseAreJoined follows the remedy of the warning: then every rule finds its targets.
func TestElectroDBKeysInLowerCaseAreJoined(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Simulated(t))
	w.useRules(strings.Replace(electroRules, "keys: [pk, sk]", "keys: [pk, sk], case: lower", 1))
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(electroTable()...)
	code, stdout, stderr := w.call("run", "--drain", "--json")
	if code != ending.ExitDone {
		t.Fatalf("run --drain: exit code %d, %s", code, stderr)
	}
	var result follow.Drained
	w.must(json.Unmarshal([]byte(stdout), &result))
	if len(result.Missing)+len(result.Warnings) > 0 {
		t.Errorf("targets are missing: %+v, %q", result.Missing, result.Warnings)
	}
	items := w.items()
	for _, want := range []struct {
		pk, sk, attribute string
		value             change.Value
	}{
		{"$taskapp#employee_e3", "$employee_1", "taskCount", change.Number("4")},
		{"$taskapp#employee_e4", "$employee_1", "points", change.Number("9")},
		{"$taskapp#team_blue", "$team_1", "size", change.Number("2")},
		{"$taskapp#task_t1", "$task_1#project_p1", "ownerName", change.String("Ann")},
	} {
		if got := items[want.pk+" "+want.sk][want.attribute]; !got.Equal(want.value) {
			t.Errorf("%s of %s is %s, want %s", want.attribute, want.pk, got.Text(), want.value.Text())
		}
	}
	if code, stdout, _ = w.call("verify", "--settle", "100ms"); code != ending.ExitDone {
		t.Errorf("verify: exit code %d:\n%s", code, stdout)
	}
}

// TestRulesOfAnotherKeyStyleAreTold drains a table that writes its keys in another way than the rule file.
func TestRulesOfAnotherKeyStyleAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(electroTable()...)
	code, stdout, stderr := w.call("run", "--drain")
	if code != ending.ExitDone {
		t.Fatalf("run --drain: exit code %d, %s", code, stderr)
	}
	for _, part := range []string{"(no entity)  10", "warning: no item and no record is of any entity"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("the drain does not say %q:\n%s", part, stdout)
		}
	}
	_, warning, _ := strings.Cut(stdout, "warning:")
	if n := strings.Count(warning, "$taskapp#"); n != 3 {
		t.Errorf("the warning shows %d keys of the table, want three:\n%s", n, stdout)
	}
	w.put(item("POST#p1", "METADATA"), item("POST#p1", "COMMENT#2025#c1", "userId", "u1"))
	code, stdout, _ = w.call("replay")
	for _, part := range []string{"warning: nothing is of the entity User, which the rules comment-author, member-name, user-comments need",
		"entity Group", "entity Membership"} {
		if code != ending.ExitDone || !strings.Contains(stdout, part) {
			t.Errorf("the replay does not say %q:\n%s", part, stdout)
		}
	}
	if strings.Contains(stdout, "entity Member,") || strings.Contains(stdout, "entity Post,") {
		t.Errorf("the replay warns of mirror items, or of a Post that is there:\n%s", stdout)
	}
}

// TestEmptyTableWarnsOfNothing drains and verifies a table that holds nothing.
func TestEmptyTableWarnsOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	for _, call := range [][]string{{"run", "--drain"}, {"verify", "--settle", "100ms"}, {"replay"}} {
		if code, stdout, stderr := w.call(call...); code != ending.ExitDone || strings.Contains(stdout, "warning") {
			t.Errorf("%v: exit code %d, %s%s", call, code, stdout, stderr)
		}
	}
}

// TestRunLogsWhatItMeets follows a table of which no rule finds its target: the log warns, the metrics
// and `status` tell, and a record of another entity is counted.
func TestRunLogsWhatItMeets(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, emulator.Simulated(t))
	w.useRules(electroRules)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(electroTable()...)
	p := w.runWatched()
	p.readyzSays(http.StatusOK, "state: following")
	eventually(t, "the metrics tell missing targets", func() bool {
		return p.metric(`dynamill_missing_targets{rule="employee-tasks"} 2`) && p.metric(`dynamill_missing_target_sources{rule="task-owner"} 7`)
	})
	w.put(electroItem("task", "task_T9", "#project_P1", "task", "T9", "project", "P1", "employee", "E9"), item("else", "x"))
	eventually(t, "the metrics follow", func() bool {
		return p.metric(`dynamill_missing_targets{rule="employee-tasks"} 3`) && p.metric(`dynamill_records_unmatched_total 1`) &&
			p.metric(`dynamill_records_matched_total{entity="Team"} 2`) // its own, and that of the 0 which it shows
	})
	code, stderr := p.stop()
	for _, part := range []string{`msg="items matched by entity" Employee=2 Task=7 Team=1 no_entity=0`, "level=WARN msg=\"the key of Employee",
		"level=WARN msg=\"rule employee-tasks: 7 sources point"} {
		if code != ending.ExitDone || !strings.Contains(stderr, part) {
			t.Errorf("exit code %d, and the log lacks %q:\n%s", code, part, stderr)
		}
	}
	if n := strings.Count(stderr, "rule employee-tasks:"); n != 1 {
		t.Errorf("the log warns %d times of one rule", n)
	}
	if _, stdout, _ := w.call("status"); !strings.Contains(stdout,
		"rule employee-tasks: 8 sources point at 3 Employee items that do not exist") {
		t.Errorf("status does not tell what the run has seen:\n%s", stdout)
	}
}
