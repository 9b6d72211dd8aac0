package projections

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

const handleRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:    { key: { pk: "USER#${userId}", sk: "PROFILE" }, unique: handle }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
rules:
  author: { copy: [name as userName], from: User, to: Comment, by: { handle: author }, if_missing: { userName: "nobody" } }
`

func (w *world) putUser(id, handle, name string) {
	it := change.Item{"pk": s("USER#" + id), "sk": s("PROFILE"), "name": s(name)}
	if handle != "" {
		it["handle"] = s(handle)
	}
	w.put(it)
}

func (w *world) putComments(handle string, n int) {
	for i := range n {
		w.put(change.Item{"pk": s("POST#p"), "sk": s(fmt.Sprintf("COMMENT#%04d", i)), "author": s(handle)})
	}
}

// expectAuthors checks the name on the first of several comments, and all the others against the rules.
func (w *world) expectAuthors(name string) {
	w.t.Helper()
	if got := w.get(change.Key{Partition: "POST#p", Sort: "COMMENT#0000"})["userName"].Text(); got != name {
		w.t.Errorf("the comment shows %q, want %q", got, name)
	}
	w.expectNoDrift()
}

func TestACopyFollowsAUniqueValueToAnotherItem(t *testing.T) {
	w := newWorld(t, handleRules)
	e := w.seeded()
	at := 0
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { w.putComments("ann", 3) }, "nobody"},
		{func() { w.putUser("u2", "ann", "Ann") }, "Ann"},
		{func() { w.putUser("u2", "ann", "Anna") }, "Anna"},
		{func() { w.putUser("u1", "ann", "Annette") }, "Annette"}, // the smallest key of two
		{func() { w.putUser("u1", "bob", "Annette") }, "Anna"},
		{func() { w.delete(change.Key{Partition: "USER#u2", Sort: "PROFILE"}) }, "nobody"},
		{func() { w.putUser("u1", "ann", "Annette") }, "Annette"},
		{func() { w.putUser("u1", "", "Annette") }, "nobody"},
		{func() { w.putUser("u3", "cid", "Cid"); w.putComments("cid", 3) }, "Cid"},
	} {
		step.do()
		at = w.drain(e, at)
		w.expectAuthors(step.want)
	}
}

func TestTwoItemsWithOneUniqueValueAreListedForCopies(t *testing.T) {
	w := newWorld(t, handleRules)
	e := w.seeded()
	w.putUser("u1", "ann", "Ann")
	w.putUser("u2", "ann", "Anna")
	at := w.drain(e, 0)
	parked, err := e.Parked(w.ctx)
	if err != nil || len(parked) != 1 || parked[0].Code != "unique.contested" {
		t.Fatalf("parked: %v, %v", parked, err)
	}
	w.delete(change.Key{Partition: "USER#u1", Sort: "PROFILE"})
	w.drain(e, at)
	if parked, err := e.Parked(w.ctx); err != nil || len(parked) != 0 {
		t.Errorf("parked in the end: %v, %v", parked, err)
	}
}

// renamedInPart is a world in which the rest of many children of a renamed parent is a task.
func renamedInPart(t *testing.T) (w *world, e *Engine, at int) {
	w = newWorld(t, handleRules)
	e = w.seeded()
	e.host.FanOutMax = 10
	w.putUser("u1", "ann", "Ann")
	w.putComments("ann", 35)
	at = w.drain(e, 0)
	w.putUser("u1", "ann", "Anna")
	return w, e, w.drain(e, at)
}

// endTasks works off what is left as tasks, and the records of that.
func (w *world) endTasks(e *Engine, at int) {
	w.t.Helper()
	for range 10 {
		if _, err := e.WorkTasks(w.ctx); err != nil {
			w.t.Fatal(err)
		}
	}
	w.drain(e, at)
}

func TestTheRestOfManyChildrenOfAUniqueValueIsATask(t *testing.T) {
	w, e, at := renamedInPart(t)
	if _, err := e.WorkTasks(w.ctx); err != nil { // one piece or more of them
		t.Fatal(err)
	}
	w.putUser("u0", "ann", "Annette") // a later change looks at every child itself
	at = w.drain(e, at)
	w.endTasks(e, at)
	w.expectAuthors("Annette")
	for _, row := range w.scan("app-dynamill") {
		if row["pk"].Text() == "tasks" {
			t.Errorf("a task is left: %v", row)
		}
	}
}

func TestACopyByUniqueCostsOneWriteUnitAChild(t *testing.T) {
	const children = 100
	w := newWorld(t, handleRules)
	e := w.seeded()
	w.putUser("u1", "ann", "Ann")
	w.putComments("ann", children)
	at := w.drain(e, 0)
	w.putUser("u1", "ann", "Anna")
	before := w.sim.Usage()
	if _, err := e.Process(w.ctx, w.records()[at:]); err != nil {
		t.Fatal(err)
	}
	used := w.sim.Usage().Sub(before)
	if used.WriteUnits != children+1 { // and one for the count of changes
		t.Errorf("%.2f write units for %d children", used.WriteUnits, children)
	}
	t.Logf("%.2f write units and %.2f read units a child", used.WriteUnits/children, used.ReadUnits/children)
	w.drain(e, at+1)
	w.expectAuthors("Anna")
}

// TestAnotherUniqueValueCostsWhatCheckSays has a parent without children: 2 units for its entry and for the locator of each value, 1 for
// the count of each value, and 1 for the entry's mark that both are done.
func TestAnotherUniqueValueCostsWhatCheckSays(t *testing.T) {
	w := newWorld(t, handleRules)
	e := w.seeded()
	w.putUser("u1", "ann", "Ann")
	at := w.drain(e, 0)
	w.putUser("u1", "anna", "Ann")
	before := w.sim.Usage()
	w.drain(e, at)
	said, want := loadRules(t, handleRules).Rules[0].Form.Cost().Text, " + 1 WU per User that changes, 9 WU if its handle does"
	if used := w.sim.Usage().Sub(before).WriteUnits; used != 9 || !strings.HasSuffix(said, want) {
		t.Errorf("%.2f write units; check says %q", used, said)
	}
}

func TestARecordIsExplainedByTheValuesThatItChanges(t *testing.T) {
	user := func(handle, name string) change.Item { return change.Item{"handle": s(handle), "name": s(name)} }
	key := change.Key{Partition: "USER#u1", Sort: "PROFILE"}
	expectEffects(t, handleRules, change.Record{Key: key, Old: user("ann", "A"), New: user("bea", "A")},
		"author: the User found as ann changed", "author: the User found as bea changed",
		"unique User: asks for being found as bea", "unique User: takes back being found as ann")
	expectEffects(t, handleRules, change.Record{Key: key, Old: user("ann", "A"), New: user("ann", "B")},
		"author: the User found as ann changed")
}

// countRow is the row that holds the count of changes of a value.
func (w *world) countRow() change.Item {
	w.t.Helper()
	for _, row := range w.scan("app-dynamill") {
		if strings.HasPrefix(row["pk"].Text(), "parent/") {
			return row
		}
	}
	w.t.Fatal("there is no count")
	return nil
}

// TestTheRestOfManyChildrenIsFilledAlthoughTheCountWasRaised has a worker that raised the count for a record that came twice, and crashed.
func TestTheRestOfManyChildrenIsFilledAlthoughTheCountWasRaised(t *testing.T) {
	w, e, at := renamedInPart(t)
	row := w.countRow()
	row["changes"] = change.Number("9999999999")
	w.putState(row)
	w.endTasks(e, at)
	w.expectAuthors("Anna")
}

func TestACountOfChangesThatIsNoneIsSetAnew(t *testing.T) {
	w := newWorld(t, handleRules)
	e := w.seeded()
	w.putUser("u1", "ann", "Ann")
	w.putComments("ann", 2)
	at := w.drain(e, 0)
	row := w.countRow()
	row["changes"] = s("x")
	w.putState(row)
	w.putUser("u1", "ann", "Anna")
	w.drain(e, at)
	w.expectAuthors("Anna")
	if got := w.countRow()["changes"].Kind(); got != change.KindNumber {
		t.Errorf("the count is of type %s", got)
	}
}

// TestALostCountGoesOnAboveTheFormerOne loses the row, as its time to live does. A name that changes there and back is written all the
// same: a worker that slept may be about to write the one in between.
func TestALostCountGoesOnAboveTheFormerOne(t *testing.T) {
	w := newWorld(t, handleRules)
	e := w.seeded()
	w.putUser("u1", "ann", "Ann")
	w.putComments("ann", 1)
	at := w.drain(e, 0)
	row := w.countRow()
	key := attributes.ItemToTable(change.Item{"pk": row["pk"], "sk": row["sk"]})
	if _, err := w.sim.DeleteItem(w.ctx, &dynamodb.DeleteItemInput{TableName: new("app-dynamill"), Key: key}); err != nil {
		t.Fatal(err)
	}
	stamp := func() string {
		return w.get(change.Key{Partition: "POST#p", Sort: "COMMENT#0000"})[stampOf("author")].Text()
	}
	before := stamp()
	e.host.Now = func() time.Time { return time.Now().Add(9 * 24 * time.Hour) }
	w.putUser("u1", "ann", "Bob")
	w.putUser("u1", "ann", "Ann")
	w.drain(e, at)
	w.expectAuthors("Ann")
	if stamp() == before {
		t.Error("the child was not written")
	}
}
