package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// inspect looks at the state table, and makes sure that looking changes nothing.
func (w *world) inspect() *inspect.Inspection {
	w.t.Helper()
	before := w.scan("app-dynamill")
	found, err := inspect.Read(w.ctx, w.sim, "app-dynamill")
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.scan("app-dynamill")); diff != "" {
		w.t.Errorf("inspecting changed the state table:\n%s", diff)
	}
	return found
}

func (w *world) expectStates(found *inspect.Inspection, state string) {
	w.t.Helper()
	if len(found.Rules) != len(w.set.Rules) {
		w.t.Errorf("%d rules, want %d", len(found.Rules), len(w.set.Rules))
	}
	for _, r := range found.Rules {
		if r.State != state || r.Live != (state == "live") {
			w.t.Errorf("rule %s is %s, live: %v; want %s", r.Name, r.State, r.Live, state)
		}
	}
}

func TestInspectionTellsHowFarRulesAre(t *testing.T) {
	w := newWorld(t, socialRules)
	w.putGroup()
	for i := range seedPageMax + 10 {
		w.put(change.Item{"pk": s(fmt.Sprintf("USER#%04d", i)), "sk": s("GROUP#g1"), "role": s("admin")})
	}
	w.engine(nil)
	found := w.inspect()
	w.expectStates(found, "seeding")
	if found.Live() || found.Seeding != nil || found.Epoch != 1 || found.Table != "app" || found.Incarnation == "" || found.Created.IsZero() {
		t.Errorf("before seeding: %+v", found)
	}

	w.seedUntil(func(e *Engine, op string) bool { return op == "Scan" && e.inspectedItems() == seedPageMax })
	found = w.inspect()
	w.expectStates(found, "seeding")
	if want := (&inspect.Seeding{Phase: "derive", Items: seedPageMax}); found.Live() || !cmp.Equal(found.Seeding, want) {
		t.Errorf("half seeded: live %v, %+v; want %+v", found.Live(), found.Seeding, want)
	}

	w.seedUntil(func(e *Engine, op string) bool {
		return op == "Scan" && e.planner.ByID(idOf("member-count")).Live.Load()
	})
	found = w.inspect()
	if found.Live() || found.Seeding == nil || found.Seeding.Phase != "show" {
		t.Errorf("with counts still to be shown: live %v, %+v", found.Live(), found.Seeding)
	}

	w.seeded()
	found = w.inspect()
	w.expectStates(found, "live")
	if !found.Live() || found.Seeding != nil || len(found.Tasks) != 0 || len(found.Parked) != 0 {
		t.Errorf("all seeded: %+v", found)
	}
}

// seedUntil seeds with a process that crashes at the first request that is as told.
func (w *world) seedUntil(crash func(*Engine, string) bool) {
	w.t.Helper()
	f := &faulty{Client: w.sim, around: passAll}
	e := w.engine(f)
	f.around = func(op string, pass func() error) error {
		if crash(e, op) {
			return errCrash
		}
		return pass()
	}
	if err := e.Seed(w.ctx, nil); !errors.Is(err, errCrash) {
		w.t.Fatalf("seeding: %v, want a crash", err)
	}
}

// inspectedItems is how many items the stored seeding cursor has seen.
func (e *Engine) inspectedItems() int64 {
	reader := table.NewReader(e.tables.Client.(*faulty).Client, e.tables.StateTable)
	cursor, _ := seeding.ReadCursor(context.Background(), reader, e.planner)
	return cursor.Items
}

