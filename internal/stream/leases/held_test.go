package leases

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a store whose writes are never answered, whatever their context says.
type stuck struct {
	*Table
	over chan struct{}
}

func (s stuck) Save(context.Context, Lease) (Lease, error) {
	<-s.over
	return Lease{}, errors.New("connection reset")
}

// A worker waits for its turn to write no longer than the lease can be trusted.
func TestWriteWaitsNoLongerThanTheWindowLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{newTestTable(t), make(chan struct{})}
		row, err := s.Create(t.Context(), Lease{Shard: "shard", Stream: testARN, Checkpoint: TrimHorizon})
		if err == nil {
			row, err = s.Claim(t.Context(), row, Worker{Name: "w", Run: "1", Term: testTerm})
		}
		if err != nil {
			t.Fatal(err)
		}
		h := Hold(s, row, testTerm, time.Now())
		defer h.Leave()
		began := time.Now()
		first := make(chan error)
		go func() { first <- h.Save(context.Background(), func(*Lease) {}) }()
		synctest.Wait()
		if err := h.Renew(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("a renewal beside a write returned %v after %s: it has nothing to do", err, time.Since(began))
		}
		if err := h.Release(t.Context(), func(*Lease) {}); !errors.Is(err, ErrNotRenewed) {
			t.Errorf("Release returned %v", err)
		}
		if took := time.Since(began); took != h.window() {
			t.Errorf("it waited for %s, want the trust window of %s", took, h.window())
		}
		close(s.over)
		<-first
	})
}

// A call is given up when the trust ends, if a renewal's time is longer.
func TestWriteIsGivenUpWhenTheWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Hold(newTestTable(t), Lease{Shard: "shard", Owner: "w"}, testTerm, time.Now())
		defer h.Leave()
		began := time.Now()
		time.Sleep(testTerm * 3 / 4)
		err := h.write(t.Context(), func(ctx context.Context) (Lease, error) {
			<-ctx.Done()
			return Lease{}, ctx.Err()
		})
		if err == nil || time.Since(began) != h.window() {
			t.Errorf("%v after %s, want an error after %s", err, time.Since(began), h.window())
		}
	})
}

func TestUnadoptedRowAtItsStartIsNotRead(t *testing.T) {
	for _, test := range []struct {
		row  Lease
		want bool
	}{
		{Lease{Checkpoint: TrimHorizon}, true},
		{Lease{Checkpoint: TrimHorizon, Unadopted: true}, false},
		{Lease{Checkpoint: "5", Unadopted: true, Parent: "gone"}, true},
	} {
		if got := MayBeRead(test.row, nil); got != test.want {
			t.Errorf("%+v: %v", test.row, got)
		}
	}
}

// The table tells a process from another of its name, evicts only workers that are
// silent, and completes only bare rows.
func TestWritersOfARow(t *testing.T) { whoWrites(t, newTestTable(t)) }

