package streamreader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
)

func TestThreeReadersShareEightShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 8})
		stop := c.keepWriting(50*time.Millisecond, 40)
		c.joinAll("a", "b", "c")
		time.Sleep(15 * time.Second)
		balanced := c.owners()
		if got := loadsOf(balanced); got != "2 3 3" {
			t.Errorf("after 15 seconds loads %s: %v", got, balanced)
		}
		time.Sleep(5 * time.Minute)
		for owner, shards := range c.owners() {
			if !slices.Equal(shards, balanced[owner]) {
				t.Errorf("%s has %v five minutes later, and had %v", owner, shards, balanced[owner])
			}
		}
		stop()
		time.Sleep(5 * time.Second)
		lists := 0
		for _, m := range c.members {
			if m.line.listed() > 0 {
				lists++
			}
			if st := m.reader.Stats(); st.Open < 2 || !st.CaughtUp {
				t.Errorf("%s: %+v", m.name, st)
			}
		}
		if lists != 1 {
			t.Errorf("%d workers list the shards, want one", lists)
		}
		c.dismiss()
		c.judge(false)
	})
}

func TestTheShardsOfADeadReaderAreTakenWithinTwoTerms(t *testing.T) {
	for i := range worldsize.Of(12, 3) {
		// a lists. The others look rarely: whenever that was, it must not matter.
		victim, when := []string{"a", "b", "c"}[i%3], 20*time.Second+time.Duration(i/3)*7*time.Second
		t.Run(fmt.Sprintf("%s after %s", victim, when), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{Shards: 8})
				stop := c.keepWriting(50*time.Millisecond, 40)
				c.joinAll("a", "b", "c")
				time.Sleep(when)
				dead := c.members[victim]
				c.kill(dead)
				time.Sleep(2 * testTerm)
				if owners := c.owners(); len(owners) != 2 || loadsOf(owners) != "4 4" {
					t.Errorf("two terms after the death of %s: %v", victim, owners)
				}
				stop()
				time.Sleep(10 * time.Second)
				c.dismiss()
				<-dead.ended
				c.judge(true)
			})
		})
	}
}

// All workers watch the lister, so that its shards wait no longer than others'.
func TestTheShardsOfADeadListerAreTakenBeforeTwoTerms(t *testing.T) {
	for i := range 8 { // renewals are about eight such steps apart
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t, dynamosim.Options{Shards: 8})
			c.joinAll("a", "b", "c")
			time.Sleep(40*time.Second + time.Duration(i)*500*time.Millisecond)
			dead := c.members[c.rows()[c.arn].Owner]
			c.kill(dead)
			began := time.Now()
			for len(c.owners()[dead.name]) > 0 && time.Since(began) < 3*testTerm {
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(began); took > testTerm*165/100 {
				t.Errorf("step %d: the shards of %s, which listed, were taken after %s", i, dead.name, took)
			}
			<-dead.ended
			c.dismiss()
		})
	}
}

func TestAReaderThatWasFrozenNeitherProcessesNorCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 4})
		stop := c.keepWriting(50*time.Millisecond, 40)
		frozen := c.join("frozen")
		time.Sleep(5 * time.Second)
		c.join("other")
		time.Sleep(20 * time.Second)
		frozen.line.mu.Lock()
		frozen.line.onSave = true
		frozen.line.mu.Unlock()
		time.Sleep(3 * testTerm)
		if owners := c.owners(); len(owners["other"]) != 4 {
			t.Errorf("while it is frozen: %v", owners)
		}
		stop()
		time.Sleep(5 * time.Second)
		before := c.rows()
		c.work.mu.Lock()
		done := c.work.byWho["frozen"]
		c.work.mu.Unlock()
		frozen.line.thaw()
		time.Sleep(time.Second)
		c.work.mu.Lock()
		if now := c.work.byWho["frozen"]; now != done {
			t.Errorf("it processed %d records when it woke", now-done)
		}
		c.work.mu.Unlock()
		for shard, l := range c.rows() {
			if !l.OfSeeker() && l.Checkpoint != before[shard].Checkpoint {
				t.Errorf("checkpoint of %s from %s to %s", shard, before[shard].Checkpoint, l.Checkpoint)
			}
		}
		time.Sleep(30 * time.Second)
		if owners := c.owners(); loadsOf(owners) != "2 2" {
			t.Errorf("later: %v", owners)
		}
		c.dismiss()
		c.work.by2 = nil // the batch that was frozen, and its repetition
		c.judge(true)
	})
}

func (c *crew) rows() map[string]Lease {
	c.t.Helper()
	rows, err := NewLeaseTable(c.sim, "leases").Load(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	byShard := map[string]Lease{}
	for _, l := range rows {
		byShard[l.Shard] = l
	}
	return byShard
}

func TestAReaderThatLeavesHandsOverWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 8})
		stop := c.keepWriting(20*time.Millisecond, 40)
		c.joinAll("a", "b", "c")
		time.Sleep(20*time.Second + 300*time.Millisecond)
		c.leave(c.members["b"])
		time.Sleep(time.Second)
		if owners := c.owners(); len(owners) != 2 || loadsOf(owners) != "4 4" {
			t.Errorf("a second later: %v", owners)
		}
		time.Sleep(10 * time.Second)
		c.finish(stop, false)
		if free := c.owners(); len(free[""]) != 8 {
			t.Errorf("when all have left: %v", free)
		}
	})
}

