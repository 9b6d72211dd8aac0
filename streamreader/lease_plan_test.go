package streamreader

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const testTerm = 10 * time.Second

// planFrom reads "id owner" words, "id owner>next", "id -" for nobody's, with
// "!" behind an owner that has written nothing for a term.
func planFrom(worker, rows string, change ...func(*leaseInput)) leasePlan {
	now := time.Unix(1000, 0)
	in := leaseInput{
		worker: worker, now: now, term: testTerm, takeMax: 100, askMax: 100,
		leases: map[string]Lease{}, changed: map[string]time.Time{}, busy: map[string]bool{},
	}
	fields := strings.Fields(rows)
	for i := 0; i < len(fields); i += 2 {
		l := Lease{Shard: fields[i], Checkpoint: TrimHorizon}
		owner, expired := strings.CutSuffix(fields[i+1], "!")
		l.Owner, l.Next, _ = strings.Cut(owner, ">")
		if l.Owner == "-" {
			l.Owner = ""
		}
		if id, parent, ok := strings.Cut(l.Shard, "<"); ok {
			l.Shard, l.Parent = id, parent
		}
		if id, ok := strings.CutSuffix(l.Shard, "="); ok {
			l.Shard, l.Checkpoint = id, ShardEnd
		}
		in.leases[l.Shard] = l
		in.changed[l.Shard] = now
		if expired {
			in.changed[l.Shard] = now.Add(-testTerm)
		}
		if l.Owner == worker {
			in.busy[l.Shard] = true
		}
	}
	for _, c := range change {
		c(&in)
	}
	return planLeases(in)
}

func shardsOf(leases []Lease) string {
	var ids []string
	for _, l := range leases {
		ids = append(ids, l.Shard)
	}
	return strings.Join(ids, " ")
}

func TestPlanLeases(t *testing.T) {
	for _, test := range []struct {
		name, worker, rows  string
		take, ask, waiting  string
		change              func(*leaseInput)
		vacantThatAreOthers int
	}{
		{name: "no shards", worker: "a"},
		{name: "alone, it takes everything", worker: "a", rows: "1 - 2 - 3 -", take: "1 2 3"},
		{name: "at most so many at a time", worker: "a", rows: "1 - 2 - 3 -", take: "1 2", change: func(in *leaseInput) { in.takeMax = 2 }, vacantThatAreOthers: 1},
		{name: "a shard of a live owner is left alone", worker: "a", rows: "1 a 2 b"},
		{name: "an expired lease is taken", worker: "a", rows: "1 a 2 b!", take: "2"},
		{name: "also one that was being handed over", worker: "a", rows: "1 a 2 b>c!", take: "2"},
		{name: "what nobody has is divided", worker: "a", rows: "1 a 2 b 3 - 4 -", take: "3", vacantThatAreOthers: 1},
		{name: "the other half is the other's", worker: "b", rows: "1 a 2 b 3 - 4 -", take: "4", vacantThatAreOthers: 1},
		{name: "a newcomer asks for its share", worker: "c", rows: "1 a 2 a 3 a 4 b 5 b 6 b", ask: "3 6"},
		{name: "no more than allowed", worker: "c", rows: "1 a 2 a 3 a 4 b 5 b 6 b", ask: "3", change: func(in *leaseInput) { in.askMax = 1 }},
		{name: "what it has asked for counts", worker: "c", rows: "1 a 2 a 3 a>c 4 b 5 b 6 b>c"},
		{name: "what others have asked for counts as theirs", worker: "d", rows: "1 a 2 a 3 a>c 4 b 5 b 6 b>c", change: nil, ask: ""},
		{name: "one more than another is balance", worker: "b", rows: "1 a 2 a 3 b"},
		{name: "two more are not", worker: "b", rows: "1 a 2 a 3 a 4 b", ask: "3"},
		{name: "the odd ones stay with who has them", worker: "c", rows: "1 a 2 a 3 b 4 b 5 c"},
		{name: "vacant ones go before others' surplus", worker: "b", rows: "1 a 2 a 3 a 4 -", take: "4", ask: "3"},
		{name: "a child waits for its parent", worker: "a", rows: "1 a 2<1 -", waiting: "2"},
		{name: "and is taken when that is finished", worker: "a", rows: "1= a 2<1 -", take: "2"},
		{name: "a parent's row that is missing proves nothing", worker: "a", rows: "2<1 -", waiting: "2"},
		{name: "unless the stream had dropped the parent at first sight", worker: "a", rows: "2<1 -", take: "2", change: func(in *leaseInput) {
			l := in.leases["2"]
			l.Orphan = true
			in.leases["2"] = l
		}},
		{name: "or the child was begun", worker: "a", rows: "2<1 -", take: "2", change: func(in *leaseInput) {
			l := in.leases["2"]
			l.Checkpoint = "77"
			in.leases["2"] = l
		}},
		{name: "finished shards are no load", worker: "b", rows: "1= a 2= a 3= a 4 a 5 b"},
		{name: "its own from before, at once", worker: "a", rows: "1 a 2 b", take: "1", change: func(in *leaseInput) { in.busy = map[string]bool{} }},
		{name: "what it has not let go yet is not taken again", worker: "a", rows: "1 -", change: func(in *leaseInput) { in.busy["1"] = true }},
		{name: "who lists is alive without a shard", worker: "a", rows: "1 - 2 -", take: "1", vacantThatAreOthers: 1, change: func(in *leaseInput) {
			in.own = Lease{Shard: "s", Stream: "s", Owner: "b", Checkpoint: Latest}
			in.changed["s"] = in.now
		}},
		{name: "what is left lying is taken by anyone", worker: "a", rows: "1 a 2 b 3 - 4 -", take: "3 4", change: func(in *leaseInput) {
			in.changed["4"] = in.now.Add(-testTerm)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := test.change
			if change == nil {
				change = func(*leaseInput) {}
			}
			plan := planFrom(test.worker, test.rows, change)
			if got := shardsOf(plan.take); got != test.take {
				t.Errorf("takes %q, want %q", got, test.take)
			}
			if got := shardsOf(plan.ask); got != test.ask {
				t.Errorf("asks for %q, want %q", got, test.ask)
			}
			if got := strings.Join(plan.waiting, " "); got != test.waiting {
				t.Errorf("waiting %q, want %q", got, test.waiting)
			}
			if want := len(plan.take) + test.vacantThatAreOthers; plan.vacant != want {
				t.Errorf("%d vacant, want %d", plan.vacant, want)
			}
		})
	}
}

