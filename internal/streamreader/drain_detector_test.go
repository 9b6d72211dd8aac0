package streamreader

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/stream/shardread"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// looker is a worker that drains, beside another which has a shard that was always empty.
type looker struct {
	f    *follower
	rows []Lease // the other worker's shard, and one that a third has
}

func newLooker(t *testing.T) *looker {
	r := newTestReader(t, newFakeStream(), newLeases(), &collector{}, func(cfg *Config) { cfg.WorkerID = "me" })
	arn := r.cfg.StreamARN
	l := &looker{newFollower(r, true), []Lease{
		{Shard: "quiet", Stream: arn, Owner: "other", Counter: 1, Checkpoint: "5", EmptyPolls: 40},
		{Shard: "third", Stream: arn, Owner: "third", Counter: 1, Checkpoint: "5", EmptyPolls: 40},
	}}
	l.f.running["own"] = shardread.New(&l.f.shards, streamapi.Shard{ID: "own"}, nil)
	l.poll(40)
	l.look()
	return l
}

func (l *looker) look() { l.f.takeOverRows(l.rows, l.f.r.records.Load()) }

// poll has this worker poll its own shard so often without a record.
func (l *looker) poll(times int) {
	for range times {
		l.f.running["own"].Note(true, l.f.applies.Load())
	}
}

// apply has this worker apply a record, of another shard than its own that is observed.
func (l *looker) apply() {
	l.f.applies.Add(1)
	l.f.r.records.Add(1)
}

// time has every worker poll so often without a record, and the others write their rows.
func (l *looker) time(polls int) {
	l.poll(polls)
	for i := range l.rows {
		l.rows[i].Counter++
		l.rows[i].EmptyPolls += int64(polls)
	}
	l.look()
}

// rest has so much time go by that nothing can be under way.
func (l *looker) rest() {
	l.time(1)
	l.time(l.f.r.cfg.DrainPolls)
}

func TestDrainCountsPollsSinceTheLastBatch(t *testing.T) {
	for name, happens := range map[string]func(*looker){
		"it has begun":                 nil,
		"it applied something":         func(l *looker) { l.apply(); l.look() },
		"somebody saved a checkpoint":  func(l *looker) { l.rows[1].Checkpoint = "6"; l.look() },
		"somebody gave a shard up":     func(l *looker) { l.rows[1].Checkpoint, l.rows[1].Owner = "6", ""; l.look(); l.rows[1].Owner = "third" },
		"a claim showed that first":    func(l *looker) { l.rows[1].Checkpoint = "6"; l.f.fleet.Note(l.rows[1]); l.look() },
		"somebody was at work":         func(l *looker) { l.rows[1].EmptyPolls = 0; l.look() },
		"it applied more than it knew": func(l *looker) { l.apply(); l.f.takeOverRows(l.rows, 0); l.look() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLooker(t)
			if happens != nil {
				if l.rest(); !l.f.allIdle() {
					t.Fatal("not all shards are idle")
				}
				happens(l)
			}
			if l.f.allIdle() {
				t.Error("all shards are idle at once")
			}
			if l.time(l.f.r.cfg.DrainPolls); happens != nil && name != "somebody was at work" && l.f.allIdle() {
				t.Error("polls are counted that were made before the rows were read")
			}
			if l.rest(); !l.f.allIdle() {
				t.Error("not all shards are idle in the end")
			}
		})
	}
}

func TestDrainIgnoresRowsReadBeforeItsLastBatch(t *testing.T) {
	l := newLooker(t)
	if l.rest(); !l.f.allIdle() {
		t.Fatal("not all shards are idle")
	}
	l.apply()
	if l.f.allIdle() {
		t.Error("the rows that were read before are believed")
	}
}

func TestDrainingWorkerCountsItsOwnPollsSinceAnyBatch(t *testing.T) {
	for name, happens := range map[string]func(*looker){
		"another worker applied": func(l *looker) { l.rows[1].Checkpoint = "6"; l.look() },
		"another of its shards":  func(l *looker) { l.apply(); l.look() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLooker(t)
			if l.rest(); !l.f.allIdle() {
				t.Fatal("not all shards are idle")
			}
			own, asked := l.f.running["own"], l.f.applies.Load()
			happens(l)
			own.Note(true, asked) // of a page that was asked for before
			if l.poll(l.f.r.cfg.DrainPolls - 1); own.Idle() {
				t.Error("a poll from before the batch is counted")
			}
			if l.poll(1); !own.Idle() {
				t.Error("polls since the batch are not counted")
			}
			own.NoteRead(time.Now())
			if own.Idle() {
				t.Error("a shard that had a record is idle")
			}
		})
	}
}

// A worker's own checkpoint tells of batches that it has counted already.
func TestDrainingWorkerKnowsItsOwnCheckpoint(t *testing.T) {
	l := newLooker(t)
	own := Lease{Shard: "own", Stream: l.f.r.cfg.StreamARN, Owner: "me", Counter: 1, Checkpoint: "5"}
	l.rows = append(l.rows, own)
	l.look()
	if l.rest(); !l.f.allIdle() {
		t.Fatal("not all shards are idle")
	}
	l.rows[2].Checkpoint = "6"
	if l.look(); !l.f.running["own"].Idle() {
		t.Error("its own checkpoint is taken for a batch of another worker")
	}
	l.rows[1].Checkpoint = "6"
	if l.look(); l.f.running["own"].Idle() {
		t.Error("a checkpoint of another worker is not seen")
	}
}

// pollCounter counts the calls for records.
type pollCounter struct {
	Streams
	polls atomic.Int64
}

func (c *pollCounter) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	c.polls.Add(1)
	return c.Streams.GetRecords(ctx, in, opts...)
}

// Alone on a stream of several shards, a drain ends within 2 s after the last batch
// of any shard, and not before every shard was polled DrainPolls times since.
func TestDrainAloneEndsSoonAfterTheLastBatch(t *testing.T) {
	for _, shards := range []int{1, 2, 5} {
		for i := range 20 {
			t.Run(fmt.Sprintf("%d shards, %d", shards, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrew(t, dynamosim.Options{Shards: shards})
					var last time.Time
					calls := &pollCounter{}
					var before int64
					c.work.onDone = func(item string) {
						last, before = time.Now(), calls.polls.Load()
						if left, _ := strconv.Atoi(strings.TrimPrefix(item, "hop")); left > 0 {
							c.write(t, fmt.Sprintf("hop%d", left-1)) // another item, so often another shard
						}
					}
					for range 6 {
						c.write(t, "hop3")
					}
					time.Sleep(time.Duration(i) * 71 * time.Millisecond)
					m := c.prepare("drains", func(cfg *Config) { calls.Streams, cfg.Streams = cfg.Streams, calls })
					if err := m.reader.Drain(t.Context()); err != nil {
						t.Fatal(err)
					}
					took := time.Since(last)
					if took > 2*time.Second || took < 1200*time.Millisecond {
						t.Errorf("it ended %s after the last batch, want 1.2 s to 2 s", took)
					}
					if polls := calls.polls.Load() - before; polls < int64(shards*m.reader.cfg.DrainPolls) {
						t.Errorf("%d shards were polled %d times after the last batch", shards, polls)
					}
					delete(c.members, "drains")
					c.judge(false)
				})
			})
		}
	}
}
