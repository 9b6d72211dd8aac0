package projections

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

const folderRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Folder: { key: { pk: "FOLDER#${folderId}", sk: "METADATA" } }
  File:   { key: { pk: "FOLDER#${folderId}", sk: "FILE#${fileId}" } }
rules:
  paths:      { tree: Folder, by: { folderId: parentId }, path: name as path, lineage: folderIds }
  file-place: { copy: [path as folderPath, folderIds as within], from: Folder, to: File }
  tree-size:  { sum: size, of: File, each: within as above, as: Folder.totalSize, by: { folderId: above } }
`

func folderKey(id string) change.Key { return change.Key{Partition: "FOLDER#" + id, Sort: "METADATA"} }

// folder is an item; in "" it is a root.
func folder(id, in, name string) change.Item {
	it := change.Item{"pk": s("FOLDER#" + id), "sk": s("METADATA"), "name": s(name)}
	if in != "" {
		it["parentId"] = s(in)
	}
	return it
}

func (w *world) move(id, to string) { w.update(folderKey(id), change.Item{"parentId": s(to)}) }

// parkedFolders are what is parked, by item.
func (w *world) parkedFolders(e *Engine) map[string]string {
	w.t.Helper()
	all, err := e.Parked(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	codes := map[string]string{}
	for _, p := range all {
		codes[strings.TrimSuffix(strings.TrimPrefix(p.Key.String(), "FOLDER#"), "/METADATA")] = p.Code
	}
	return codes
}

func (w *world) expectFolders(e *Engine, want map[string]string) {
	w.t.Helper()
	if got := w.parkedFolders(e); !maps.Equal(got, want) {
		w.t.Errorf("parked: %v, want %v", got, want)
	}
}

// forest is the parent of each of many folders, f0, f1 and so on: f0 to f11 are one branch of 12 levels, f1 is above 499 others, and the
// rest are small trees.
func forest(folders, levels, inSubtree int) (parents []string) {
	var level []int
	for i := range folders {
		parent := -1 // a root
		switch {
		case i < levels:
			parent = i - 1
		case i <= inSubtree:
			for parent = 1 + i*7%(i-1); level[parent] == levels; parent = 1 + parent/2 {
			}
		case i%50 > 0 && i-1 > inSubtree && level[i-1] < levels:
			parent = i - 1
		}
		if parent < 0 {
			parents, level = append(parents, ""), append(level, 1)
			continue
		}
		parents, level = append(parents, fmt.Sprint("f", parent)), append(level, level[parent]+1)
	}
	return parents
}

// TestSubtreeOfFiveHundredFoldersMovesUnderTraffic has 2,000 folders on 12 levels. A subtree of 500 moves while names change, files come
// and go, and other folders move. Then the application makes a cycle and breaks it.
func TestSubtreeOfFiveHundredFoldersMovesUnderTraffic(t *testing.T) {
	folders, inSubtree := worldsize.Of(2000, 400), worldsize.Of(500, 100)
	const levels = 12
	w := newWorld(t, folderRules)
	for i, parent := range forest(folders, levels, inSubtree) {
		id := fmt.Sprint("f", i)
		w.put(folder(id, parent, "n"+id))
		if i%5 == 0 {
			w.put(change.Item{"pk": s("FOLDER#" + id), "sk": s("FILE#a"), "size": change.Number("3")})
		}
	}
	e := w.seeded()
	from := w.drain(e, 0)
	w.expectNoDrift()
	deepest, inside := 0, 0
	for _, it := range w.items() {
		ids := it["folderIds"].List()
		deepest = max(deepest, len(ids))
		if len(ids) > 1 && ids[1].Equal(s("f1")) {
			inside++
		}
	}
	if deepest != levels || inside != inSubtree {
		t.Fatalf("%d levels, %d folders in the subtree", deepest, inside)
	}

	moved := e.host.Counters.Children.Load()
	at := func(percent, more int) string { return fmt.Sprint("f", folders*percent/100+more) }
	last := at(100, -1)
	w.move("f1", last)
	for i, n := range []string{"f3", at(35, 0), at(75, 0)} { // beside
		w.update(folderKey(n), change.Item{"name": s("renamed")})
		w.put(change.Item{"pk": s("FOLDER#" + n), "sk": s("FILE#b"), "size": change.Number(fmt.Sprint(i + 1))})
		all := w.records()
		done, err := e.Process(w.ctx, all[from:])
		if err != nil {
			t.Fatal(err)
		}
		from += done
		w.move(at(50, i), "f2")
		w.delete(folderKey(at(60, i)))
	}
	from = w.drain(e, from)
	w.expectNoDrift()
	if n := e.host.Counters.Children.Load() - moved; n < int64(inSubtree) || n > int64(4*folders) {
		t.Errorf("%d items were written", n)
	}
	w.expectFolders(e, map[string]string{})

	w.move(last, "f3") // f3 is below f1, and f1 below the last one
	from = w.drain(e, from)
	w.expectNoDrift()
	w.expectFolders(e, map[string]string{"f1": "tree.cycle", "f2": "tree.cycle", "f3": "tree.cycle", last: "tree.cycle"})

	w.move(last, "f0")
	w.drain(e, from)
	w.expectNoDrift()
	w.expectFolders(e, map[string]string{})
}

// TestMoveCostsTwoWritesForEachFolder renames the root of 50 folders on several levels: docs/performance.md says what that costs.
func TestMoveCostsTwoWritesForEachFolder(t *testing.T) {
	alone, _, _ := strings.Cut(folderRules, "  file-place")
	w := newWorld(t, alone)
	e := w.seeded()
	const folders = 50
	for i := range folders {
		in := ""
		if i > 0 {
			in = fmt.Sprint("f", (i-1)/3)
		}
		w.put(folder(fmt.Sprint("f", i), in, "n"))
	}
	from := w.drain(e, 0)
	w.put(w.with(folderKey("f0"), change.Item{"name": s("other")}))
	before := w.sim.Usage()
	w.drain(e, from)
	if units := w.sim.Usage().Sub(before).WriteUnits; units != 2*folders {
		t.Errorf("%v write units, want %d", units, 2*folders)
	}
	for in, want := range map[string]float64{"": 2, "f0": 3} { // a root has no reference
		from := w.drain(e, 0)
		w.put(folder("new"+in, in, "n"))
		before := w.sim.Usage()
		w.drain(e, from)
		if units := w.sim.Usage().Sub(before).WriteUnits; units != want {
			t.Errorf("a folder that comes in %q: %v write units, want %v", in, units, want)
		}
	}
	w.expectNoDrift()
}

// with is an item as it stands, with some attributes changed.
func (w *world) with(key change.Key, attributes change.Item) change.Item {
	it := w.get(key)
	maps.Copy(it, attributes)
	return it
}

// TestWholePutOfAFolderTakesNoPathBelowAway saves a folder from the application's own attributes, without path and stamp. Its children
// wait for the worker's write.
func TestWholePutOfAFolderTakesNoPathBelowAway(t *testing.T) {
	w := newWorld(t, folderRules)
	e := w.seeded()
	w.put(folder("a", "", "a"))
	w.put(folder("b", "a", "b"))
	w.put(folder("c", "b", "c"))
	from := w.drain(e, 0)
	w.put(folder("a", "", "a"))
	w.put(folder("b", "a", "b"))
	w.drain(e, from)
	for _, r := range w.seen[from:] {
		if r.Key == folderKey("c") && r.New.Lookup("path").Kind() == change.KindAbsent {
			t.Error("the path of c was gone for a while")
		}
	}
	w.expectNoDrift()
}

// TestRetryOfACycleParksItAgain retries what is parked, with the cycle there and behind its end, of which the record was lost.
func TestRetryOfACycleParksItAgain(t *testing.T) {
	w := newWorld(t, folderRules)
	e := w.seeded()
	for _, id := range []string{"a", "b", "c"} {
		w.put(folder(id, map[string]string{"a": "", "b": "a", "c": "b"}[id], id))
	}
	from := w.drain(e, 0)
	w.move("a", "b")
	w.drain(e, from)
	both := map[string]string{"a": "tree.cycle", "b": "tree.cycle"}
	w.expectFolders(e, both)
	id := parkedID("paths/" + folderKey("a").String())
	if err := e.RetryParked(w.ctx, id); err != nil {
		t.Fatal(err)
	}
	w.expectFolders(e, both)
	parked := e.host.Counters.Parked.Load()
	if err := e.Rederive(w.ctx, []change.Key{folderKey("a"), folderKey("b")}); err != nil {
		t.Fatal(err)
	}
	if n := e.host.Counters.Parked.Load() - parked; n != 2 {
		t.Errorf("%d rows were written for a cycle of two", n)
	}

	if err := e.DiscardParked(w.ctx, parkedID("paths/"+folderKey("b").String())); err != nil {
		t.Fatal(err)
	}
	if err := e.Rederive(w.ctx, []change.Key{folderKey("a")}); err != nil {
		t.Fatal(err)
	}
	w.expectFolders(e, both) // one of them was discarded

	w.move("a", "nowhere")
	lost := len(w.records())
	if err := e.RetryParked(w.ctx, id); err != nil {
		t.Fatal(err)
	}
	w.drain(e, lost)
	w.expectNoDrift()
	w.expectFolders(e, map[string]string{})
}

// TestFoldersTooDeepAreParkedAndComeBack has 70 levels, and then one less at a time.
func TestFoldersTooDeepAreParkedAndComeBack(t *testing.T) {
	w := newWorld(t, folderRules)
	for i := range 70 {
		in := ""
		if i > 0 {
			in = fmt.Sprint("d", i)
		}
		w.put(folder(fmt.Sprint("d", i+1), in, "n"))
	}
	e := w.seeded()
	from := w.drain(e, 0)
	w.expectNoDrift()
	w.expectFolders(e, map[string]string{"d65": "tree.too_deep"})
	for i := range 6 {
		w.delete(folderKey(fmt.Sprint("d", i+1)))
		from = w.drain(e, from)
		w.expectNoDrift()
		if want := fmt.Sprint("d", 66+i); i < 5 {
			w.expectFolders(e, map[string]string{want: "tree.too_deep"})
		}
	}
	w.expectFolders(e, map[string]string{})
}

// TestFoldersFromBelowWaitAfterOneWalk puts each folder before the one that it is in, all in one batch.
func TestFoldersFromBelowWaitAfterOneWalk(t *testing.T) {
	const n = 60
	w := newWorld(t, folderRules)
	w.drain(w.seeded(), 0)
	for i := range n {
		w.put(folder(fmt.Sprint("r", i), fmt.Sprint("r", i+1), "n"))
	}
	w.put(folder(fmt.Sprint("r", n), "", "n"))
	var reads atomic.Int64
	f := &faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
		if get, ok := in.(*dynamodb.BatchGetItemInput); ok {
			reads.Add(int64(len(get.RequestItems["app"].Keys)))
		}
	}}
	e := w.engine(f)
	from, err := e.Process(w.ctx, w.records())
	if err != nil {
		t.Fatal(err)
	}
	if got := reads.Load(); got > n*n/4 { // half of what it costs if each item walks; those that are filled at the same time may
		t.Errorf("%d folders cost %d reads, want %d at most", n, got, n*n/4)
	}
	w.drain(e, from)
	w.expectNoDrift()
}

// TestAPathAloneEndsInACycle has no lineage that tells of it.
func TestAPathAloneEndsInACycle(t *testing.T) {
	alone, _, _ := strings.Cut(strings.Replace(folderRules, ", lineage: folderIds", "", 1), "  file-place")
	w := newWorld(t, alone)
	e := w.seeded()
	w.put(folder("a", "", "a"))
	w.put(folder("b", "a", "b"))
	from := w.drain(e, 0)
	w.move("a", "b")
	from = w.drain(e, from)
	w.expectNoDrift()
	w.expectFolders(e, map[string]string{"a": "tree.cycle", "b": "tree.cycle"})
	w.move("b", "")
	w.drain(e, from)
	w.expectNoDrift()
	w.expectFolders(e, map[string]string{})
}

// TestMovedFoldersBeyondTheBoundAreATask fans out to more folders than a batch writes.
func TestMovedFoldersBeyondTheBoundAreATask(t *testing.T) {
	w := newWorld(t, folderRules)
	open := func(c table.Client) *Engine {
		e, err := Open(w.ctx, Config{Client: c, Table: "app", Rules: loadRules(t, folderRules), FanOutMax: 5})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open(w.sim)
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.put(folder("a", "", "a"))
	for i := range children {
		w.put(folder(fmt.Sprint("b", i), "a", "b"))
	}
	from := w.drain(e, 0)
	w.update(folderKey("a"), change.Item{"name": s("other")})
	from = w.drain(e, from)
	w.expectTasks(e, 1)
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.drain(e, from)
	w.expectNoDrift()
	w.expectTasks(e, 0)
}

// TestExplainTellsAFolder shows the stamp, the rows and the rules of a folder in a cycle.
func TestExplainTellsAFolder(t *testing.T) {
	w := newWorld(t, folderRules)
	e := w.seeded()
	w.put(folder("a", "", "a"))
	w.put(folder("b", "a", "b"))
	from := w.drain(e, 0)
	at := ", as of rules epoch 1, record N"
	want := []string{
		"stamp | paths | rules epoch 1, record N, filled or rederived since: 1; as dynamill wrote it: path, folderIds",
		"reference | paths | is below FOLDER#a/METADATA" + at,
		"parent's position | paths | FOLDER#a/METADATA is written to its children" + at,
		"parent's position | paths | FOLDER#b/METADATA is written to its children" + at,
		"asks | paths | refers to FOLDER#a/METADATA",
	}
	w.expectExplained(folderKey("b"), "| paths", want...)
	w.move("a", "b")
	w.drain(e, from)
	parked := "parked record | paths | tree.cycle since N: its parents lead back to it: FOLDER#b/METADATA -> FOLDER#a/METADATA -> " +
		"FOLDER#b/METADATA; take one of them out of the cycle"
	w.expectExplained(folderKey("b"), "| paths", slices.Insert(want, 4, parked)...)
	w.expectExplained(folderKey("b"), "there:", `FOLDER#b/METADATA "Folder", there: true, made: false`)
}