func whoWrites(t *testing.T, store Store) {
	ctx := t.Context()
	must := func(l Lease, err error) Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	made := must(store.Create(ctx, Lease{Shard: "bare", Checkpoint: "3", Unadopted: true}))
	known := made
	known.Stream, known.Parent, known.Start, known.Whole, known.Orphan = testARN, "parent", "1", true, true
	if l := must(store.Adopt(ctx, known)); l.Unadopted || l.Stream != testARN || l.Parent != "parent" || l.Start != "1" || !l.Whole ||
		!l.Orphan || l.Checkpoint != "3" {
		t.Errorf("adopted: %+v", l)
	}
	known.Start = "9"
	if l := must(store.Adopt(ctx, known)); l.Start != "1" {
		t.Errorf("adopted twice: %+v", l)
	}

	first := must(store.Claim(ctx, must(store.Get(ctx, "bare")), Worker{Name: "w", Run: "1", Term: time.Minute}))
	if first.Term != time.Minute || first.Run != "1" {
		t.Errorf("claimed: %+v", first)
	}
	second := must(store.Claim(ctx, first, Worker{Name: "w", Run: "2", Term: 2 * time.Minute}))
	if _, err := store.Renew(ctx, first); !errors.Is(err, ErrNamesake) || !errors.Is(err, ErrLost) {
		t.Errorf("the first process renews: %v", err)
	}
	if _, err := store.Evict(ctx, first); !errors.Is(err, ErrLost) {
		t.Errorf("evicted although it has written since: %v", err)
	}
	if l, err := store.Claim(ctx, first, Worker{Name: "w", Run: "1"}); !errors.Is(err, ErrNamesake) || l.Run != "2" {
		t.Errorf("the first process claims what the second has: %+v, %v", l, err)
	}
	if l, err := store.Claim(ctx, made, Worker{Name: "w", Run: "1"}); !errors.Is(err, ErrLost) || l.Run != "2" {
		t.Errorf("the first process claims what was nobody's: %+v, %v", l, err)
	}
	read := second
	second = must(store.Renew(ctx, second)) // while the third process of the name starts
	if l := must(store.Claim(ctx, read, Worker{Name: "w", Run: "3", Term: time.Minute})); l.Run != "3" || l.Counter != second.Counter+1 {
		t.Errorf("the third process has claimed: %+v", l)
	}
	if l := must(store.Claim(ctx, second, Worker{Name: "w", Run: "3", Term: time.Minute})); l.Run != "3" {
		t.Errorf("a claim whose answer was lost, made again: %+v", l)
	}
	second = must(store.Get(ctx, "bare"))
	if l := must(store.Evict(ctx, second)); l.Owner != "" || l.Run != "" || l.Term != 0 || l.Counter != second.Counter+1 ||
		l.Checkpoint != "3" {
		t.Errorf("evicted: %+v", l)
	}
	claimed := must(store.Claim(ctx, must(store.Get(ctx, "bare")), Worker{Name: "silent", Run: "1", Term: time.Minute}))
	rows, err := EvictOwners(ctx, store, testARN)
	if owned := func(l Lease) bool { return l.Owner != "" }; err != nil || slices.ContainsFunc(rows, owned) {
		t.Errorf("all owners evicted: %+v, %v", rows, err)
	}
	if i := slices.IndexFunc(rows, func(l Lease) bool { return l.Shard == "bare" }); i < 0 ||
		rows[i].Counter != claimed.Counter+1 || rows[i].Switches != claimed.Switches-1 || rows[i].Checkpoint != "3" {
		t.Errorf("all owners evicted: %+v", rows)
	}
	if _, err := store.Save(ctx, claimed); !errors.Is(err, ErrLost) {
		t.Errorf("an owner that was evicted saves: %v", err)
	}
	if rows, err := EvictOwners(ctx, store, "other"); err != nil || len(rows) != 0 {
		t.Errorf("of another stream: %+v, %v", rows, err)
	}
	if l := must(store.Release(ctx, must(store.Claim(ctx, must(store.Get(ctx, "bare")),
		Worker{Name: "next", Run: "3", Term: time.Minute})))); l.Owner != "" || l.Term != 0 || l.Run != "" {
		t.Errorf("released: %+v", l)
	}

	if err := store.Announce(ctx, testARN); err != nil {
		t.Errorf("news without a row: %v", err)
	}
	if l := must(store.Get(ctx, testARN)); l.Shard != "" {
		t.Errorf("a row came of news: %+v", l)
	}
	must(store.Create(ctx, Lease{Shard: testARN, Stream: testARN, Checkpoint: Latest, Owner: "w", Counter: 4}))
	for range 3 {
		if err := store.Announce(ctx, testARN); err != nil {
			t.Fatal(err)
		}
	}
	if l := must(store.Get(ctx, testARN)); l.News != 3 || l.Counter != 4 || l.Owner != "w" {
		t.Errorf("after the news: %+v", l)
	}
}

// deleting is a store from which a person deletes a row before its owner can be evicted.
type deleting struct{ *Table }

func (d deleting) Evict(ctx context.Context, l Lease) (Lease, error) {
	if l.Shard == "gone" {
		if err := d.Delete(ctx, l); err != nil {
			return l, err
		}
	}
	return d.Table.Evict(ctx, l)
}

// TestEvictionOfOwnersIsNoCrash evicts a living owner several times. The changes of owner, which tell of crashes, must not rise by that.
func TestEvictionOfOwnersIsNoCrash(t *testing.T) {
	s, w := newTestTable(t), Worker{Name: "w", Run: "1", Term: testTerm}
	row, err := s.Create(t.Context(), Lease{Shard: "s", Stream: testARN, Checkpoint: TrimHorizon})
	for range 5 {
		if err == nil {
			row, err = s.Claim(t.Context(), row, w)
		}
		if err == nil && row.Switches != 1 {
			t.Fatalf("%d changes of owner, want 1", row.Switches)
		}
		var rows []Lease
		if err == nil {
			rows, err = EvictOwners(t.Context(), s, testARN)
		}
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		row = rows[0]
	}
}

func TestEvictionPassesOverARowThatIsDeleted(t *testing.T) {
	s := deleting{newTestTable(t)}
	for _, shard := range []string{"gone", "there"} {
		row, err := s.Create(t.Context(), Lease{Shard: shard, Stream: testARN, Checkpoint: TrimHorizon})
		if err == nil {
			_, err = s.Claim(t.Context(), row, Worker{Name: "w", Run: "1", Term: testTerm})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	rows, err := EvictOwners(ctx, s, testARN)
	if err != nil || len(rows) != 1 || rows[0].Shard != "there" || rows[0].Owner != "" {
		t.Errorf("evicted: %+v, %v", rows, err)
	}
}
