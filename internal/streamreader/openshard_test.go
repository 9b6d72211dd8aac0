package streamreader

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// opener hands out a collector for each shard, and notes the claims.
type opener struct {
	all *collector

	mu     sync.Mutex
	claims []Claim
	before func(Claim, int) error // before the nth claim is answered
}

func (o *opener) open(_ context.Context, c Claim) (Processor, error) {
	o.mu.Lock()
	o.claims = append(o.claims, c)
	n := len(o.claims)
	o.mu.Unlock()
	if o.before != nil {
		if err := o.before(c, n); err != nil {
			return nil, err
		}
	}
	return o.all, nil
}

// unused is a Processor that no record may reach.
type unused struct{ t *testing.T }

func (u unused) Process(context.Context, []change.Record) (int, error) {
	u.t.Error("a record did not go to the processor of its shard")
	return 0, errors.New("unused")
}

func (o *opener) reader(t *testing.T, f Streams, cp Checkpoints) *Reader {
	t.Helper()
	return newTestReader(t, f, cp, unused{t}, func(c *Config) { c.OpenShard = o.open })
}

func TestShardsAreOpenedBeforeTheirRecordsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFakeStream(), &opener{all: &collector{}}
		parent := f.open("parent", "")
		f.write(parent, "a", 3)
		f.close(parent)
		f.write(f.open("child", "parent"), "b", 2)
		leases := newLeases()
		if err := o.reader(t, f, leases).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, o.all, map[string]int{"a": 3, "b": 2})
		if len(o.claims) != 2 || o.claims[0].Shard != "parent" || o.claims[1].Shard != "child" || o.claims[1].Parent != "parent" ||
			o.claims[1].Checkpoint != "" {
			t.Fatalf("the claims are %+v", o.claims)
		}
		if err := o.reader(t, f, leases).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := o.claims[2]; len(o.claims) != 3 || again.Shard != "child" || again.Checkpoint == "" {
			t.Errorf("the second reader's claims are %+v", o.claims[2:])
		}
	})
}

func TestFailedOpeningIsTriedAgainUnlessItStopsTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFakeStream(), &opener{all: &collector{}}
		f.write(f.open("s", ""), "a", 3)
		o.before = func(_ Claim, n int) error {
			if n < 3 {
				return errors.New("it fails")
			}
			return nil
		}
		if err := o.reader(t, f, newLeases()).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, o.all, map[string]int{"a": 3})
		stop := stopped{errors.New("it is over")}
		o.before = func(Claim, int) error { return stop }
		if err := o.reader(t, f, newLeases()).Run(t.Context()); !errors.Is(err, stop) {
			t.Errorf("the reader ends with %v", err)
		}
	})
}

type stopped struct{ error }

func (stopped) StopReading() bool { return true }

// TestShardIsGivenUpIfLeasesChangeWhileItIsOpened has a person, or a count, write to the leases at that moment: no record may be handed
// over before the shard was opened anew.
func TestShardIsGivenUpIfLeasesChangeWhileItIsOpened(t *testing.T) {
	for name, edit := range map[string]func(context.Context, leases.Store) error{
		"the owner is evicted": func(ctx context.Context, s leases.Store) error {
			_, err := leases.EvictOwners(ctx, s, testARN)
			return err
		},
		"the checkpoint is set": func(ctx context.Context, s leases.Store) error { return setCheckpoint(ctx, s, "child", "1") },
		"the parent is set back": func(ctx context.Context, s leases.Store) error {
			return setCheckpoint(ctx, s, "parent", leases.TrimHorizon)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, o, store := newFakeStream(), &opener{all: &collector{}}, newLeases()
				parent := f.open("parent", "")
				f.write(parent, "a", 3)
				f.close(parent)
				f.write(f.open("child", "parent"), "b", 2)
				changed, handed := false, 0
				o.before = func(c Claim, _ int) error {
					if c.Shard != "child" {
						return nil
					}
					if changed {
						return nil
					}
					changed, handed = true, o.all.count()
					if err := edit(t.Context(), store); err != nil {
						t.Error(err)
					}
					return nil
				}
				if err := o.reader(t, f, store).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				opened := 0
				for _, c := range o.claims {
					if c.Shard == "child" {
						opened++
					}
				}
				if opened < 2 || handed != 3 {
					t.Errorf("the child was opened %d times; %d records were there before", opened, handed)
				}
			})
		})
	}
}

// setCheckpoint is what a person does who edits a row: no counter rises.
func setCheckpoint(ctx context.Context, s leases.Store, shard, checkpoint string) error {
	row, err := s.Get(ctx, shard)
	if err != nil {
		return err
	}
	if err := s.Delete(ctx, row); err != nil {
		return err
	}
	row.Checkpoint = checkpoint
	_, err = s.Create(ctx, row)
	return err
}

func TestClaimTellsWhatTheStreamHasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o := newFakeStream(), &opener{all: &collector{}}
		store, s := newLeases(), f.open("s", "")
		f.write(s, "a", 5)
		var upTo string
		o.before = func(c Claim, _ int) (err error) {
			upTo, err = c.Trimmed(t.Context())
			return err
		}
		if err := o.reader(t, f, store).Drain(t.Context()); err != nil || upTo != "" {
			t.Fatalf("of a whole shard it has dropped up to %q; %v", upTo, err)
		}
		sequence := func(i int) string { return *s.records[i].Dynamodb.SequenceNumber }
		if err := setCheckpoint(t.Context(), store, "s", sequence(0)); err != nil {
			t.Fatal(err)
		}
		s.trimmed = 3
		var trimmed *TrimmedError
		if err := o.reader(t, f, store).Drain(t.Context()); !errors.As(err, &trimmed) {
			t.Errorf("a reader whose checkpoint is gone ends with %v", err)
		}
		if compareSequences(upTo, sequence(3)) >= 0 || compareSequences(upTo, sequence(2)) < 0 {
			t.Errorf("it has dropped up to %s, with %s the oldest that is there", upTo, sequence(3))
		}
	})
}

// noIterators is a stream that lists its shards and hands out none of their iterators.
type noIterators struct{ Streams }

func (noIterators) GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return nil, errors.New("connection reset")
}

// TestShardThatCannotBeOpenedIsLeftToOthers has one of two workers not be able to ask the stream what it has dropped.
func TestShardThatCannotBeOpenedIsLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all, store := newFakeStream(), &collector{}, newLeases()
		f.write(f.open("s", ""), "a", 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asks := func(c Claim, _ int) error {
			_, err := c.Trimmed(ctx)
			return err
		}
		var both sync.WaitGroup
		run := func(f Streams, name string) {
			o := &opener{all: all, before: asks}
			r := newTestReader(t, f, store, unused{t}, func(c *Config) { c.OpenShard, c.WorkerID = o.open, name })
			both.Go(func() {
				if err := r.Run(ctx); err != nil {
					t.Errorf("%s ends with %v", name, err)
				}
			})
		}
		run(noIterators{f}, "no-iterators")
		time.Sleep(time.Second)
		run(f, "other")
		time.Sleep(5 * time.Minute)
		wantItems(t, all, map[string]int{"a": 3})
		cancel()
		both.Wait()
	})
}
