package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/workbench"
	"github.com/dynamill/dynamill/internal/story"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExamples plays every example: after each step nothing drifts, and at the
// end the table holds what want.json says.
func TestExamples(t *testing.T) {
	for _, name := range story.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, name) }) // so that no time is spent on waiting
		})
	}
}

// play plays an example and returns its world as it is at the end.
func play(t *testing.T, name string) *workbench.Bench {
	ex, err := story.Load(name, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	bench, err := workbench.New(t.Context(), ex.Set)
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.CountByHand(t.Context(), ex.ByHand); err != nil {
		t.Fatal(err)
	}
	for _, item := range ex.Items {
		if err := bench.Put(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	follow(t, bench, ex, story.Step{Title: "the first run"})
	for _, step := range ex.Steps {
		for _, w := range step.Writes {
			if err := w.Apply(t.Context(), bench); err != nil {
				t.Fatal(err)
			}
		}
		follow(t, bench, ex, step)
	}
	compare(t, name, ex, bench)
	return bench
}

// TestBareAddCountsTwiceWhatComesTwice reads the downloads of songs and months off their items, and beside them the totals of
// dynamill and of the handler that gets the same records, a third of them twice.
func TestBareAddCountsTwiceWhatComesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := play(t, "downloads")
		items, err := bench.Items(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		right, dynamill, byHand := map[string]string{}, map[string]string{}, map[string]string{}
		counts := map[string]int{}
		for _, item := range items {
			song, sort := item["songId"].Text(), item["sk"].Text()
			if !strings.HasPrefix(sort, "Download#") {
				dynamill[song+" "+sort] = item["downloads"].Text()
				continue
			}
			for _, total := range []string{song + " Details", song + " Month#" + item["at"].Text()[:7]} {
				counts[total]++
				right[total] = strconv.Itoa(counts[total])
			}
		}
		totals, err := bench.ByHand(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, total := range totals {
			byHand[total.Key.Partition+" "+total.Key.Sort] = strconv.Itoa(total.Count)
		}
		if diff := cmp.Diff(right, dynamill); diff != "" {
			t.Errorf("dynamill is wrong:\n%s", diff)
		}
		want := map[string]string{
			"s1 Details": "12", "s1 Month#2018-01": "6", "s1 Month#2018-02": "6", // d9 and d15 twice
			"s2 Details": "8", "s2 Month#2018-01": "3", // d12 twice, and d16 and d17 after the crash
			"s2 Month#2018-02": "1", "s2 Month#2018-03": "4", // nothing is left of the one, 2 of the other
		}
		if diff := cmp.Diff(want, byHand); diff != "" {
			t.Errorf("the handler has other totals than those that come of counting twice:\n%s", diff)
		}
	})
}

// follow lets the engine follow the stream, die if the step says so, and
// checks that nothing drifts.
func follow(t *testing.T, bench *workbench.Bench, ex *story.Example, step story.Step) {
	t.Helper()
	bench.RepeatEvery(step.RepeatEvery)
	if step.CrashAfter > 0 {
		bench.CrashAfter(step.CrashAfter)
		if err := bench.Drain(t.Context()); !errors.Is(err, workbench.ErrCrashed) {
			t.Fatalf("%s: got %v, want a crash", step.Title, err)
		}
		if drift(t, bench, ex) == nil {
			t.Fatalf("%s: the process died when all was done, so the step shows nothing", step.Title)
		}
	}
	if err := bench.Drain(t.Context()); err != nil {
		t.Fatalf("%s: %v", step.Title, err)
	}
	for _, d := range drift(t, bench, ex) {
		t.Errorf("%s: %s", step.Title, d)
	}
	parked, err := bench.Parked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(parked) != step.Parked {
		t.Errorf("%s: parked: %+v", step.Title, parked)
	}
}

func drift(t *testing.T, bench *workbench.Bench, ex *story.Example) []oracle.Difference {
	t.Helper()
	items, err := bench.Items(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Drift(ex.Set, items)
}

func compare(t *testing.T, name string, ex *story.Example, bench *workbench.Bench) {
	t.Helper()
	timesToLive := map[string]bool{}
	for _, entity := range ex.Set.Entities {
		timesToLive[entity.ExpireAttribute] = true
	}
	items, err := bench.Items(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	got.WriteString("{ \"" + name + "\": [\n")
	for i, item := range items {
		plain := map[string]any{}
		for attribute, v := range item {
			if !strings.HasPrefix(attribute, "_dm") && !timesToLive[attribute] {
				plain[attribute] = descriptor(t, v)
			}
		}
		line, err := json.Marshal(map[string]any{"PutRequest": map[string]any{"Item": plain}})
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("  " + string(line))
		if i < len(items)-1 {
			got.WriteString(",")
		}
		got.WriteString("\n")
	}
	got.WriteString("] }\n")
	path := name + "/want.json"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the items at the end are not those of %s:\n%s", path, diff)
	}
}

func descriptor(t *testing.T, v change.Value) any {
	t.Helper()
	switch v.Kind() {
	case change.KindString, change.KindNumber:
		return map[string]string{v.Kind().String(): v.Text()}
	case change.KindBool:
		return map[string]bool{"BOOL": v.Bool()}
	case change.KindNull:
		return map[string]bool{"NULL": true}
	case change.KindList:
		elements := []any{}
		for _, element := range v.List() {
			elements = append(elements, descriptor(t, element))
		}
		return map[string]any{"L": elements}
	case change.KindMap:
		fields := map[string]any{}
		for name, field := range v.Map() {
			fields[name] = descriptor(t, field)
		}
		return map[string]any{"M": fields}
	}
	t.Fatalf("no example holds a %s", v.Kind())
	return nil
}

func TestLoadNamesTheExamplesThereAre(t *testing.T) {
	_, err := story.Load("blgo", projections.Kinds)
	const names = "blog, downloads, folders, groups, indexes, likes, metrics, orders, projects, store, subscriptions, tags"
	if err == nil || !strings.Contains(err.Error(), names) {
		t.Errorf("got %v, want the names of the examples", err)
	}
}
