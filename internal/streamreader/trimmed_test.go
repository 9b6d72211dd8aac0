package streamreader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/dynamill/dynamill/change"
)

func TestGenerationThatCameAndWentUnreadIsLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		first := f.open("shard1", "")
		f.write(first, "item", 3)
		f.close(first)
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		// While no reader runs, shard2 lives and dies.
		first.gone = true
		f.write(f.open("shard3", "shard2"), "item", 3)
		err := newTestReader(t, f, cp, c).Drain(t.Context())
		var trimmed *TrimmedError
		if !errors.As(err, &trimmed) || trimmed.Shard != "shard2" {
			t.Fatalf("Drain returned %v, want a TrimmedError for shard2", err)
		}
		// What the error says helps: forget, start again.
		forget(t, cp)
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 6})
	})
}

func TestTrimmedDataTakenForTheEndOfTheShard(t *testing.T) {
	for _, test := range []struct {
		name    string
		readTo  int // records done before the reader goes away
		trimTo  int
		missing bool
	}{
		{"behind the checkpoint", 2, 5, false},
		{"in a shard of which nothing was processed yet", 0, 1, false},
		{"with the whole shard", 2, 6, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c, cp := newFakeStream(), &collector{}, newLeases()
				s := f.open("shard", "")
				f.write(s, "item", 6)
				broken := errors.New("broken")
				c.before = func(context.Context, []change.Record) (int, error) { return test.readTo, &stopError{broken} }
				if err := newTestReader(t, f, cp, c).Run(t.Context()); !errors.Is(err, broken) {
					t.Fatal(err)
				}
				s.trimmed, s.gone = test.trimTo, test.missing
				c.before = nil
				err := newTestReader(t, f, cp, c).Drain(t.Context())
				var trimmed *TrimmedError
				if !errors.As(err, &trimmed) || trimmed.Shard != "shard" {
					t.Errorf("Drain returned %v, want a TrimmedError of the shard", err)
				}
				if c.count() != test.readTo {
					t.Errorf("%d records done behind the gap", c.count()-test.readTo)
				}
				if leaseOf(t, cp, "shard").Finished() {
					t.Error("the shard was marked finished")
				}
			})
		})
	}
}

func TestFirstStartTakesUpAPartlyTrimmedShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		s := f.open("shard", "long-gone")
		f.write(s, "item", 6)
		s.trimmed = 2
		c.before = func(context.Context, []change.Record) (int, error) { return 0, &stopError{errors.New("broken")} }
		if err := newTestReader(t, f, cp, c).Run(t.Context()); err == nil {
			t.Fatal("Run went on behind an error that stops")
		}
		c.before = nil // and so does the start after a crash
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 4})
	})
}

type stopError struct{ error }

func (*stopError) StopReading() bool { return true }
func (e *stopError) Unwrap() error   { return e.error }
