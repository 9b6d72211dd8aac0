package projections

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// TestLargeCycleIsParkedInSteps has cycles of more items than one transaction can check. Above 200 items none is parked.
func TestLargeCycleIsParkedInSteps(t *testing.T) {
	for _, n := range []int{49, 50, 120, 201}[:worldsize.Of(4, 2)] {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			want := n
			if n > 200 {
				want = 0
			}
			w := newWorld(t, folderRules)
			for i := range n {
				w.put(folder(fmt.Sprint("r", i), fmt.Sprint("r", (i+1)%n), "n"))
			}
			e := w.seeded()
			var log bytes.Buffer
			e.host.Logger = slog.New(slog.NewTextHandler(&log, nil))
			from := w.drain(e, 0)
			w.expectNoDrift()
			if got := len(w.parkedFolders(e)); got != want {
				t.Errorf("%d are parked, want %d", got, want)
			}
			if said := strings.Contains(log.String(), "too large for that"); said != (n > 200) {
				t.Errorf("the log says that the cycle is too large: %v", said)
			}
			w.move("r0", "nowhere")
			w.drain(e, from)
			w.expectNoDrift()
			if got := w.parkedFolders(e); n <= 64 && len(got) > 0 {
				t.Errorf("behind the end of the cycle these are parked: %v", got)
			}
		})
	}
}

// TestACycleOfLargeItemsIsParked has cycles whose items are larger together than one transaction can check.
func TestACycleOfLargeItemsIsParked(t *testing.T) {
	large := s(strings.Repeat("x", 380<<10))
	long := strings.Repeat("k", 900)
	for name, put := range map[string]func(w *world, i, next int){
		"large items": func(w *world, i, next int) {
			it := folder(fmt.Sprint("r", i), fmt.Sprint("r", next), "n")
			it["description"] = large
			w.put(it)
		},
		"long keys": func(w *world, i, next int) { w.put(folder(fmt.Sprint(long, i), fmt.Sprint(long, next), "n")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, folderRules)
			n := map[string]int{"large items": 12, "long keys": 64}[name]
			for i := range n {
				put(w, i, (i+1)%n)
			}
			e := w.seeded()
			from := w.drain(e, 0)
			w.expectNoDrift()
			parked := slices.Compact(slices.Sorted(maps.Values(w.parkedFolders(e))))
			if got := len(w.parkedFolders(e)); got != n || !slices.Equal(parked, []string{"tree.cycle"}) {
				t.Errorf("%d are parked as %v, want %d", got, parked, n)
			}
			put(w, 0, n)
			w.drain(e, from)
			w.expectNoDrift()
			w.expectFolders(e, map[string]string{})
		})
	}
}

// striking is a client that does something at one of the large transactions: it has the worker crash before or behind it, or only acts.
type striking struct {
	*faulty
	mu              sync.Mutex // requests may go side by side
	at, large       int
	crashes, behind bool
	act             func()
	crashed         bool
}

func strike(w *world, at int, crashes, behind bool, act func()) *striking {
	c := &striking{faulty: &faulty{Client: w.sim}, at: at, crashes: crashes, behind: behind, act: act}
	c.around = func(_ string, pass func() error) error {
		c.mu.Lock()
		crashed := c.crashed
		c.mu.Unlock()
		if crashed {
			return errCrash
		}
		return pass()
	}
	c.before = func(_ string, in any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		tx, ok := in.(*dynamodb.TransactWriteItemsInput)
		if !ok || len(tx.TransactItems) < 10 || c.crashed {
			return
		}
		if c.large == c.at {
			if c.behind {
				_, _ = w.sim.TransactWriteItems(w.ctx, tx)
			}
			c.crashed = c.crashes
			c.act()
		}
		c.large++
	}
	return c
}

// TestALongCycleEndsWhole parks a cycle of 60 folders, which takes two transactions, and ends it. At one of them the worker crashes, or
// the cycle ends meanwhile: a folder leaves it, or becomes unreadable. Afterwards exactly those folders are parked that must be.
func TestALongCycleEndsWhole(t *testing.T) {
	const n = 60
	alone, _, _ := strings.Cut(strings.Replace(folderRules, ", lineage: folderIds", "", 1), "  file-place")
	ends := map[string]func(w *world, id string){
		"moves":  func(w *world, id string) { w.move(id, "") },
		"spoilt": func(w *world, id string) { w.update(folderKey(id), change.Item{"name": change.List(nil)}) },
	}
	run := func(t *testing.T, file, id string, end func(*world, string), clearing bool, at int, crashes, behind bool) {
		w := newWorld(t, file)
		w.put(folder(fmt.Sprint("r", n-1), "", "n"))
		for i := n - 2; i >= 0; i-- {
			w.put(folder(fmt.Sprint("r", i), fmt.Sprint("r", i+1), "n"))
		}
		from := w.drain(w.seeded(), 0)
		w.move(fmt.Sprint("r", n-1), "r0")
		act := func() {}
		if clearing {
			from = w.drain(w.engine(nil), from)
			end(w, id)
		} else {
			act = func() { end(w, id) }
		}
		client := strike(w, at, crashes, behind, act)
		for e := w.engine(client); from < len(w.records()) && !client.crashed; {
			done, _ := e.Process(w.ctx, w.records()[from:])
			from += done
		}
		if client.large <= at {
			t.Fatalf("there were %d large transactions", client.large)
		}
		e := w.engine(nil)
		w.drain(e, from)
		w.expectNoDrift()
		want := map[string]string{}
		if w.get(folderKey(id))["name"].Kind() == change.KindList {
			want[id] = "value.type"
		}
		w.expectFolders(e, want)
	}
	for name, end := range ends {
		for _, file := range []string{folderRules, alone} {
			for _, id := range []string{"r31", "r50"}[:worldsize.Of(2, 1)] {
				for i := 0; i < 12; i += worldsize.Of(1, 3) {
					clearing, at, crashes, behind := i%2 > 0, i/2%2, i >= 4, i >= 8
					t.Run(fmt.Sprint(name, len(file), id, clearing, at, crashes, behind), func(t *testing.T) {
						run(t, file, id, end, clearing, at, crashes, behind)
					})
				}
			}
		}
	}
}

