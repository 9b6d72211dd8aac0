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
	testTerm = 10 * time.Second
	takeMax  = 16
)

// planFrom reads "id owner" words, "id -" for a free one, "id=" for a finished shard,
// "id<parent", "? worker" for a seeker, with "!" behind an owner or seeker that has written
// nothing for a term.
func planFrom(worker, rows string, change ...func(*Input)) Plan {
	now := time.Unix(1000, 0)
	in := Input{
		Worker: worker, Now: now, Term: testTerm, TakeMax: 100,
		Leases: map[string]Lease{}, Seekers: map[string]Lease{}, Changed: map[string]time.Time{}, Busy: map[string]bool{},
	}
	fields := strings.Fields(rows)
	for i := 0; i < len(fields); i += 2 {
		l := Lease{Shard: fields[i], Checkpoint: TrimHorizon}
		owner, expired := strings.CutSuffix(fields[i+1], "!")
		if l.Owner = owner; owner == "-" {
			l.Owner = ""
		}
		if id, parent, ok := strings.Cut(l.Shard, "<"); ok {
			l.Shard, l.Parent = id, parent
		}
		if id, ok := strings.CutSuffix(l.Shard, "="); ok {
			l.Shard, l.Checkpoint = id, ShardEnd
		}
		if l.Shard == "?" {
			l.Shard = SeekerKey("stream", owner)
			in.Seekers[owner] = l
		} else {
			in.Leases[l.Shard] = l
		}
		in.Changed[l.Shard] = now
		if expired {
			in.Changed[l.Shard] = now.Add(-testTerm)
		}
		if l.Owner == worker && fields[i] != "?" {
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
		name, worker, rows     string
		take, release, waiting string
		seek                   bool
		change                 func(*Input)
		vacantThatAreOthers    int
	}{
		{name: "no shards", worker: "a"},
		{name: "alone, it takes everything", worker: "a", rows: "1 - 2 - 3 -", take: "1 2 3"},
		{name: "at most so many at a time", worker: "a", rows: "1 - 2 - 3 -", take: "1 2", change: func(in *Input) { in.TakeMax = 2 },
			vacantThatAreOthers: 1},
		{name: "a shard of a live owner is left alone", worker: "a", rows: "1 a 2 b"},
		{name: "an expired lease is taken", worker: "a", rows: "1 a 2 b!", take: "2"},
		{name: "what nobody has is divided", worker: "a", rows: "1 a 2 b 3 - 4 -", take: "3", vacantThatAreOthers: 1},
		{name: "the other half is the other's", worker: "b", rows: "1 a 2 b 3 - 4 -", take: "4", vacantThatAreOthers: 1},
		{name: "a newcomer seeks its share", worker: "c", rows: "1 a 2 a 3 a 4 b 5 b 6 b", seek: true},
		{name: "and is given one at first", worker: "a", rows: "1 a 2 a 3 a 4 b 5 b 6 b ? c", release: "3"},
		{name: "by one owner", worker: "b", rows: "1 a 2 a 3 a 4 b 5 b 6 b ? c"},
		{name: "a seeker is given as many as it has", worker: "a", rows: "1 a 2 a 3 a 4 a 5 a 6 a 7 a 8 a 9 b 10 b ? b", release: "6 7"},
		{name: "no more than it needs", worker: "a", rows: "1 a 2 a 3 a 4 a 5 a 6 b 7 b 8 b ? b", release: "5"},
		{name: "what was released before counts", worker: "a", rows: "1 a 2 a 3 a 4 a 5 - ? b", vacantThatAreOthers: 1},
		{name: "two seekers are given one each", worker: "a", rows: "1 a 2 a 3 a 4 a 5 a 6 a ? b ? c", release: "3 4"},
		{name: "a seeker that is gone is given none", worker: "a", rows: "1 a 2 a 3 a 4 a ? b!"},
		{name: "a worker that does not seek is given none", worker: "a", rows: "1 a 2 a 3 a 4 a 5 b"},
		{name: "a seeker that has its share is given none", worker: "a", rows: "1 a 2 a 3 b ? b"},
		{name: "nor does one that has as many as others seek", worker: "c", rows: "1 a 2 a 3 b 4 b 5 c ? b"},
		{name: "one more than another is balance", worker: "b", rows: "1 a 2 a 3 b"},
		{name: "two more are not", worker: "b", rows: "1 a 2 a 3 a 4 b", seek: true},
		{name: "the odd ones stay with who has them", worker: "c", rows: "1 a 2 a 3 b 4 b 5 c"},
		{name: "vacant ones go before others' surplus", worker: "b", rows: "1 a 2 a 3 a 4 -", take: "4", seek: true},
		{name: "and are enough where they are enough", worker: "b", rows: "1 a 2 a 3 - 4 -", take: "3 4"},
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
		{name: "not for ever", worker: "a", rows: "1= a! 2 a 3 b 4 b 5 b", seek: true},
		{name: "and what is still to come is not sought", worker: "b", rows: "1 a 2= a 3= a 4 b"},
		{name: "nor released", worker: "a", rows: "1 a 2= a 3= a ? b"},
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
		{name: "where he had too much, another seeks it", worker: "b", rows: "1= a 2<1 - 3 a 4 a 5 a", seek: true, vacantThatAreOthers: 1},
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
			if got := shardsOf(plan.Release); got != test.release {
				t.Errorf("releases %q, want %q", got, test.release)
			}
			if plan.Seek != test.seek {
				t.Errorf("seeks: %v, want %v", plan.Seek, test.seek)
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
	seekers map[string]Lease
	changed map[string]time.Time
	now     time.Time
	moves   int
}

func (c *crowd) plan(worker string, rows, seekers map[string]Lease, changed map[string]time.Time) Plan {
	busy := map[string]bool{}
	for id, l := range rows {
		busy[id] = l.Owner == worker
	}
	return Divide(Input{
		Worker: worker, Now: c.now, Term: testTerm, Leases: rows, Seekers: seekers, Changed: changed, Busy: busy, TakeMax: takeMax,
	})
}

// round lets all workers plan on the same picture and act one after another, as
// the conditional writes would let them; then owners and seekers renew.
func (c *crowd) round(t *rapid.T, workers []string) {
	c.now = c.now.Add(time.Second)
	seen, seekers, dated := maps.Clone(c.rows), maps.Clone(c.seekers), maps.Clone(c.changed)
	given, most := 0, 0
	for _, l := range seekers {
		held := 0
		for _, row := range seen {
			if row.Owner == l.Owner {
				held++
			}
		}
		most += max(1, held)
	}
	for _, w := range workers {
		plan := c.plan(w, seen, seekers, dated)
		if len(plan.Take) > takeMax {
			t.Fatalf("%s takes %d at a time", w, len(plan.Take))
		}
		for _, l := range plan.Take {
			if row := c.rows[l.Shard]; l.holds(row) {
				if row.Owner != "" && c.now.Sub(c.changed[l.Shard]) < testTerm {
					t.Fatalf("%s takes %s, which %s has", w, l.Shard, row.Owner)
				}
				c.rows[l.Shard] = row.claimedBy(Worker{Name: w})
				c.changed[l.Shard] = c.now
				c.moves++
			}
		}
		for _, l := range plan.Release {
			row := c.rows[l.Shard]
			c.rows[l.Shard], c.changed[l.Shard] = row.released(row), c.now
			given++
		}
		delete(c.seekers, w)
		if key := SeekerKey("stream", w); plan.Seek {
			c.seekers[w], c.changed[key] = Lease{Shard: key, Stream: "stream", Owner: w}, c.now
		}
	}
	if given > most {
		t.Fatalf("%d shards are released for %d seekers, at most %d should be", given, len(seekers), most)
	}
	for id, row := range c.rows {
		if slices.Contains(workers, row.Owner) && !row.Finished() { // not dead, or free
			c.rows[id], c.changed[id] = row.renewed(row), c.now
		}
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
	c := &crowd{rows: map[string]Lease{}, seekers: map[string]Lease{}, changed: map[string]time.Time{}, now: time.Unix(1000, 0)}
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
