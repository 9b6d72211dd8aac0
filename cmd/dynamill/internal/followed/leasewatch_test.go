package followed

import (
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

func TestLeasesShowWhetherAProcessFollows(t *testing.T) {
	const arn = "arn"
	row := func(shard, owner string, counter int64) leases.Lease {
		return leases.Lease{Shard: shard, Stream: arn, Owner: owner, Counter: counter, Term: 10 * time.Second}
	}
	type reading struct {
		at   time.Duration
		rows []leases.Lease
	}
	for name, c := range map[string]struct {
		readings []reading
		want     bool // no process follows
	}{
		"never read":                   {nil, false},
		"no row at all":                {[]reading{{0, nil}}, true},
		"rows of another stream alone": {[]reading{{0, []leases.Lease{{Shard: "s", Stream: "old", Owner: "a"}}}}, true},
		"every lease was given up":     {[]reading{{0, []leases.Lease{row("s", "", 5), row(arn, "", 7)}}}, true},
		"an owner, read once":          {[]reading{{0, []leases.Lease{row("s", "a", 5)}}}, false},
		"silent for its term": {[]reading{{0, []leases.Lease{row("s", "a", 5)}}, {15 * time.Second, []leases.Lease{row("s", "a", 5)}}},
			false},
		"silent for longer": {[]reading{{0, []leases.Lease{row("s", "a", 5)}}, {16 * time.Second, []leases.Lease{row("s", "a", 5)}}},
			true},
		"written meanwhile": {[]reading{{0, []leases.Lease{row("s", "a", 5)}}, {5 * time.Second, []leases.Lease{row("s", "a", 6)}}},
			false},
		"only the list is renewed": {[]reading{{0, []leases.Lease{row(arn, "a", 5)}}, {30 * time.Second, []leases.Lease{row(arn, "a", 6)}}},
			false},
		"written, and then no more": {[]reading{{0, []leases.Lease{row("s", "a", 5)}}, {5 * time.Second, []leases.Lease{row("s", "a", 6)}},
			{25 * time.Second, []leases.Lease{row("s", "a", 6)}}}, true},
		"a process started meanwhile": {[]reading{{0, []leases.Lease{row("s", "", 5)}}, {5 * time.Second, []leases.Lease{row("s", "a", 6)}}},
			false},
		"a shard that ended keeps the name of its last owner": {[]reading{{0, []leases.Lease{
			{Shard: "s", Stream: arn, Owner: "a", Term: time.Minute, Checkpoint: leases.ShardEnd}}}}, true},
		"an owner with a longer term": {[]reading{{0, []leases.Lease{{Shard: "s", Stream: arn, Owner: "a", Term: time.Minute}}},
			{30 * time.Second, []leases.Lease{{Shard: "s", Stream: arn, Owner: "a", Term: time.Minute}}}}, false},
	} {
		w, begun := &Watch{}, time.Now()
		for _, r := range c.readings {
			w.Observe(r.rows, arn, begun.Add(r.at))
		}
		if got := w.Unfollowed(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