// TestACycleWhoseItemsHaveNoRoomIsParked closes a cycle of items whose paths DynamoDB refuses after some rounds, or whose lineages it
// refuses at once.
func TestACycleWhoseItemsHaveNoRoomIsParked(t *testing.T) {
	alone, _, _ := strings.Cut(strings.Replace(folderRules, ", lineage: folderIds", "", 1), "  file-place")
	lineage, _, _ := strings.Cut(strings.Replace(folderRules, "path: name as path, ", "", 1), "  file-place")
	long := func(id string) string { return strings.Repeat(id, 100) }
	full := func(w *world, id, in string, free int) {
		it := folder(id, in, long(id[:1]))
		it["fill"] = s("")
		it["fill"] = s(strings.Repeat("x", 400<<10-it.Size()-free))
		w.put(it)
	}
	t.Run("a path alone", func(t *testing.T) {
		w := newWorld(t, alone)
		e := w.seeded()
		full(w, "a", "", 1000)
		w.put(folder("b", "a", long("b")))
		from := w.drain(e, 0)
		w.move("a", "b")
		from = w.drain(e, from)
		w.expectNoDrift()
		w.expectFolders(e, map[string]string{"a": "tree.cycle", "b": "tree.cycle"})
		w.move("b", "")
		w.drain(e, from)
		w.expectNoDrift()
		w.expectFolders(e, map[string]string{})
	})
	t.Run("lineages", func(t *testing.T) {
		w := newWorld(t, lineage)
		e := w.seeded()
		for _, id := range []string{"p", "q"} {
			w.put(folder(long(id), "", id))
			full(w, long("x"+id), long(id), 600)
		}
		from := w.drain(e, 0)
		for id, in := range map[string]string{"p": "xq", "q": "xp"} {
			w.move(long(id), long(in))
			from = w.drain(e, from)
		}
		w.expectNoDrift()
		for id, code := range w.parkedFolders(e) {
			if code != "tree.cycle" {
				t.Errorf("%s is parked as %s", id[:2], code)
			}
		}
		if n := len(w.parkedFolders(e)); n != 4 {
			t.Errorf("%d are parked", n)
		}
	})
}

// TestAFolderThatRisesWhileItIsParkedIsCleared has a worker that has written a folder as too deep sleep before it parks it. Another
// one brings it up meanwhile, and is about to write it when the first one wakes up. The first one crashes behind that.
func TestAFolderThatRisesWhileItIsParkedIsCleared(t *testing.T) {
	w := newWorld(t, folderRules)
	w.put(folder("d0", "", "n"))
	for i := range 64 {
		w.put(folder(fmt.Sprint("d", i+1), fmt.Sprint("d", i), "n"))
	}
	e := w.seeded()
	from := w.drain(e, 0)
	if err := e.DiscardParked(w.ctx, parkedID("paths/"+folderKey("d64").String())); err != nil {
		t.Fatal(err)
	}
	w.expectFolders(e, map[string]string{})
	slept, parked := false, false
	crashes := func(op string, pass func() error) error {
		if op == "TransactWriteItems" {
			return errCrash // it has taken effect
		}
		return pass()
	}
	parker := w.engine(&faulty{Client: w.sim, around: crashes, before: func(_ string, in any) {
		parking, is := in.(*dynamodb.TransactWriteItemsInput)
		if !is || slept {
			return
		}
		slept = true
		riser := w.engine(&faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
			tx, is := in.(*dynamodb.TransactWriteItemsInput)
			if !is || parked || tx.TransactItems[0].Update == nil {
				return
			}
			parked = true
			if _, err := w.sim.TransactWriteItems(w.ctx, parking); err != nil {
				t.Error(err)
			}
		}})
		w.delete(folderKey("d0"))
		w.drain(riser, from)
	}})
	if err := parker.Rederive(w.ctx, []change.Key{folderKey("d64")}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if !parked {
		t.Error("no worker was about to write the folder")
	}
	w.expectNoDrift()
	w.expectFolders(e, map[string]string{})
}

// TestHealingOfAnUnreadableFolderIsBounded has a program put a path, again and again, on a folder whose name cannot be read.
func TestHealingOfAnUnreadableFolderIsBounded(t *testing.T) {
	w := newWorld(t, folderRules)
	it := folder("a", "", "a")
	it["name"] = change.List(nil)
	w.put(it)
	w.seeded()
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: w.set, HealsMax: 3})
	if err != nil {
		t.Fatal(err)
	}
	from := w.drain(e, 0)
	for i := range 6 {
		w.update(folderKey("a"), change.Item{"path": s("/theirs")})
		from = w.drain(e, from)
		if _, there := w.get(folderKey("a"))["path"]; there != (i >= 3) {
			t.Fatalf("after %d times the path is there: %t", i+1, there)
		}
	}
}
