package projections

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

// The rules of these tests: a document is found by its code, and a folder by its slug.

func putDoc(w *world, id, code string) {
	w.t.Helper()
	doc := change.Item{"pk": s("DOC#" + id), "kind": s("doc"), "title": s(id)}
	if code != "" {
		doc["code"] = s(code)
	}
	w.put(doc)
}

func putFolder(w *world, id, slug string) {
	w.t.Helper()
	w.put(change.Item{"pk": s("FOLDER#" + id), "slug": s(slug)})
}

// listedTargets are the contested targets, each with its claimants.
func listedTargets(t *testing.T, e *Engine) []string {
	t.Helper()
	all, err := e.Parked(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, p := range all {
		if p.Contested() == nil {
			continue
		}
		line := p.ID + " " + p.Code + ":"
		for _, k := range p.Claimants {
			line += " " + k.String()
		}
		lines = append(lines, line)
	}
	return lines
}

func (w *world) expectListed(e *Engine, want ...string) {
	w.t.Helper()
	if want == nil {
		want = []string{}
	}
	if got := w.spelled(listedTargets(w.t.(*testing.T), e)); !slices.Equal(got, want) {
		w.t.Errorf("listed: %q, want %q", got, want)
	}
	w.expectRightState()
}

// expectRightState compares the whole state table with what the items ask for.
func (w *world) expectRightState() {
	w.t.Helper()
	for _, d := range oracle.Audit(w.set, w.items(), w.scan("app-dynamill"), time.Now()) {
		w.t.Error(d)
	}
}

func TestContestedMirrorItemIsListedWhileTwoSourcesClaimIt(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	putDoc(w, "d2", "c1")
	from := w.drain(e, 0)
	w.expectListed(e)
	putDoc(w, "d3", "c1")
	from = w.drain(e, from)
	const row = "contested:by-code/CODE#c1 item.contested: "
	w.expectListed(e, row+"DOC#d2 DOC#d3")
	putDoc(w, "d1", "c1") // a new winner
	from = w.drain(e, from)
	w.expectListed(e, row+"DOC#d1 DOC#d2 DOC#d3")
	w.delete(change.Key{Partition: "DOC#d1"}) // the winner leaves
	from = w.drain(e, from)
	w.expectListed(e, row+"DOC#d2 DOC#d3")
	putDoc(w, "d3", "") // a loser leaves
	from = w.drain(e, from)
	w.expectListed(e)
	w.delete(change.Key{Partition: "DOC#d2"})
	w.drain(e, from)
	w.expectListed(e)
}

func TestContestedUniqueValueIsListedWhileTwoItemsHaveIt(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	putFolder(w, "f2", "a/b") // the id of the row escapes the slash
	from := w.drain(e, 0)
	w.expectListed(e)
	putFolder(w, "f3", "a/b")
	putFolder(w, "f1", "a/b")
	from = w.drain(e, from)
	const row = "contested:@Folder/a%2Fb unique.contested: "
	w.expectListed(e, row+"FOLDER#f1 FOLDER#f2 FOLDER#f3")
	w.delete(change.Key{Partition: "FOLDER#f1"})
	from = w.drain(e, from)
	w.expectListed(e, row+"FOLDER#f2 FOLDER#f3")
	putFolder(w, "f2", "other")
	w.drain(e, from)
	w.expectListed(e)
}

// TestSeedingListsContestedTargets seeds a table in which targets are contested already.
func TestSeedingListsContestedTargets(t *testing.T) {
	w := newWorld(t, oddRules)
	putDoc(w, "d1", "c1")
	putDoc(w, "d2", "c1")
	putFolder(w, "f1", "x")
	putFolder(w, "f2", "x")
	e := w.seeded()
	w.expectListed(e, "contested:@Folder/x unique.contested: FOLDER#f1 FOLDER#f2", "contested:by-code/CODE#c1 item.contested: DOC#d1 DOC#d2")
}

// TestCrashBeforeListingIsMadeGoodByTheRecord ends a worker after the ledger
// transaction, before the row is written or deleted.
func TestCrashBeforeListingIsMadeGoodByTheRecord(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	putFolder(w, "f1", "x")
	from := w.drain(e, 0)
	for _, step := range []struct {
		do   func()
		want []string
	}{
		{func() { putFolder(w, "f2", "x") }, []string{"contested:@Folder/x unique.contested: FOLDER#f1 FOLDER#f2"}},
		{func() { w.delete(change.Key{Partition: "FOLDER#f1"}) }, nil},
	} {
		step.do()
		f := &faulty{Client: w.sim, around: passAll}
		crashing, moved := w.engine(f), false
		f.around = func(op string, pass func() error) error {
			if moved {
				return errCrash
			}
			moved = op == "TransactWriteItems"
			return pass()
		}
		if done, err := crashing.Process(w.ctx, w.records()[from:]); !errors.Is(err, errCrash) || done > 0 {
			t.Fatalf("%d records done, %v", done, err)
		}
		from = w.drain(e, from)
		w.expectListed(e, step.want...)
	}
}

// TestLateWorkerListsNothingThatChangedSince has a worker read a contested set and sleep
// before it lists the target. Meanwhile the second item leaves.
func TestLateWorkerListsNothingThatChangedSince(t *testing.T) {
	for name, c := range map[string]struct{ put, leave func(w *world) }{
		"a unique value": {func(w *world) { putFolder(w, "f2", "x") }, func(w *world) { w.delete(change.Key{Partition: "FOLDER#f2"}) }},
		"a mirror item":  {func(w *world) { putDoc(w, "d2", "c1") }, func(w *world) { putDoc(w, "d2", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, oddRules)
			e := w.seeded()
			putFolder(w, "f1", "x")
			putDoc(w, "d1", "c1")
			from := w.drain(e, 0)
			c.put(w)
			f := &faulty{Client: w.sim, around: passAll}
			late, transactions, applied := w.engine(f), 0, 0
			f.around = func(op string, pass func() error) error {
				if op == "TransactWriteItems" {
					if transactions++; transactions == 2 { // the first one moves the ledger
						c.leave(w)
						applied = w.drain(e, from)
					}
				}
				return pass()
			}
			records := w.records()[from:]
			if done, err := late.Process(w.ctx, records); err != nil || done != len(records) || transactions < 2 {
				t.Fatalf("%d of %d records done in %d transactions, %v", done, len(records), transactions, err)
			}
			w.drain(e, applied) // the records of the late worker's own writes
			w.expectListed(e)
		})
	}
}

// TestListingCostsAnUncontestedWriteNothing counts write requests: listing takes one, and
// only when the second item comes.
func TestListingCostsAnUncontestedWriteNothing(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	from := 0
	writes := func(do func()) int64 {
		before := e.Stats().Writes
		do()
		from = w.drain(e, from)
		return e.Stats().Writes - before
	}
	alone := writes(func() { putFolder(w, "f1", "x") })
	crossing := writes(func() { putFolder(w, "f2", "x") })
	third := writes(func() { putFolder(w, "f3", "x") })
	const shown = 2 // two totals of 0 in one write, and the position of the rule that copies one of them
	if alone != 1+shown || crossing != third+1 {
		t.Errorf("a first item with a value takes %d writes, want %d; a second takes %d and a third %d, want one more for the second", alone,
			1+shown, crossing, third)
	}
}

func TestRetryOfAContestedTargetStaysWhileItIsContested(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	putFolder(w, "f1", "x")
	putFolder(w, "f2", "x")
	from := w.drain(e, 0)
	const id = "contested:@Folder/x"
	if err := e.RetryParked(w.ctx, parkedID(id)); err != nil {
		t.Fatal(err)
	}
	p, err := e.FindParked(w.ctx, id)
	if err != nil || p.Value != "x" || p.Key.Partition != "FOLDER#f1" || !strings.Contains(p.Reason, "FOLDER#f1 wins") {
		t.Errorf("after a retry: %+v, %v", p, err)
	}
	if err := e.DiscardParked(w.ctx, parkedID(id)); err != nil {
		t.Fatal(err)
	}
	if got := listedTargets(t, e); len(got) > 0 {
		t.Errorf("after a discard: %q", got)
	}
	putFolder(w, "f2", "y")
	w.drain(e, from)
	w.expectListed(e)
}

// TestRetryClearsARowThatOutlivedItsContention puts a deleted row back by hand.
func TestRetryClearsARowThatOutlivedItsContention(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	putFolder(w, "f1", "x")
	putFolder(w, "f2", "x")
	from := w.drain(e, 0)
	var row change.Item
	for _, r := range w.scan("app-dynamill") {
		if r["sk"].Text() == "contested:@Folder/x" {
			row = r
		}
	}
	w.delete(change.Key{Partition: "FOLDER#f2"})
	w.drain(e, from)
	w.putState(row)
	if got := listedTargets(t, e); len(got) > 0 {
		t.Errorf("a value of one item is listed: %q", got)
	}
	if err := e.RetryParked(w.ctx, parkedID("contested:@Folder/x")); err != nil {
		t.Fatal(err)
	}
	w.expectRightState()
}

// TestAuditMendsTheListOfContestedTargets breaks rows of the list, and has the audit find and mend each.
func TestAuditMendsTheListOfContestedTargets(t *testing.T) {
	folder, doc := drift.Suspect{Kind: drift.Locator, Rule: "@Folder", Group: "x"},
		drift.Suspect{Kind: drift.Claims, Rule: idOf("by-code"), Item: change.Key{Partition: "CODE#c1"}}
	for name, c := range map[string]struct {
		items   int // claimants of each
		suspect drift.Suspect
		spoil   func(w *world, e *Engine)
		want    drift.What
	}{
		"a value is not listed": {2, folder, func(w *world, e *Engine) { _ = e.DiscardParked(w.ctx, parkedID("contested:@Folder/x")) },
			drift.Missing},
		"a mirror item is not listed": {2, doc, func(w *world, e *Engine) { _ = e.DiscardParked(w.ctx, parkedID("contested:by-code/CODE#c1")) },
			drift.Missing},
		"a value is listed without need": {1, folder, func(w *world, _ *Engine) {
			w.putState(change.Item{"pk": s("parked"), "sk": s("contested:@Folder/x"), "id": s("contested:@Folder/x"), "rule": s("@Folder"),
				"value": s("x"), "code": s("unique.contested")})
		}, drift.Surplus},
		"a mirror item is listed without need": {1, doc, func(w *world, _ *Engine) {
			w.putState(change.Item{"pk": s("parked"), "sk": s(parkedID("contested:by-code/CODE#c1")), "id": s(parkedID("contested:by-code/CODE#c1")),
				"rule": s(idOf("by-code")), "item": s("CODE#c1"), "code": s("item.contested")})
		}, drift.Surplus},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, oddRules)
			e := w.seeded()
			for i := range c.items {
				putFolder(w, fmt.Sprint("f", i), "x")
				putDoc(w, fmt.Sprint("d", i), "c1")
			}
			w.drain(e, 0)
			a, err := audits.Open(w.ctx, audits.Config{Client: w.sim, Table: "app", Rules: w.set})
			if err != nil {
				t.Fatal(err)
			}
			read := func() drift.Reading {
				t.Helper()
				readings, err := a.Read(w.ctx, []drift.Suspect{c.suspect})
				if err != nil {
					t.Fatal(err)
				}
				return readings[0]
			}
			if r := read(); len(r.Findings) > 0 {
				t.Errorf("before: %v", r.Findings)
			}
			c.spoil(w, e)
			r := read()
			if len(r.Findings) != 1 || r.Findings[0].Kind != drift.Parked || r.Findings[0].What != c.want || r.Waiting != "" {
				t.Fatalf("spoilt: %+v", r)
			}
			if done, err := a.Mend(w.ctx, r); err != nil || !done {
				t.Fatal(done, err)
			}
			if err := e.Rederive(w.ctx, r.Fix.Keys); err != nil {
				t.Fatal(err)
			}
			if r := read(); len(r.Findings) > 0 {
				t.Errorf("mended: %v", r.Findings)
			}
			w.expectRightState()
		})
	}
}

