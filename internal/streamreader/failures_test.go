package streamreader

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// A worker that loses the lease of one shard goes on with its other shards.
func TestLostLeaseEndsItsShardAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		lost, kept := f.open("lost", ""), f.open("kept", "")
		f.write(lost, "a", 1)
		f.write(kept, "b", 2)
		r := newTestReader(t, f, cp, c)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(5 * time.Second)
		steal(t, cp, "lost")
		f.write(lost, "a", 1)
		f.write(kept, "b", 2)
		time.Sleep(testTerm / 2)
		if st := r.Stats(); st.Open != 1 {
			t.Errorf("%d shards are read, want the other one: %+v", st.Open, st)
		}
		f.write(lost, "a", 1)
		f.write(kept, "b", 2)
		time.Sleep(time.Second)
		if a, b := c.items(t)["a"], c.items(t)["b"]; a > 2 || b != 6 {
			t.Errorf("%d records of the lost shard are done, %d of the other, want at most 2 and 6", a, b)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// steal has another process take a shard.
func steal(t *testing.T, cp Checkpoints, shard string) Lease {
	t.Helper()
	row, err := cp.Claim(t.Context(), leaseOf(t, cp, shard), Worker{Name: "another", Run: "1", Term: testTerm})
	if err != nil {
		t.Error(err)
	}
	return row
}

func TestAnErrorOfTheProcessorThatSaysStopStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		s := f.open("shard", "")
		f.write(s, "item", 10)
		f.write(f.open("other", ""), "neighbour", 1)
		cause := errors.New("the rules have changed")
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			if len(records) == 1 {
				return 1, nil
			}
			return 3, fmt.Errorf("applying: %w", &stopError{cause})
		}
		if err := newTestReader(t, f, cp, c).Run(t.Context()); !errors.Is(err, cause) {
			t.Errorf("Run returned %v", err)
		}
		if got, want := leaseOf(t, cp, "shard").Checkpoint, *s.records[2].Dynamodb.SequenceNumber; got != want {
			t.Errorf("checkpoint %s, want that of the third record, %s", got, want)
		}
	})
}

func TestAProcessorThatBreaksItsContract(t *testing.T) {
	for _, test := range []struct {
		name string
		done int
		want string
	}{
		{"more done than given", 4, "4 records done of 3"},
		{"less than nothing", -1, "-1 records done of 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeStream()
				f.write(f.open("shard", ""), "item", 3)
				p := processorFunc(func(context.Context, []change.Record) (int, error) { return test.done, nil })
				if err := newTestReader(t, f, newLeases(), p).Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Run returned %v", err)
				}
			})
		})
	}
	t.Run("short without an error is tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, c := newFakeStream(), &collector{}
			f.write(f.open("shard", ""), "item", 3)
			c.before = func(context.Context, []change.Record) (int, error) { return 1, nil }
			if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantItems(t, c, map[string]int{"item": 3})
		})
	})
}

type processorFunc func(context.Context, []change.Record) (int, error)

func (f processorFunc) Process(ctx context.Context, records []change.Record) (int, error) {
	return f(ctx, records)
}

func TestFailuresThatPass(t *testing.T) {
	for name, fault := range map[string]error{
		"limit exceeded": &streams.LimitExceededException{},
		"server error":   &streams.InternalServerError{},
		"throttling":     &smithy.GenericAPIError{Code: "ThrottlingException", Fault: smithy.FaultClient},
		"network":        &net.OpError{Op: "dial", Err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.write(f.open("shard", ""), "item", 3)
				calls := map[string]int{}
				f.fault = func(call, _ string) error {
					if calls[call]++; calls[call] <= 3 {
						return fault
					}
					return nil
				}
				if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantItems(t, c, map[string]int{"item": 3})
			})
		})
	}
}