func TestInspectionNamesRulesByTheirNameNow(t *testing.T) {
	w := newWorld(t, socialRules)
	w.seeded()
	w.file = strings.Replace(socialRules, "comment-count:", "posts-comments:", 1) +
		"  comment-count:  { count: Comment, as: Post.allComments, by: postId }\n"
	w.set = loadRules(t, w.file)
	w.engine(nil)
	found := map[string]inspect.Rule{}
	for _, r := range w.inspect().Rules {
		found[r.Name] = r
	}
	renamed, fresh := found["posts-comments"], found["comment-count"]
	if renamed.ID != idOf("comment-count") || !renamed.Live || renamed.Epoch != 1 {
		t.Errorf("the renamed rule is %+v", renamed)
	}
	if fresh.ID != idOf("comment-count-2") || fresh.Live || fresh.Epoch != 2 {
		t.Errorf("the new rule is %+v", fresh)
	}
	if fresh.Fingerprint == renamed.Fingerprint || fresh.Fingerprint == "" {
		t.Errorf("fingerprints are %q and %q", fresh.Fingerprint, renamed.Fingerprint)
	}
}

func TestInspectionListsTasks(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	from := w.drain(e, 0)
	w.rename("Bob")
	before := e.host.Now().UTC().Truncate(time.Second)
	w.drain(e, from)
	found := w.inspect().Tasks
	if len(found) != 1 || found[0].Since.Before(before) || found[0].Since.After(e.host.Now()) {
		t.Fatalf("%+v, want one task that is kept since %s", found, before)
	}
	want := []inspect.Task{{Rule: "comment-author", Parent: change.Key{Partition: "USER#u1", Sort: "PROFILE"}, Children: 5,
		Since: found[0].Since}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	unfinished, err := e.Unfinished(w.ctx)
	if err != nil || unfinished.Tasks != 1 || !unfinished.OldestTask.Equal(found[0].Since) || len(unfinished.Parked) != 0 {
		t.Errorf("unfinished: %+v, %v", unfinished, err)
	}
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	if left := w.inspect().Tasks; len(left) != 0 {
		t.Errorf("worked off, and still there: %v", left)
	}
}

func TestInspectionCountsWhatIsParkedByCode(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	for i := range 5 { // as large as records may be that could not be read: more than one page
		if err := e.ParkRecord(w.ctx, fmt.Sprint(i), "record.value", "the number is none", make([]byte, rawBytesMax)); err != nil {
			t.Fatal(err)
		}
	}
	w.put(comment("c1", change.Item{"score": s("high")}))
	w.drain(e, 0)
	if diff := cmp.Diff(map[string]int{"record.value": 5, "value.type": 1}, w.inspect().Parked); diff != "" {
		t.Error(diff)
	}
}

func TestInspectionNeedsARegistryAndMakesNone(t *testing.T) {
	w := newWorld(t, socialRules)
	expect := func(want string) {
		t.Helper()
		_, err := inspect.Read(w.ctx, w.sim, "app-dynamill")
		var setup *table.SetupError
		if !errors.As(err, &setup) || !strings.Contains(setup.Problem, want) || !strings.Contains(setup.Remedy, "dynamill run") {
			t.Errorf("%v; want a SetupError of %q", err, want)
		}
	}
	expect("no state table app-dynamill")
	listed, err := w.sim.ListTables(w.ctx, &dynamodb.ListTablesInput{})
	if err != nil || len(listed.TableNames) != 1 {
		t.Errorf("the tables are %v, %v", listed, err)
	}
	if err := table.New(w.sim, "app", "app-dynamill").CreateStateTable(w.ctx); err != nil {
		t.Fatal(err)
	}
	expect("state table app-dynamill is empty")
	if rows := w.scan("app-dynamill"); len(rows) != 0 {
		t.Errorf("inspecting wrote %v", rows)
	}
}

func TestInspectionPassesErrorsOn(t *testing.T) {
	w := newWorld(t, socialRules)
	w.seeded()
	for _, failing := range []string{"GetItem", "Query", "BatchGetItem"} {
		f := &faulty{Client: w.sim, around: func(op string, pass func() error) error {
			if op == failing {
				return errCrash
			}
			return pass()
		}}
		if found, err := inspect.Read(w.ctx, f, "app-dynamill"); !errors.Is(err, errCrash) {
			t.Errorf("%s failed: %v, %v", failing, found, err)
		}
	}
}
