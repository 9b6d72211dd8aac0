package rules_test

import (
	"slices"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

// staff has keys in lower case beside keys in upper case and keys that hold texts as they are.
const staff = `version: 1
table: { keys: [pk, sk] }
entities:
  Employee: { key: { pk: "EMPLOYEE#${employee:lower}", sk: "EMPLOYEE" } }
  Badge:    { key: { pk: "BADGE#${employee}", sk: "BADGE" } }
  Shift:    { key: { pk: "SHIFT#${employee:lower}", sk: "DAY#${day}" } }
  Turn:     { key: { pk: "TURN#${day}", sk: "${employee:upper}" } }
  Task:     { key: { pk: "TASK#${task}", sk: "TASK" } }
  Page:     { key: { pk: "BOOK#${book}", sk: "PAGE#${slug:lower}" }, unique: slug }
  Note:     { key: { pk: "NOTE#${slug:lower}", sk: "NOTE" } }
  Team:     { key: { pk: "TEAM#${team}", sk: "TEAM" }, unique: lead }
rules:
  tasks:  { count: Task, as: Employee.tasks, by: employee }
  badges: { mirror: Employee, as: Badge, attributes: [employee] }
  names:  { copy: name, from: Employee, to: Shift }
  shown:  { copy: employee as shown, from: Badge, to: Shift }
  turns:  { mirror: Shift, as: Turn }
  back:   { copy: shown as seen, from: Shift, to: Turn }
  notes:  { count: Note, as: Page.notes, by: slug }
  cited:  { count: Task, as: Page.cited, by: slug }
  leads:  { count: Employee, as: Team.leads, by: { lead: employee } }
`

func text(name, value string) change.Item { return change.Item{name: change.String(value)} }

// The attribute of the variable's name tells the letters, if it is what the key holds in lower case.
func TestVariableInACaseTakesLettersFromItsAttribute(t *testing.T) {
	s := loadText(t, staff)
	employee := identify(t, s, "EMPLOYEE#e3", "EMPLOYEE", nil)
	badges, leads := rule(t, s, "badges"), rule(t, s, "leads")
	for _, tt := range []struct {
		item change.Item
		want string
	}{
		{nil, "e3"}, {change.Item{}, "e3"}, {text("employee", "E3"), "E3"}, {text("employee", "e3"), "e3"}, {text("employee", "E4"), "e3"},
		{change.Item{"employee": change.Number("3")}, "e3"}, {change.Item{"employee": change.Null()}, "e3"},
	} {
		if key, ok, err := badges.JoinedKey(employee, tt.item); key != (change.Key{Partition: "BADGE#" + tt.want, Sort: "BADGE"}) || !ok {
			t.Errorf("the badge of %v has the key %v, %t, %v", tt.item, key, ok, err)
		}
		if text, _, err := leads.JoinedText(employee, tt.item); text != tt.want {
			t.Errorf("%v is the lead %q, %v, want %q", tt.item, text, err, tt.want)
		}
	}
	task := identify(t, s, "TASK#t", "TASK", nil)
	for _, name := range []string{"E3", "e3"} {
		if key, _, err := rule(t, s, "tasks").JoinedKey(task, text("employee", name)); key.Partition != "EMPLOYEE#e3" {
			t.Errorf("a task of %s counts for %v, %v", name, key, err)
		}
	}
	shift := identify(t, s, "SHIFT#e3", "DAY#Monday", nil)
	if key, _, err := rule(t, s, "turns").JoinedKey(shift, nil); key != (change.Key{Partition: "TURN#Monday", Sort: "E3"}) {
		t.Errorf("the turn has the key %v, %v", key, err)
	}
}

// What a key alone cannot tell, the rule reads: a change of the attribute is a change of the join.
func TestJoinAcrossCasesReadsTheAttribute(t *testing.T) {
	s := loadText(t, staff)
	for _, tt := range []struct {
		rule             string
		reads, joinReads bool // the attribute employee
		back             bool // the keys of both sides tell the join
	}{
		{"tasks", true, false, false}, {"badges", true, false, false}, {"names", false, false, true}, {"shown", true, true, false},
		{"turns", true, false, false}, {"back", false, true, false}, {"leads", true, false, false},
	} {
		r := rule(t, s, tt.rule)
		if slices.Contains(r.Reads, "employee") != tt.reads || slices.Contains(r.JoinReads, "employee") != tt.joinReads {
			t.Errorf("rule %s reads %q, and of children %q", tt.rule, r.Reads, r.JoinReads)
		}
		if (r.Injective || r.Collection) != tt.back {
			t.Errorf("rule %s: injective %t, collection %t", tt.rule, r.Injective, r.Collection)
		}
	}
	if rule(t, s, "back").Level <= rule(t, s, "shown").Level {
		t.Error("a rule stands before one that it reads from")
	}
	employee, shift := change.Key{Partition: "EMPLOYEE#e3", Sort: "EMPLOYEE"}, change.Key{Partition: "SHIFT#e3", Sort: "DAY#Monday"}
	if texts, ok := rule(t, s, "names").Join.Texts(employee, shift); len(texts) > 0 || !ok {
		t.Errorf("the key of a shift names its employee, not %q, %t", texts, ok)
	}
	for _, badge := range []string{"BADGE#e3", "BADGE#E3"} {
		if _, ok := rule(t, s, "shown").Join.Texts(change.Key{Partition: badge, Sort: "BADGE"}, shift); ok {
			t.Errorf("the key of a shift cannot tell that its badge is %s", badge)
		}
	}
	if partition, _, ok := rule(t, s, "names").Join.CollectionOf(employee); partition != "SHIFT#e3" || !ok {
		t.Errorf("the shifts of e3 are in %q, %t", partition, ok)
	}
}

// The item's key, its attribute and another item give one text of a unique value.
func TestUniqueValueInACaseIsOneText(t *testing.T) {
	s := loadText(t, staff)
	page := identify(t, s, "BOOK#b", "PAGE#intro", nil)
	note, task := identify(t, s, "NOTE#intro", "NOTE", nil), identify(t, s, "TASK#t", "TASK", nil)
	notes, cited := rule(t, s, "notes"), rule(t, s, "cited")
	if slices.Contains(notes.Reads, "slug") || !slices.Contains(cited.Reads, "slug") {
		t.Errorf("notes reads %q, cited reads %q", notes.Reads, cited.Reads)
	}
	for _, slug := range []string{"Intro", "intro", "INTRO"} {
		item := text("slug", slug)
		unique, _, _ := page.Entity.UniqueValue(page, item)
		ofNote, _, _ := notes.JoinedText(note, item)
		ofTask, _, err := cited.JoinedText(task, item)
		if unique != "intro" || ofNote != "intro" || ofTask != "intro" {
			t.Errorf("%s is the page %q, of a note %q, of a task %q, %v", slug, unique, ofNote, ofTask, err)
		}
	}
}

func TestCaseOfTheTableIsThatOfAllTemplates(t *testing.T) {
	file := func(table, user string) *rules.Set {
		return loadText(t, `version: 1
table: { keys: [pk, sk]`+table+` }
entities:
  User:  { key: { pk: "`+user+`", sk: "É#PROFILE" } }
  Login: { key: { pk: "LOGIN#${day}", sk: "${no:04}#${at:upper}" } }
rules:
  logins: { count: Login, as: User.logins, by: name }
`)
	}
	s := file(", case: lower", "USER#${name}")
	user := identify(t, s, "user#ann", "é#profile", nil)
	identify(t, s, "login#monday", "0007#NOON", nil)
	for _, key := range []change.Key{
		{Partition: "USER#ann", Sort: "é#profile"}, {Partition: "user#Ann", Sort: "é#profile"}, {Partition: "user#ann", Sort: "É#profile"},
		{Partition: "user#ann\u00c9", Sort: "é#profile"}, {Partition: "login#monday", Sort: "0007#noon"},
	} {
		if m, ok := s.Identify(key, nil); ok {
			t.Errorf("%v is taken for a %s", key, m.Entity.Name)
		}
	}
	if partition, sort := user.Entity.FixedKeyTexts(); partition.Prefix != "user#" || sort.Prefix != "é#profile" {
		t.Errorf("the fixed texts are %+v and %+v", partition, sort)
	}
	login := identify(t, s, "login#monday", "0007#NOON", nil)
	ann := change.Key{Partition: "user#ann é", Sort: "é#profile"}
	if key, _, err := rule(t, s, "logins").JoinedKey(login, text("name", "ANN É")); key != ann {
		t.Errorf("Ann has the key %v, %v", key, err)
	}

	asIs := file("", "USER#${name}")
	changes := rulediff.Compare(rule(t, asIs, "logins"), rule(t, s, "logins"))
	if len(changes) != 1 || changes[0].Field != "case of keys" || changes[0].Old != "" || changes[0].New != "lower" {
		t.Errorf("the changes are %+v", changes)
	}
	if s.Entities[0].HasKeysLike(asIs.Entities[0]) {
		t.Error("keys in lower case are not keys as they are")
	}
	if renamed := file("", "USER#${called}"); !asIs.Entities[0].HasKeysLike(renamed.Entities[0]) {
		t.Error("keys are others because a variable has another name")
	}
	if one, same := rule(t, s, "logins"), rule(t, file(", case: lower", "user#${name:lower}"), "logins"); one.Fingerprint != same.Fingerprint {
		t.Error("one meaning has two fingerprints")
	}
}
