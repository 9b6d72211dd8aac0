package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

// A worker that watches scans again when a lease that was claimed meanwhile may have expired.
func TestClaimBringsNextScanForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{StreamARN: "stream", Worker: leases.Worker{Name: "w", Run: "1", Term: time.Minute}})
		held := leases.Lease{Shard: "shard", Stream: "stream", Owner: "w", Run: "1", Term: time.Minute, Counter: 1,
			Checkpoint: leases.TrimHorizon}
		m.See([]leases.Lease{held})
		time.Sleep(time.Second)
		claimed := held
		claimed.Owner, claimed.Run, claimed.Term, claimed.Counter = "next", "2", 5*time.Second, 2
		m.Note(claimed)
		if got := time.Until(m.scans.expiry); got != 5*time.Second {
			t.Errorf("the next lease expires in %s", got)
		}
	})
}

// A process that comes back under its name finds the row by which the former one sought shards.
func TestAFormerProcessOfTheNameThatSoughtIsNoNamesake(t *testing.T) {
	m := New(Config{StreamARN: "stream", Worker: leases.Worker{Name: "w", Run: "2", Term: time.Minute}})
	key := leases.SeekerKey("stream", "w")
	sought := leases.Lease{Shard: key, Stream: "stream", Owner: "w", Run: "1", Term: time.Minute, Counter: 1, Checkpoint: leases.TrimHorizon}
	m.See([]leases.Lease{sought})
	if err := m.Over(); err != nil {
		t.Error(err)
	}
	sought.Run, sought.Counter = "3", 2
	m.See([]leases.Lease{sought})
	if err := m.Over(); err == nil {
		t.Error("another process seeks under the name since, and nothing is told")
	}
}

// Rows that their seekers released name no worker. Each of them goes.
func TestSilentSeekersWithoutWorkersAreAllFound(t *testing.T) {
	m := New(Config{StreamARN: "stream", Worker: leases.Worker{Name: "w", Run: "1", Term: time.Minute}})
	var rows []leases.Lease
	for _, worker := range []string{"a", "b", "c"} {
		key := leases.SeekerKey("stream", worker)
		rows = append(rows, leases.Lease{Shard: key, Stream: "stream", Checkpoint: leases.TrimHorizon})
	}
	m.See(rows)
	if silent := m.SilentSeekers(); len(silent) != len(rows) {
		t.Errorf("%d of %d rows of seekers are silent", len(silent), len(rows))
	}
}