// Also where many workers hear of it, of which none has anything to do.
func TestALargeIdleFleetHandsOverWithinASecond(t *testing.T) {
	for i := range worldsize.Of(4, 1) {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t, dynamosim.Options{Shards: 60})
			for i := range 50 {
				c.join(fmt.Sprintf("worker%02d", i))
			}
			time.Sleep(time.Minute + time.Duration(i)*237*time.Millisecond)
			leaves := c.members["worker07"]
			shards := c.owners()[leaves.name]
			c.leave(leaves)
			time.Sleep(time.Second)
			rows := c.rows()
			for _, id := range shards {
				if rows[id].Owner == "" {
					t.Errorf("step %d: a second later nobody has %s", i, id)
				}
			}
			c.dismiss()
		})
	}
}

func TestARollingDeployLosesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 12})
		stop := c.keepWriting(20*time.Millisecond, 60)
		for i := range 4 {
			c.join(fmt.Sprintf("old%d", i))
		}
		time.Sleep(30 * time.Second)
		c.work.mu.Lock()
		c.work.slowest = 0
		c.work.mu.Unlock()
		for i := range 4 {
			c.join(fmt.Sprintf("new%d", i))
			time.Sleep(15 * time.Second)
			c.leave(c.members[fmt.Sprintf("old%d", i)])
			time.Sleep(5 * time.Second)
		}
		time.Sleep(10 * time.Second)
		if owners := c.owners(); len(owners) != 4 || loadsOf(owners) != "3 3 3 3" {
			t.Errorf("after the deploy: %v", owners)
		}
		c.finish(stop, false)
		if c.work.slowest > 4*time.Second {
			t.Errorf("a record waited for %s", c.work.slowest)
		}
	})
}

// Shards split and roll over while workers come, leave, die and freeze.
func TestNothingIsLostWhileWorkersComeAndGo(t *testing.T) {
	for seed := range uint64(setting(t, "DYNAMILL_SEEDS", worldsize.Of(6, 2))) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { troubledCrew(t, seed) })
		})
	}
}

func troubledCrew(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 11))
	var mu sync.Mutex
	chances := rand.New(rand.NewPCG(seed, 13))
	weather := func(op string, _ any) error { // calls take their time, and fail before or after they took effect
		mu.Lock()
		wait, fails := chances.IntN(60), chances.IntN(100) < 3
		mu.Unlock()
		switch op {
		case "CreateTable", "DescribeTable", "Scan", "PutItem":
			return nil
		}
		time.Sleep(time.Duration(wait) * time.Millisecond)
		if fails {
			return &streams.InternalServerError{}
		}
		return nil
	}
	c := newCrew(t, dynamosim.Options{Seed: seed, Shards: 3, Before: weather, After: weather})
	stop := c.keepWriting(100*time.Millisecond, 25)
	var dead []*member
	var frozen *member
	for i := range 25 {
		var names []string
		for name := range c.members {
			if frozen == nil || name != frozen.name {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		switch n := random.IntN(10); {
		case len(names) == 0 || n < 3 && len(names) < 5:
			c.join(fmt.Sprintf("worker%d", i))
		case n < 5:
			c.leave(c.members[names[random.IntN(len(names))]])
		case n < 6:
			m := c.members[names[random.IntN(len(names))]]
			c.kill(m)
			dead = append(dead, m)
		case n < 8 && frozen == nil:
			frozen = c.members[names[random.IntN(len(names))]]
			frozen.line.freeze()
		case frozen != nil:
			frozen.line.thaw()
			frozen = nil
		}
		open, err := c.sim.OpenShards(simTable)
		if err != nil {
			t.Fatal(err)
		}
		if shard := open[random.IntN(len(open))]; random.IntN(3) == 0 && len(open) < 12 {
			_, err = c.sim.SplitShard(simTable, shard)
		} else if random.IntN(3) == 0 {
			_, err = c.sim.RollOver(simTable, shard)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(20000)) * time.Millisecond)
	}
	if frozen != nil {
		frozen.line.thaw()
	}
	stop()
	c.dismiss()
	if err := c.prepare("last").reader.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	delete(c.members, "last")
	for _, m := range dead {
		<-m.ended
	}
	c.work.by2 = nil // a frozen batch may be overtaken
	c.judge(true)
}

// Rows that were read a while ago, with what this worker has learnt since of
// some, say too little of how much each worker has: by them it would release shards
// that another worker does not need.
func TestAWorkerReleasesOnlyByRowsThatItHasJustRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cp := newLeases()
		create := func(shard, owner string) {
			_, err := cp.Create(t.Context(), Lease{
				Shard: shard, Stream: testARN, Owner: owner, Run: "1", Term: testTerm, Counter: 1, Checkpoint: TrimHorizon,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		f := newFollower(newTestReader(t, newFakeStream(), cp, &collector{}, func(cfg *Config) { cfg.WorkerID, cfg.RunID = "me", "1" }), false)
		f.decoder.Label = "known"
		released := map[string]bool{}
		for i := range 8 {
			id := fmt.Sprint("shard", i)
			create(id, "me")
			f.running[id] = &shardread.Reader{Release: func() { released[id] = true }}
		}
		create(leases.SeekerKey(testARN, "other"), "other")
		for step, test := range []struct {
			look bool
			want int
		}{{true, 1}, {false, 1}, {true, 2}, {false, 2}, {true, 4}} {
			for id := range released { // the other one has claimed it by now
				row := leaseOf(t, cp, id)
				if row.Owner == "me" {
					delete(f.running, id)
					row, err := cp.Claim(t.Context(), row, Worker{Name: "other", Run: "1", Term: testTerm})
					if err != nil {
						t.Fatal(err)
					}
					f.fleet.Note(row)
				}
			}
			if test.look {
				rows, err := cp.Load(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				f.takeOverRows(rows, 0)
			}
			f.balance(t.Context(), t.Context())
			if len(released) != test.want {
				t.Errorf("step %d: %d shards released, want %d", step, len(released), test.want)
			}
		}
	})
}
