package streamreader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	// startMax bounds the time in which the first list of shards must succeed:
	// later, failures may pass; at the start they are more likely a mistake.
	startMax = 30 * time.Second
	// listSoon is the wait for the next list after a shard has ended. It
	// doubles, up to ListInterval, until another ends: children may be listed late.
	listSoon = 500 * time.Millisecond
	// missingLists is how many lists in a row must lack a shard before it
	// counts as lost, or its row as useless: a list of many pages is not one moment's picture.
	missingLists = 3
)

// follower is one run of a Reader: a single goroutine that lists the stream's
// shards, plans, starts one goroutine for each shard to be read, and takes
// back its lease when that ends.
type follower struct {
	r       *Reader
	drain   bool
	drained bool

	lister  lister
	found   listing
	plan    lineagePlan
	leases  map[string]Lease // rows of this stream; of a shard that is being read, as they were before
	running map[string]*shardReader
	missing map[string]int // consecutive lists that lacked the shard
	done    map[string]int // the same for rows that serve nobody any more
	fresh   bool           // nothing of this stream was done before, and no shard was started yet
	soon    time.Duration  // next wait after a shard has ended

	slots chan struct{}
	ended chan endedShard
	idle  chan struct{}
	wg    sync.WaitGroup
}

type endedShard struct {
	id    string
	lease Lease
	err   error
}

func newFollower(r *Reader, drain bool) *follower {
	return &follower{
		r:       r,
		drain:   drain,
		lister:  lister{streams: r.cfg.Streams, arn: r.cfg.StreamARN, keys: decoder{partition: r.cfg.PartitionKey, sortName: r.cfg.SortKey}},
		leases:  map[string]Lease{},
		running: map[string]*shardReader{},
		missing: map[string]int{},
		soon:    r.cfg.ListInterval,
		slots:   make(chan struct{}, r.cfg.Concurrency),
		ended:   make(chan endedShard),
		idle:    make(chan struct{}, 1),
	}
}