func TestFailuresThatStop(t *testing.T) {
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	for _, test := range []struct {
		name, call string
		fault      error
		want       error
	}{
		{"listing is forbidden", "DescribeStream", denied, denied},
		{"opening is forbidden", "GetShardIterator", denied, denied},
		{"reading is forbidden", "GetRecords", denied, denied},
		{"the stream does not exist", "DescribeStream", &streams.ResourceNotFoundException{}, ErrStreamNotFound},
		{"the network never works", "DescribeStream", &net.OpError{Op: "dial", Err: net.ErrClosed}, net.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeStream()
				f.write(f.open("shard", ""), "item", 3)
				f.fault = func(call, _ string) error {
					if call == test.call {
						return test.fault
					}
					return nil
				}
				if test.call == "GetShardIterator" {
					f.shards[0].start = "" // so that nothing is asked before it is opened
				}
				started := time.Now()
				if err := newTestReader(t, f, newLeases(), &collector{}).Run(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("Run returned %v, want %v", err, test.want)
				}
				if took := time.Since(started); took > time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestStolenShardKeepsItsCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		s := f.open("shard", "")
		f.write(s, "item", 3)
		var stolen Lease
		time.AfterFunc(10*time.Second, func() {
			stolen = steal(t, cp, "shard")
			f.write(s, "item", 3)
		})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second+testTerm/2)
		defer stop()
		if err := newTestReader(t, f, cp, c).Run(ctx); err != nil {
			t.Error(err)
		}
		if got, want := leaseOf(t, cp, "shard"), *s.records[2].Dynamodb.SequenceNumber; got.Checkpoint != want || got.Owner != stolen.Owner ||
			got.Counter != stolen.Counter {
			t.Errorf("the row says %+v, want it as the other process left it, at %s", got, want)
		}
	})
}

func TestCheckpointsThatFailForAWhileDoNotStopTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		cp := &flakyCheckpoints{LeaseTable: newLeases()}
		s := f.open("shard", "")
		f.write(s, "item", 50)
		f.close(s)
		cp.until = time.Now().Add(time.Minute)
		if err := newTestReader(t, f, cp, c, func(cfg *Config) { cfg.BatchMax = 1; cfg.CheckpointInterval = 1 }).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 50})
		if !leaseOf(t, cp, "shard").Finished() {
			t.Error("the shard was not marked finished")
		}
	})
}

type flakyCheckpoints struct {
	*LeaseTable
	until time.Time
}

func (c *flakyCheckpoints) Save(ctx context.Context, l Lease) (Lease, error) {
	if time.Now().Before(c.until) {
		return l, errors.New("connection reset")
	}
	return c.LeaseTable.Save(ctx, l)
}

// The replies of a shard's checkpoint and of its SHARD_END are lost, and the
// worker is told to stop. Its last write must not take SHARD_END back.
func TestLastSaveKeepsShardEndWhoseReplyWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		s := f.open("shard", "")
		f.write(s, "item", 3)
		f.close(s)
		f.open("child", "shard")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		cp := &replyLosingTable{LeaseTable: leases.NewTable(dynamosim.New(dynamosim.Options{}), "leases"), endSaved: stop}
		if err := newTestReader(t, f, cp, &collector{}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := leaseOf(t, cp, "shard").Checkpoint; got != ShardEnd {
			t.Errorf("checkpoint %s, want %s", got, ShardEnd)
		}
		if ctx.Err() == nil || cp.repliesLost != 2 {
			t.Errorf("%d replies were lost, want those of the checkpoint and of SHARD_END", cp.repliesLost)
		}
	})
}

// replyLosingTable loses the reply of each save of a shard's row, up to the
// first one that names SHARD_END.
type replyLosingTable struct {
	*LeaseTable
	endSaved    func()
	repliesLost int
	endLost     bool
}

func (c *replyLosingTable) Save(ctx context.Context, l Lease) (Lease, error) {
	row, err := c.LeaseTable.Save(ctx, l)
	if err != nil || !l.OfShard() || c.endLost {
		return row, err
	}
	c.repliesLost++
	if c.endLost = l.Finished(); c.endLost {
		c.endSaved()
	}
	return l, errReset
}

func TestAStreamWithoutBothImagesIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.view = streams.StreamViewTypeKeysOnly
		err := newTestReader(t, f, newLeases(), &collector{}).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "KEYS_ONLY") {
			t.Errorf("Run returned %v", err)
		}
	})
}
