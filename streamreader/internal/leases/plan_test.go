package leases

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	testTerm        = 10 * time.Second
	takeMax, askMax = 16, 16
)

// planFrom reads "id owner" words, "id owner>next", "id -" for a free one, "id=" for
// a finished shard, "id<parent", with "!" behind an owner that has written nothing
// for a term.
func planFrom(worker, rows string, change ...func(*Input)) Plan {
	now := time.Unix(1000, 0)
	in := Input{
		Worker: worker, Now: now, Term: testTerm, TakeMax: 100, AskMax: 100,
		Leases: map[string]Lease{}, Changed: map[string]time.Time{}, Busy: map[string]bool{},
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
		in.Leases[l.Shard] = l
		in.Changed[l.Shard] = now
		if expired {
			in.Changed[l.Shard] = now.Add(-testTerm)
		}
		if l.Owner == worker {
			in.Busy[l.Shard] = true
		}
	}
	for _, c := range change {
		c(&in)
	}
	return Divide(in)
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
		change              func(*Input)
		vacantThatAreOthers int
	}{
		{name: "no shards", worker: "a"},
		{name: "alone, it takes everything", worker: "a", rows: "1 - 2 - 3 -", take: "1 2 3"},
		{name: "at most so many at a time", worker: "a", rows: "1 - 2 - 3 -", take: "1 2", change: func(in *Input) { in.TakeMax = 2 }, vacantThatAreOthers: 1},
		{name: "a shard of a live owner is left alone", worker: "a", rows: "1 a 2 b"},
		{name: "an expired lease is taken", worker: "a", rows: "1 a 2 b!", take: "2"},
		{name: "also one that was being handed over", worker: "a", rows: "1 a 2 b>c!", take: "2"},
		{name: "what nobody has is divided", worker: "a", rows: "1 a 2 b 3 - 4 -", take: "3", vacantThatAreOthers: 1},
		{name: "the other half is the other's", worker: "b", rows: "1 a 2 b 3 - 4 -", take: "4", vacantThatAreOthers: 1},
		{name: "a newcomer asks for its share", worker: "c", rows: "1 a 2 a 3 a 4 b 5 b 6 b", ask: "3 6"},
		{name: "no more than allowed", worker: "c", rows: "1 a 2 a 3 a 4 b 5 b 6 b", ask: "3", change: func(in *Input) { in.AskMax = 1 }},
		{name: "what it has asked for counts", worker: "c", rows: "1 a 2 a 3 a>c 4 b 5 b 6 b>c"},
		{name: "what others have asked for counts as theirs", worker: "d", rows: "1 a 2 a 3 a>c 4 b 5 b 6 b>c", change: nil, ask: ""},
		{name: "one more than another is balance", worker: "b", rows: "1 a 2 a 3 b"},
		{name: "two more are not", worker: "b", rows: "1 a 2 a 3 a 4 b", ask: "3"},
		{name: "the odd ones stay with who has them", worker: "c", rows: "1 a 2 a 3 b 4 b 5 c"},
		{name: "vacant ones go before others' surplus", worker: "b", rows: "1 a 2 a 3 a 4 -", take: "4", ask: "3"},
		{name: "a child waits for its parent", worker: "a", rows: "1 a 2<1 -", waiting: "2"},
		{name: "and is taken when that is finished", worker: "a", rows: "1= a 2<1 -", take: "2"},
		{name: "a parent's row that is missing proves nothing", worker: "a", rows: "2<1 -", waiting: "2"},
		{name: "unless the stream had dropped the parent at first sight", worker: "a", rows: "2<1 -", take: "2", change: func(in *Input) {
			l := in.Leases["2"]
			l.Orphan = true
			in.Leases["2"] = l
		}},
		{name: "or the child was begun", worker: "a", rows: "2<1 -", take: "2", change: func(in *Input) {
			l := in.Leases["2"]
			l.Checkpoint = "77"
			in.Leases["2"] = l
		}},
		{name: "finished shards are no load", worker: "b", rows: "1= a! 2= a! 3= a! 4 a 5 b"},
		{name: "who has just ended a shard keeps its place", worker: "a", rows: "1= a 2 a 3 b 4 b 5 b"},
		{name: "not for ever", worker: "a", rows: "1= a! 2 a 3 b 4 b 5 b", ask: "5"},
		{name: "and what is still to come is not asked for", worker: "b", rows: "1 a 2= a 3= a 4 b"},
		{name: "a child goes to who had its parent", worker: "a", rows: "1= a 2<1 - 3 b", take: "2"},
		{name: "not to another", worker: "b", rows: "1= a 2<1 - 3 b", vacantThatAreOthers: 1},
		{name: "also where he has nothing else", worker: "b", rows: "1= a 2<1 - 3 -", take: "3", vacantThatAreOthers: 1},
		{name: "unless he does not come for it", worker: "b", rows: "1= a! 2<1 - 3 b", take: "2"},
		{name: "or gave the parent up when it ended", worker: "b", rows: "1= - 2<1 - 3 b", take: "2"},
		{name: "or had it and gave it up", worker: "b", rows: "1= a 2<1 - 3 b", take: "2", change: func(in *Input) {
			l := in.Leases["2"]
			l.Counter = 1
			in.Leases["2"] = l
		}},
		{name: "a second child is divided", worker: "b", rows: "1= a 2<1 - 3<1 - 4 a 5 b 6 a", take: "3", vacantThatAreOthers: 1},
		{name: "where he had too much, it is asked of him later", worker: "b", rows: "1= a 2<1 - 3 a 4 a 5 a", take: "", ask: "4 5", vacantThatAreOthers: 1},
		{name: "its own from before, at once", worker: "a", rows: "1 a 2 b", take: "1", change: func(in *Input) { in.Busy = map[string]bool{} }},
		{name: "what it has not let go yet is not taken again", worker: "a", rows: "1 -", change: func(in *Input) { in.Busy["1"] = true }},
		{name: "who lists is alive without a shard", worker: "a", rows: "1 - 2 -", take: "1", vacantThatAreOthers: 1, change: func(in *Input) {
			in.Own = Lease{Shard: "s", Stream: "s", Owner: "b", Checkpoint: Latest}
			in.Changed["s"] = in.Now
		}},
		{name: "what is left lying is taken by anyone", worker: "a", rows: "1 a 2 b 3 - 4 -", take: "3 4", change: func(in *Input) {
			in.Changed["4"] = in.Now.Add(-testTerm)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := test.change
			if change == nil {
				change = func(*Input) {}
			}
			plan := planFrom(test.worker, test.rows, change)
			if got := shardsOf(plan.Take); got != test.take {
				t.Errorf("takes %q, want %q", got, test.take)
			}
			if got := shardsOf(plan.Ask); got != test.ask {
				t.Errorf("asks for %q, want %q", got, test.ask)
			}
			if got := strings.Join(plan.Waiting, " "); got != test.waiting {
				t.Errorf("waiting %q, want %q", got, test.waiting)
			}
			if want := len(plan.Take) + test.vacantThatAreOthers; plan.Vacant != want {
				t.Errorf("%d vacant, want %d", plan.Vacant, want)
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

func (c *crowd) plan(worker string, rows map[string]Lease, changed map[string]time.Time) Plan {
	busy := map[string]bool{}
	for id, l := range rows {
		busy[id] = l.Owner == worker
	}
	return Divide(Input{
		Worker: worker, Now: c.now, Term: testTerm, Leases: rows, Changed: changed, Busy: busy, TakeMax: takeMax, AskMax: askMax,
	})
}

// round lets all workers plan on the same picture and act one after another, as
// the conditional writes would let them; then owners hand over and renew.
func (c *crowd) round(t *rapid.T, workers []string) {
	c.now = c.now.Add(time.Second)
	seen, dated := maps.Clone(c.rows), maps.Clone(c.changed)
	for _, w := range workers {
		plan := c.plan(w, seen, dated)
		if len(plan.Take) > takeMax || len(plan.Ask) > askMax {
			t.Fatalf("%s takes %d and asks for %d at a time", w, len(plan.Take), len(plan.Ask))
		}
		for _, l := range plan.Take {
			if row := c.rows[l.Shard]; l.holds(row) && row.Next == l.Next {
				if row.Owner != "" && c.now.Sub(c.changed[l.Shard]) < testTerm {
					t.Fatalf("%s takes %s, which %s has", w, l.Shard, row.Owner)
				}
				c.rows[l.Shard] = row.claimedBy(Worker{Name: w})
				c.changed[l.Shard] = c.now
				c.moves++
			}
		}
		for _, l := range plan.Ask {
			if row := c.rows[l.Shard]; l.mayBeAskedFor(row) {
				row.Next = w
				c.rows[l.Shard] = row
			}
		}
	}
	for id, row := range c.rows {
		if !slices.Contains(workers, row.Owner) || row.Finished() {
			continue // dead, or free
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
		if !row.Finished() {
			count[row.Owner]++
		}
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

// balance lets workers act until they are in balance, within a bound.
func (c *crowd) balance(t *rapid.T, workers []string) {
	for rounds := 0; ; rounds++ {
		least, most, vacant := c.loads(workers)
		if vacant == 0 && most-least <= 1 {
			return
		}
		if rounds == 40 {
			t.Fatalf("after %d rounds loads from %d to %d, %d vacant, workers %v", rounds, least, most, vacant, workers)
		}
		c.round(t, workers)
	}
}

// newCrowd has so many shards, all without an owner.
func newCrowd(shards int) *crowd {
	c := &crowd{rows: map[string]Lease{}, changed: map[string]time.Time{}, now: time.Unix(1000, 0)}
	for i := range shards {
		id := fmt.Sprintf("shard%03d", i)
		c.rows[id], c.changed[id] = Lease{Shard: id, Checkpoint: TrimHorizon}, c.now
	}
	return c
}

// Workers come and die; after each change they come to balance within a bound,
// never take what a live owner has, and then stay as they are.
func TestWorkersComeToBalanceAndStayThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(rapid.IntRange(0, 120).Draw(t, "shards"))
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
			c.balance(t, workers)
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

// Shards roll over, some at once, and their children are listed a little later:
// every child is begun once, and nothing else moves.
func TestRollingOverMovesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(rapid.IntRange(1, 60).Draw(t, "shards"))
		workers := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "workers")]
		c.balance(t, workers)
		for generation := range 3 {
			before, ended := c.moves, 0
			listed := map[int][]Lease{} // by the round in which they are
			for _, id := range slices.Sorted(maps.Keys(c.rows)) {
				row := c.rows[id]
				if row.Finished() || !rapid.Bool().Draw(t, "ends") {
					continue
				}
				row.Checkpoint = ShardEnd
				c.rows[id], c.changed[id] = row, c.now
				round := rapid.IntRange(0, 1).Draw(t, "listed")
				listed[round] = append(listed[round], Lease{Shard: fmt.Sprintf("%s-%d", id, generation), Parent: id, Checkpoint: TrimHorizon})
				ended++
			}
			for round := range 15 {
				for _, child := range listed[round] {
					c.rows[child.Shard], c.changed[child.Shard] = child, c.now
				}
				c.round(t, workers)
			}
			if c.balance(t, workers); c.moves-before != ended {
				t.Fatalf("%d moves for %d shards that rolled over", c.moves-before, ended)
			}
		}
	})
}