// run returns nil when ctx has ended or, draining, when the stream is drained.
func (f *follower) run(ctx, work context.Context) error {
	switch err := f.load(ctx); {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	b := newBackoff()
	started := time.Now()
	for ctx.Err() == nil {
		wait := f.nextWait()
		err := f.round(ctx, work)
		switch {
		case err == nil:
			b.Reset()
			if over, err := f.over(); over {
				return err
			}
			if len(f.plan.missing) > 0 {
				wait = min(wait, time.Second)
			}
		case ctx.Err() != nil:
			return nil
		case classify(err) != verdictRetry, f.r.neverListed() && time.Since(started) > startMax:
			return err
		default:
			wait = b.NextBackOff()
			f.r.cfg.Logger.Warn("listing the stream's shards failed, will retry", "wait", wait, "error", err)
		}
		if err := f.await(ctx, work, wait); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) load(ctx context.Context) error {
	rows, err := f.r.cfg.Checkpoints.Load(ctx)
	if err != nil {
		return fmt.Errorf("loading checkpoints: %w", err)
	}
	former := ""
	for _, l := range rows {
		if l.Stream == f.r.cfg.StreamARN {
			f.leases[l.Shard] = l
		} else if l.Stream > former {
			former = l.Stream
		}
	}
	f.fresh = !hasProgress(f.leases)
	if f.fresh {
		f.r.cfg.Logger.Info("starting with the oldest records that the stream holds", "stream", f.r.cfg.StreamARN)
		if former != "" {
			f.r.cfg.Logger.Warn("the table had another stream before: changes between the two were not seen",
				"stream", f.r.cfg.StreamARN, "former", former)
		}
	}
	return nil
}

// round lists the shards and does what follows from the list.
func (f *follower) round(ctx, work context.Context) error {
	idleBefore := f.allIdle()
	found, err := f.lister.list(ctx)
	if err != nil {
		return err
	}
	f.found = found
	children := childrenOf(found.shards)
	for _, s := range found.shards {
		if reader := f.running[s.id]; reader != nil {
			reader.observe(s, children[s.id], found.status)
		}
	}
	if err := f.apply(ctx, work); err != nil {
		return err
	}
	if err := f.judgeMissing(); err != nil {
		return err
	}
	f.deleteDone(ctx)
	f.drained = idleBefore && f.settled() && f.allIdle() && found.status != streams.StreamStatusEnabling
	return nil
}

// apply plans with the last list and starts what may be read.
func (f *follower) apply(ctx, work context.Context) error {
	f.plan = planLineage(f.r.cfg.StreamARN, f.found.shards, f.leases)
	if err := f.createRows(ctx); err != nil {
		return err
	}
	f.fresh = false
	for _, s := range f.plan.read {
		// A row that another process has made since the plan may be finished already.
		if f.running[s.id] == nil && !f.leases[s.id].Finished() {
			f.start(ctx, work, s)
		}
	}
	f.publish()
	return nil
}

// createRows makes every row before any shard is read, so that a restart can
// tell a first start that was cut off from a stream that was followed before.
func (f *follower) createRows(ctx context.Context) error {
	start := make(map[string]shardInfo, len(f.plan.create))
	for _, s := range f.found.shards {
		start[s.id] = s
	}
	for _, lease := range f.plan.create {
		lease.Whole = start[lease.Shard].start != ""
		if f.fresh {
			// The oldest shards may be trimmed in part by now. That is no loss:
			// the reader takes up the stream as it is.
			whole, err := holdsStart(ctx, &f.r.cfg, start[lease.Shard])
			if err != nil && classify(err) == verdictRetry {
				return err
			}
			lease.Whole = whole
		}
		row, err := f.r.cfg.Checkpoints.Create(ctx, lease)
		if err != nil {
			return err
		}
		f.leases[row.Shard] = row
	}
	return nil
}

func (f *follower) start(ctx, work context.Context, info shardInfo) {
	s := &shardReader{
		cfg:      &f.r.cfg,
		log:      f.r.cfg.Logger,
		slots:    f.slots,
		onIdle:   f.wake,
		onDone:   f.r.countDone,
		info:     info,
		decoder:  f.found.decoder,
		lease:    f.leases[info.id],
		progress: progress{at: time.Now()},
	}
	s.observe(info, childrenOf(f.found.shards)[info.id], f.found.status)
	f.running[info.id] = s
	f.wg.Go(func() {
		lease, err := s.run(ctx, work)
		f.ended <- endedShard{id: info.id, lease: lease, err: err}
	})
}

func (f *follower) wake() {
	select {
	case f.idle <- struct{}{}:
	default: // somebody has knocked already
	}
}

// judgeMissing returns a TrimmedError once lists have lacked an unfinished
// shard often enough. Shards that are being read are told by their own calls.
func (f *follower) judgeMissing() error {
	lacking := map[string]int{}
	for _, lease := range f.plan.missing {
		if f.running[lease.Shard] != nil {
			continue
		}
		lacking[lease.Shard] = f.missing[lease.Shard] + 1
		if lacking[lease.Shard] >= missingLists {
			return &permanentError{&TrimmedError{StreamARN: f.r.cfg.StreamARN, Shard: lease.Shard, Checkpoint: lease.Checkpoint}}
		}
	}
	f.missing = lacking
	return nil
}

// deleteDone deletes rows that serve nobody any more, so that the lease table
// does not grow for ever. Whatever fails is tried again after the next list.
func (f *follower) deleteDone(ctx context.Context) {
	done := map[string]int{}
	for _, lease := range f.plan.done {
		done[lease.Shard] = f.done[lease.Shard] + 1
		if done[lease.Shard] < missingLists {
			continue
		}
		if err := f.r.cfg.Checkpoints.Delete(ctx, lease); err != nil {
			f.r.cfg.Logger.Warn("an old lease could not be deleted, will retry", "shard", lease.Shard, "error", err)
			continue
		}
		delete(f.leases, lease.Shard)
	}
	f.done = done
}

// settled reports whether the plan leaves nothing to wait for.
func (f *follower) settled() bool { return len(f.plan.waiting) == 0 && len(f.missing) == 0 }

func (f *follower) allIdle() bool {
	for _, s := range f.running {
		if !s.idle() {
			return false
		}
	}
	return true
}

// over reports whether there is nothing left to follow.
func (f *follower) over() (bool, error) {
	if f.drain && f.drained {
		return true, nil
	}
	if f.found.status == streams.StreamStatusDisabled && len(f.running) == 0 && f.settled() {
		f.drained = true
		if f.drain {
			return true, nil
		}
		return true, ErrStreamEnded
	}
	return false, nil
}

func (f *follower) nextWait() time.Duration {
	if f.soon >= f.r.cfg.ListInterval {
		return f.r.cfg.ListInterval
	}
	wait := f.soon
	f.soon *= 2
	return wait
}

// await waits for the time of the next list, which comes at once when a shard
// has ended or, draining, when all shards have fallen idle.
func (f *follower) await(ctx, work context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return nil
		case <-f.idle:
			if f.drain && f.allIdle() {
				return nil
			}
		case e := <-f.ended:
			if err := f.take(e); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
			f.soon = listSoon
			// Children that are known need not wait for the list. If their
			// rows cannot be made now, the list's own round tries again.
			if err := f.apply(ctx, work); err != nil && classify(err) != verdictRetry {
				return err
			}
			return nil
		}
	}
}

// take puts back the lease of a shard whose goroutine has ended.
func (f *follower) take(e endedShard) error {
	delete(f.running, e.id)
	f.leases[e.id] = e.lease
	f.publish()
	return e.err
}

// stopAll waits for all shards' goroutines, whose context has ended, and
// returns what went wrong while they stopped.
func (f *follower) stopAll() error {
	go func() {
		f.wg.Wait()
		close(f.ended)
	}()
	var errs []error
	for e := range f.ended {
		errs = append(errs, f.take(e))
	}
	return errors.Join(errs...)
}

func (f *follower) publish() {
	finished := 0
	for _, s := range f.found.shards {
		if f.leases[s.id].Finished() {
			finished++
		}
	}
	shards := make(map[string]*shardReader, len(f.running))
	for id, s := range f.running {
		shards[id] = s
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.state.shards = shards
	f.r.state.waiting = len(f.plan.waiting)
	f.r.state.finished = finished
	f.r.state.listedAt = f.lister.lastCall
}

func (r *Reader) neverListed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.listedAt.IsZero()
}