// crowd plays workers over rows that each write changes at once, and that each
// worker sees as of its last look.
type crowd struct {
	rows    map[string]Lease
	changed map[string]time.Time
	now     time.Time
	moves   int
}

func (c *crowd) plan(worker string, rows map[string]Lease, changed map[string]time.Time) leasePlan {
	busy := map[string]bool{}
	for id, l := range rows {
		busy[id] = l.Owner == worker
	}
	return planLeases(leaseInput{
		worker: worker, now: c.now, term: testTerm, leases: rows, changed: changed, busy: busy, takeMax: takeFirst, askMax: askMost,
	})
}

// round lets all workers plan on the same picture and act one after another, as
// the conditional writes would let them; then owners hand over and renew.
func (c *crowd) round(t *rapid.T, workers []string) {
	c.now = c.now.Add(time.Second)
	seen, dated := maps.Clone(c.rows), maps.Clone(c.changed)
	for _, w := range workers {
		plan := c.plan(w, seen, dated)
		if len(plan.take) > takeFirst || len(plan.ask) > askMost {
			t.Fatalf("%s takes %d and asks for %d at a time", w, len(plan.take), len(plan.ask))
		}
		for _, l := range plan.take {
			if row := c.rows[l.Shard]; l.holds(row) && row.Next == l.Next {
				if row.Owner != "" && c.now.Sub(c.changed[l.Shard]) < testTerm {
					t.Fatalf("%s takes %s, which %s has", w, l.Shard, row.Owner)
				}
				c.rows[l.Shard] = row.claimedBy(w)
				c.changed[l.Shard] = c.now
				c.moves++
			}
		}
		for _, l := range plan.ask {
			if row := c.rows[l.Shard]; l.mayBeAskedFor(row) {
				row.Next = w
				c.rows[l.Shard] = row
			}
		}
	}
	for id, row := range c.rows {
		if !slices.Contains(workers, row.Owner) {
			continue // dead, or nobody's
		}
		if row.Next != "" {
			c.moves++
			row = row.released(row)
		} else {
			row = row.renewed(row)
		}
		c.rows[id], c.changed[id] = row, c.now
	}
}

func (c *crowd) loads(workers []string) (least, most, vacant int) {
	count := map[string]int{}
	for _, row := range c.rows {
		count[row.Owner]++
	}
	least = len(c.rows)
	for _, w := range workers {
		least, most = min(least, count[w]), max(most, count[w])
		delete(count, w)
	}
	for _, n := range count {
		vacant += n
	}
	return least, most, vacant
}

// Workers come and die; after each change they come to balance within a bound,
// never take what a live owner has, and then stay as they are.
func TestWorkersComeToBalanceAndStayThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &crowd{rows: map[string]Lease{}, changed: map[string]time.Time{}, now: time.Unix(1000, 0)}
		for i := range rapid.IntRange(0, 120).Draw(t, "shards") {
			id := fmt.Sprintf("shard%03d", i)
			c.rows[id], c.changed[id] = Lease{Shard: id, Checkpoint: TrimHorizon}, c.now
		}
		var workers []string
		for change := range rapid.IntRange(1, 4).Draw(t, "changes") {
			if len(workers) > 1 && rapid.Bool().Draw(t, "dies") {
				i := rapid.IntRange(0, len(workers)-1).Draw(t, "who")
				workers = slices.Delete(workers, i, i+1)
			} else {
				for i := range rapid.IntRange(1, 5).Draw(t, "come") {
					workers = append(workers, fmt.Sprintf("worker%d-%d", change, i))
				}
			}
			workers = rapid.Permutation(workers).Draw(t, "order")
			rounds := 0
			for {
				least, most, vacant := c.loads(workers)
				if vacant == 0 && most-least <= 1 {
					break
				}
				if rounds++; rounds > 40 {
					t.Fatalf("after %d rounds loads from %d to %d, %d vacant, workers %v", rounds, least, most, vacant, workers)
				}
				c.round(t, workers)
			}
			before := c.moves
			for range 15 {
				c.round(t, workers)
			}
			if c.moves != before {
				t.Fatalf("%d moves in balance", c.moves-before)
			}
		}
	})
}