// TestContendedTargetIsLoggedOnceAnHour applies 100 records of a contested target.
func TestContendedTargetIsLoggedOnceAnHour(t *testing.T) {
	w := newWorld(t, oddRules)
	var out bytes.Buffer
	now := time.Unix(1_000_000, 0)
	e, err := Open(w.ctx, Config{
		Client: w.sim, Table: "app", Rules: loadRules(t, oddRules), Logger: slog.New(slog.NewTextHandler(&out, nil)),
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	from := 0
	write := func(id string) {
		putDoc(w, id, "c1")
		from = w.drain(e, from)
	}
	write("d0")
	for i := range 100 {
		write(fmt.Sprintf("d%03d", i))
	}
	lines := strings.Count(out.String(), "several items claim one target")
	if lines != 1 || !strings.Contains(out.String(),
		"rule=by-code target=CODE#c1 claimants=2 among_them=\"DOC#d0, DOC#d000\" winner=DOC#d0 remedy=") {
		t.Errorf("%d lines of 100 records, want 1:\n%s", lines, out.String())
	}
	now = now.Add(time.Hour)
	write("d100")
	if lines := strings.Count(out.String(), "several items claim one target"); lines != 2 || !strings.Contains(out.String(), "and 99 more") {
		t.Errorf("%d lines after an hour, want 2:\n%s", lines, out.String())
	}
}

// TestFullLocatorIsListedWithoutItsMark fills a locator until it has room for one item
// more, and for nothing else.
func TestFullLocatorIsListedWithoutItsMark(t *testing.T) {
	w := newWorld(t, oddRules)
	e := w.seeded()
	var others []string
	for i := range 399 {
		others = append(others, fmt.Sprintf("FOLDER#z%03d%s", i, strings.Repeat("x", 1000)))
	}
	fill := func(bytes int) error {
		members := append(slices.Clone(others), "FOLDER#y"+strings.Repeat("x", bytes))
		_, err := w.sim.PutItem(w.ctx, &dynamodb.PutItemInput{TableName: new("app-dynamill"), Item: attributes.ItemToTable(change.Item{
			"pk": s("locator/Folder/x"), "sk": s("locator"), "items": change.Set(change.KindStringSet, members), "changes": change.Number("1"),
		})})
		return err
	}
	bytes := 10_000
	for fill(bytes) != nil {
		bytes--
	}
	if err := fill(bytes - len("FOLDER#f1") - 3); err != nil {
		t.Fatal(err)
	}
	putFolder(w, "f1", "x")
	w.drain(e, 0)
	p, err := e.FindParked(w.ctx, "contested:@Folder/x")
	if err != nil || len(p.Claimants) != 401 || p.Claimants[0].Partition != "FOLDER#f1" || !strings.Contains(p.Reason, "and 398 more") {
		t.Errorf("%d claimants, %s, %v", len(p.Claimants), p.Reason, err)
	}
}

// TestSweepTakesOffTheListWhatNoItemClaims has a worker crash once the last claimants have gone
// and before it takes their target off the list. Their records are lost then.
func TestSweepTakesOffTheListWhatNoItemClaims(t *testing.T) {
	w := newWorld(t, oddRules)
	putDoc(w, "d1", "c1")
	putDoc(w, "d2", "c1")
	putFolder(w, "f1", "x")
	putFolder(w, "f2", "x")
	e := w.seeded()
	from := w.drain(e, 0)
	for _, id := range []string{"FOLDER#f1", "FOLDER#f2", "DOC#d1", "DOC#d2"} {
		w.delete(change.Key{Partition: id})
	}
	f := &faulty{Client: w.sim, around: passAll}
	crashing := w.engine(f)
	var crashed atomic.Bool
	f.before = func(_ string, in any) {
		if t, ok := in.(*dynamodb.TransactWriteItemsInput); ok && t.TransactItems[0].Delete != nil {
			crashed.Store(true)
		}
	}
	f.around = func(_ string, pass func() error) error {
		if crashed.Load() {
			return errCrash
		}
		return pass()
	}
	if _, err := crashing.Process(w.ctx, w.records()[from:]); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if n, err := e.CountParked(w.ctx); err != nil || n != 2 {
		t.Fatalf("%d rows are left, %v; want those of both targets", n, err)
	}
	for _, pass := range []string{"rederive", "sweep"} {
		if err := w.work(e, pass); err != nil {
			t.Fatal(err)
		}
	}
	w.expectListed(e)
}
