package streamreader

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

func TestDrainBesideOthersWaitsForTheirShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 6})
		c.join("a")
		c.join("b")
		time.Sleep(20 * time.Second)
		c.work.mu.Lock()
		c.work.took = 3 * time.Second
		c.work.mu.Unlock()
		for i := range 60 {
			c.write(t, fmt.Sprintf("item%d", i%20))
		}
		if err := c.prepare("drains").reader.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		delete(c.members, "drains")
		c.judge(false) // everything is done when Drain returns, by any worker
		c.dismiss()
	})
}

// What a row says was written up to a part of the owner's term ago: the polls
// that were made between that and the start do not tell of what was written since.
func TestDrainCountsNoPollsThatOthersMadeBeforeIt(t *testing.T) {
	for _, owners := range []time.Duration{testTerm, 3 * testTerm} {
		for i := range 25 {
			t.Run(fmt.Sprintf("beside a term of %s, %d", owners, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrew(t, dynamosim.Options{Shards: 1})
					c.join("a", term(owners))
					time.Sleep(70*time.Second + time.Duration(i)*owners/60)
					c.work.mu.Lock()
					c.work.took = 4 * time.Second
					c.work.mu.Unlock()
					c.write(t, "item")
					if err := c.prepare("drains", term(owners)).reader.Drain(t.Context()); err != nil {
						t.Fatal(err)
					}
					delete(c.members, "drains")
					c.judge(false)
					c.dismiss()
				})
			})
		}
	}
}

// What one worker applies may write what another is still to read, and so on.
func TestDrainBesideOthersWaitsForCausedRecords(t *testing.T) {
	const hops = 8
	for name, tt := range map[string]struct {
		shards   int
		others   []string
		took     time.Duration // a batch
		interval time.Duration // between checkpoints
	}{
		"shards for all":               {6, []string{"a", "b"}, 4 * time.Second, 0},
		"none for who drains":          {2, []string{"a", "b"}, 4 * time.Second, 0},
		"shards change hands":          {2, []string{"a"}, 9 * time.Second, 0},
		"what is done is seldom saved": {2, []string{"a", "b"}, 4 * time.Second, time.Minute},
	} {
		for i := range worldsize.Of(20, 6) {
			t.Run(fmt.Sprintf("%s, %d", name, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrew(t, dynamosim.Options{Shards: tt.shards})
					seldom := func(cfg *Config) { cfg.CheckpointInterval = tt.interval }
					for _, name := range tt.others {
						c.join(name, seldom)
					}
					time.Sleep(70*time.Second + time.Duration(i)*testTerm/60)
					last := time.Now()
					c.work.mu.Lock()
					c.work.took = tt.took
					c.work.onDone = func(item string) {
						last = time.Now()
						if left, _ := strconv.Atoi(strings.TrimPrefix(item, "hop")); left > 0 {
							c.write(t, fmt.Sprintf("hop%d", left-1))
						}
					}
					c.work.mu.Unlock()
					c.write(t, fmt.Sprintf("hop%d", hops))
					if err := c.prepare("drains", seldom).reader.Drain(t.Context()); err != nil {
						t.Fatal(err)
					}
					delete(c.members, "drains")
					c.judge(false)
					c.work.mu.Lock()
					made, took := len(c.work.seen)-1, time.Since(last)
					c.work.mu.Unlock()
					if made != hops || took > 2*testTerm+tt.interval {
						t.Errorf("%d of %d hops were made, and it ended %s after the last", made, hops, took)
					}
					c.dismiss()
				})
			})
		}
	}
}

func TestDrainBesideABusyWorkerDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 6})
		c.join("a")
		time.Sleep(10 * time.Second)
		stop := c.keepWriting(50*time.Millisecond, 60)
		ctx, cancel := contextFor(t, time.Minute)
		defer cancel()
		if err := c.prepare("drains").reader.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain returned %v, want the context's cause", err)
		}
		delete(c.members, "drains")
		c.finish(stop, false)
	})
}

func TestDrainTakesShardsOfADeadWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 6})
		m := c.join("dies")
		time.Sleep(10 * time.Second)
		c.kill(m)
		for i := range 30 {
			c.write(t, fmt.Sprintf("item%d", i))
		}
		began := time.Now()
		if err := c.prepare("drains").reader.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		delete(c.members, "drains")
		if took := time.Since(began); took > 2*testTerm {
			t.Errorf("it took %s", took)
		}
		<-m.ended
		c.judge(false)
	})
}

func TestTwoThatDrainBothEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 5})
		for i := range 100 {
			c.write(t, fmt.Sprintf("item%d", i%20))
		}
		ended := make(chan error)
		for _, name := range []string{"a", "b"} {
			m := c.prepare(name)
			go func() { ended <- m.reader.Drain(context.Background()) }()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		c.judge(false)
	})
}

func TestAWorkerThatComesBackUnderItsNameTakesItsLeasesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 4})
		first := c.join("same")
		time.Sleep(10 * time.Second)
		c.kill(first)
		second := c.join("same")
		time.Sleep(time.Second)
		if st := second.reader.Stats(); st.Open != 4 {
			t.Errorf("a second after its return: %+v", st)
		}
		<-first.ended
		c.dismiss()
	})
}

func TestAllWorkersSayThatTheStreamHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 4})
		c.joinAll("a", "b", "c")
		for i := range 40 {
			c.write(t, fmt.Sprintf("item%d", i))
		}
		time.Sleep(20 * time.Second)
		_, err := c.sim.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName: aws.String(simTable), StreamSpecification: &ddb.StreamSpecification{StreamEnabled: aws.Bool(false)},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range c.members {
			if err := <-m.ended; !errors.Is(err, ErrStreamEnded) {
				t.Errorf("%s: %v, want ErrStreamEnded", m.name, err)
			}
		}
		c.judge(false)
	})
}

// The batch in hand ends before its shard is handed over, however long it
// takes, within StopTimeout.
func TestASlowBatchIsFinishedBeforeTheHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 2})
		c.work.took = 20 * time.Second // two terms
		c.join("slow")
		time.Sleep(time.Second)
		for i := range 20 {
			c.write(t, fmt.Sprintf("item%d", i))
		}
		time.Sleep(3 * time.Second)
		c.join("new")
		time.Sleep(40 * time.Second)
		if owners := c.owners(); loadsOf(owners) != "1 1" {
			t.Errorf("%v", owners)
		}
		c.dismiss()
		c.judge(false)
	})
}

// A processor that never returns keeps its shard only until StopTimeout.
func TestHangingProcessorReleasesSoughtShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, dynamosim.Options{Shards: 2})
		for i := range 20 {
			w.write(t, fmt.Sprintf("item%d", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		hangs := processorFunc(func(work context.Context, _ []change.Record) (int, error) {
			<-work.Done()
			return 0, work.Err()
		})
		v := &versions{seen: map[string]int{}}
		for _, p := range []Processor{hangs, v} { // the first takes both shards
			go func() {
				ended <- newTestReader(t, w.sim, NewLeaseTable(w.sim, "leases"), p, func(cfg *Config) {
					cfg.StreamARN, cfg.StopTimeout = w.arn, 8*time.Second
				}).Run(ctx)
			}()
			time.Sleep(5 * time.Second)
		}
		time.Sleep(20 * time.Second)
		v.mu.Lock()
		if len(v.seen) == 0 {
			t.Error("nothing was done")
		}
		v.mu.Unlock()
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAWorkerIsNotCaughtUpWhileAnotherIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 2})
		for i := range 20 {
			c.write(t, fmt.Sprintf("item%d", i))
		}
		c.work.took = 25 * time.Second
		c.join("behind")
		time.Sleep(5 * time.Second)
		idle := c.join("idle")
		time.Sleep(15 * time.Second)
		if st := idle.reader.Stats(); st.Open != 0 || st.CaughtUp {
			t.Errorf("beside a worker that has not done a record yet: %+v", st)
		}
		time.Sleep(time.Minute)
		if st := idle.reader.Stats(); !st.CaughtUp {
			t.Errorf("a minute later: %+v", st)
		}
		c.dismiss()
		c.judge(false)
	})
}

// What a worker found missing while it listed is no more its own to judge once another lists.
func TestDrainWaitsForNoShardThatAnotherJudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 2})
		c.join("lists")
		time.Sleep(20 * time.Second)
		ctx, cancel := contextFor(t, 5*time.Minute)
		f := newFollower(c.prepare("drains").reader, true)
		f.missing["lacked by one list"] = 1
		if err := f.run(ctx, ctx); err != nil || !f.drained {
			t.Errorf("drained: %v, %v", f.drained, err)
		}
		cancel()
		if err := f.stopAll(); err != nil {
			t.Error(err)
		}
		delete(c.members, "drains")
		c.dismiss()
	})
}
