package shardread

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

func markAt(t interface{ Fatal(...any) }, n int) streamapi.Mark {
	p, err := change.NewPosition("label", strconv.Itoa(n))
	if err != nil {
		t.Fatal(err)
	}
	return streamapi.Mark{Position: p, Sequence: strconv.Itoa(n)}
}

// Whatever the processor reports, and however often records come again, a
// checkpoint names only records of which it and all before it are done, and
// never one before the last checkpoint.
func TestCheckpointNeverPassesARecordThatIsNotDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f frontier
		written, read, done := 0, 0, 0 // records 1..n
		saved := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // a page; pages come only when the last one is done
				if len(f.pending) > 0 {
					continue
				}
				if rapid.Bool().Draw(t, "again") && read > 0 {
					read -= rapid.IntRange(0, min(read, 5)).Draw(t, "back")
				}
				written = max(written, read) + rapid.IntRange(0, 10).Draw(t, "written")
				for n := read + 1; n <= written; n++ {
					f.hand(markAt(t, n))
				}
				read = written
			case 1: // a batch
				given := rapid.IntRange(0, len(f.pending)).Draw(t, "given")
				n := rapid.IntRange(0, given).Draw(t, "done")
				if err := f.advance(n, given); err != nil {
					t.Fatal(err)
				}
				done = max(done, read-len(f.pending))
			case 2:
				if m, ok := f.unsaved(); ok {
					n, _ := strconv.Atoi(m.Sequence)
					if n > done || n <= saved {
						t.Fatalf("checkpoint %d, with %d done and %d saved", n, done, saved)
					}
					f.save(m)
					saved = n
				} else if saved != done {
					t.Fatalf("nothing to save, with %d done and %d saved", done, saved)
				}
			case 3:
				if err := f.advance(len(f.pending)+1, len(f.pending)+1); err == nil {
					t.Fatal("more records done than there are")
				}
			}
		}
	})
}
