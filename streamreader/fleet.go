package streamreader

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

const (
	// looksPerTerm is how often, at most, a worker looks at all leases in a
	// term, and lookRow what each row adds to the wait: a look at a large table
	// costs read units.
	looksPerTerm = 20
	lookRow      = time.Millisecond
	// acceptEvery is how often a worker tries to take over what it has asked for.
	acceptEvery = 250 * time.Millisecond
	// takeFirst shards may be taken after one look at the leases, and twice as
	// many after each next one that shows no other workers than the one before,
	// up to takeMost: many workers that start together must see each other
	// before all shards are gone.
	takeFirst, takeMost = 16, 1024
	// askMost shards are asked for at the same time.
	askMost = 16
)

// fleet is one worker's part in sharing a stream: what it sees of the leases,
// which it holds, and which it has asked for. All but the renewals is done by
// the follower's goroutine.
type fleet struct {
	cfg *Config

	own      Lease // the stream's own row; zero if there is none
	changed  map[string]time.Time
	polls    map[string]int64 // EmptyPolls as first seen, which were made before this worker looked
	plan     leases.Plan
	asked    map[string]string // shards asked for, with the owners asked
	looked   bool              // just now, and nothing was made of it yet
	lookedAt time.Time
	lookAt   time.Time
	acceptAt time.Time
	workers  int // seen before the last look
	takeMax  int // from one look to the next
	takeLeft int
	failing  *backoff.ExponentialBackOff
	silence  silence
	random   *rand.Rand // the worker's own numbers: the same name draws the same ones

	mu      sync.Mutex
	held    map[string]*leases.Held // the stream's own too, by the stream's ARN
	renewal context.CancelFunc      // nil: no goroutine renews yet
	wg      sync.WaitGroup
}

func newFleet(cfg *Config) *fleet {
	return &fleet{
		cfg: cfg, changed: map[string]time.Time{}, polls: map[string]int64{}, asked: map[string]string{},
		held: map[string]*leases.Held{}, takeMax: takeFirst, takeLeft: takeFirst, failing: newBackoff(),
		silence: silence{shards: map[string]pausedShard{}},
		random:  rand.New(rand.NewPCG(nameHash(cfg.WorkerID), 0)),
	}
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// see takes over the rows of the stream as they were just read, and puts
// those of this worker's leases right, which may have been written since.
func (l *fleet) see(before, now map[string]Lease, own *Lease) {
	former := l.own
	l.own = Lease{}
	if own != nil {
		l.own = *own
		l.note(former, *own)
	}
	for id, row := range now {
		l.note(before[id], row)
	}
	for id, h := range l.holding() {
		if row := now[id]; row.Owner == l.cfg.WorkerID && row.Next != "" {
			h.Asked()
		}
		if id != l.cfg.StreamARN {
			now[id] = h.Lease()
		} else {
			l.own = h.Lease()
		}
		l.changed[id] = time.Now()
	}
	for id := range l.changed {
		if _, ok := now[id]; !ok && id != l.cfg.StreamARN {
			delete(l.changed, id)
			delete(l.polls, id)
		}
	}
	for id := range l.asked {
		if row := now[id]; row.Finished() || row.Owner != l.cfg.WorkerID && row.Next != l.cfg.WorkerID {
			delete(l.asked, id)
		}
	}
	l.looked, l.lookedAt = true, time.Now()
	every := min(max(l.cfg.LeaseTerm/looksPerTerm, time.Duration(len(now))*lookRow), l.cfg.LeaseTerm/leases.RenewalsPerTerm)
	l.lookAt = l.lookedAt.Add(every - every/8 + time.Duration(l.random.Int64N(int64(every/4)))) // so that workers do not keep step
	if l.takeLeft > 0 || l.plan.Workers != l.workers {
		l.takeMax = takeFirst
	} else {
		l.takeMax = min(2*l.takeMax, takeMost)
	}
	l.takeLeft, l.workers = l.takeMax, l.plan.Workers
}

// note dates a row by what is new in it.
func (l *fleet) note(before, now Lease) {
	if _, seen := l.changed[now.Shard]; !seen {
		l.polls[now.Shard] = now.EmptyPolls
	} else if now.EmptyPolls < l.polls[now.Shard] {
		l.polls[now.Shard] = 0
	}
	if before.Shard == "" || before.Counter != now.Counter || before.Owner != now.Owner {
		l.changed[now.Shard] = time.Now()
	}
}

func (l *fleet) nextLook() time.Time {
	if len(l.asked) > 0 && l.acceptAt.Before(l.lookAt) {
		return l.acceptAt
	}
	return l.lookAt
}

// divide plans what this worker does next.
func (l *fleet) divide(rows map[string]Lease, busy map[string]bool) leases.Plan {
	in := leases.Input{
		Worker: l.cfg.WorkerID, Now: time.Now(), Term: l.cfg.LeaseTerm, Own: l.own, Leases: rows, Changed: l.changed,
		Busy: busy, TakeMax: l.takeLeft, AskMax: askMost,
	}
	l.plan = leases.Divide(in)
	l.silence.curb(&l.plan, in, len(l.asked) > 0)
	return l.plan
}

// expired reports whether a lease's owner has not been heard of for a term.
func (l *fleet) expired(row Lease) bool {
	return leases.Input{Now: time.Now(), Term: l.cfg.LeaseTerm, Changed: l.changed}.Expired(row)
}

// settled reports whether every shard that may be read has a reader, and none waits.
func (l *fleet) settled() bool {
	return l.plan.Vacant == 0 && len(l.plan.Waiting) == 0 && len(l.asked) == 0
}

// othersIdle reports whether the shards that other workers read were empty for
// several polls since this worker saw them first.
func (l *fleet) othersIdle(rows map[string]Lease, polls int) bool {
	held := l.holding()
	for id, row := range rows {
		if held[id] == nil && !row.Finished() && row.EmptyPolls-l.polls[id] < int64(polls) {
			return false
		}
	}
	return true
}

// othersCaughtUp reports whether the shards that other workers read were empty
// for several polls since this worker saw them first, or were read past a moment.
func (l *fleet) othersCaughtUp(rows map[string]Lease, polls int, moment time.Time) bool {
	held := l.holding()
	for id, row := range rows {
		if held[id] == nil && !row.Finished() && row.EmptyPolls-l.polls[id] < int64(polls) && !row.Newest.After(moment) {
			return false
		}
	}
	return l.plan.Vacant == 0
}

// lists reports whether this worker is the one that lists the stream's shards.
func (l *fleet) lists() bool {
	l.mu.Lock()
	h := l.held[l.cfg.StreamARN]
	l.mu.Unlock()
	return h != nil && h.Trusted()
}

// elect makes this worker the one that lists, if nobody does. followed
// says whether the rows show that the stream was read before it had a row of its own.
func (l *fleet) elect(ctx context.Context, followed bool) error {
	arn := l.cfg.StreamARN
	if h := l.holding()[arn]; h != nil {
		if h.Trusted() {
			return nil
		}
		l.drop(arn)
		l.changed[arn] = time.Now()
	}
	var (
		row   Lease
		err   error
		began = time.Now()
	)
	switch {
	case began.Before(l.silence.standAt):
		return nil
	case l.own.Shard == "":
		row = Lease{Shard: arn, Stream: arn, Owner: l.cfg.WorkerID, Counter: 1, Checkpoint: TrimHorizon}
		if followed {
			row.Checkpoint = Latest
		}
		row, err = l.cfg.Checkpoints.Create(ctx, row)
	case l.own.Owner == "", l.own.Owner == l.cfg.WorkerID, l.expired(l.own):
		row, err = l.cfg.Checkpoints.Claim(ctx, l.own, l.cfg.WorkerID)
	default:
		return nil
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		return err
	}
	if row.Shard == "" {
		return nil // deleted meanwhile
	}
	l.note(l.own, row)
	l.own = row
	if err == nil && row.Owner == l.cfg.WorkerID {
		l.cfg.Logger.Info("this worker lists the stream's shards now", "worker", l.cfg.WorkerID)
		l.silence.lists = time.Time{}
		l.hold(row, began)
	}
	return nil
}

// describe notes in the stream's own row what workers that do not list must
// know of the stream, and whether all its shards have rows.
func (l *fleet) describe(ctx context.Context, d decoder, checkpoint string) error {
	h := l.holding()[l.cfg.StreamARN]
	if h == nil {
		return leases.ErrTrustOver
	}
	if row := h.Lease(); row.Checkpoint == checkpoint && row.Label == d.label && row.PartitionKey == d.partition && row.SortKey == d.sortName {
		return nil
	}
	err := h.Save(ctx, func(row *Lease) {
		if row.Label, row.PartitionKey, row.SortKey = d.label, d.partition, d.sortName; row.Checkpoint != Latest {
			row.Checkpoint = checkpoint // unless it was written and no answer came
		}
	})
	l.own = h.Lease()
	return err
}

// hold takes charge of a lease that was claimed by a call which began at claimed.
func (l *fleet) hold(row Lease, claimed time.Time) *leases.Held {
	h := leases.Hold(l.cfg.Checkpoints, row, l.cfg.LeaseTerm, claimed)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[row.Shard] = h
	delete(l.asked, row.Shard)
	if l.renewal == nil {
		var ctx context.Context
		ctx, l.renewal = context.WithCancel(context.Background())
		l.wg.Go(func() { l.renew(ctx) })
	}
	return h
}

func (l *fleet) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[id]; h != nil {
		h.Leave()
		delete(l.held, id)
	}
}

// holding returns the leases held, the stream's own too.
func (l *fleet) holding() map[string]*leases.Held {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := make(map[string]*leases.Held, len(l.held))
	for id, h := range l.held {
		held[id] = h
	}
	return held
}

// renew renews the leases that are due until ctx ends, also while the shards
// are being let go.
func (l *fleet) renew(ctx context.Context) {
	for sleep(ctx, l.cfg.LeaseTerm/(4*leases.RenewalsPerTerm)) == nil {
		var group errgroup.Group
		group.SetLimit(callsMax)
		for id, h := range l.holding() {
			if !h.Due() {
				continue
			}
			group.Go(func() error {
				if err := h.Renew(ctx); err != nil && !errors.Is(err, ErrLeaseLost) && ctx.Err() == nil {
					l.cfg.Logger.Warn("renewing a lease failed, will retry", "shard", id, "error", err)
				}
				return nil
			})
		}
		_ = group.Wait() // each has told its own
	}
}

// stop gives back what was asked for and the stream's own lease, once the
// shards are let go.
func (l *fleet) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseMax)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(callsMax)
	tell := func(what string, err error) {
		if err != nil && !errors.Is(err, ErrLeaseLost) {
			l.cfg.Logger.Warn(what, "error", err)
		}
	}
	for id, owner := range l.asked {
		group.Go(func() error {
			row := Lease{Shard: id, Stream: l.cfg.StreamARN, Owner: owner}
			tell("a request for a shard could not be withdrawn", l.cfg.Checkpoints.Withdraw(ctx, row, l.cfg.WorkerID))
			return nil
		})
	}
	if h := l.holding()[l.cfg.StreamARN]; h != nil && h.Trusted() {
		tell("the lease of the stream's list could not be released", h.Release(ctx, func(*Lease) {}))
	}
	_ = group.Wait() // each has told its own
	if l.renewal != nil {
		l.renewal()
	}
	l.wg.Wait()
	for id := range l.holding() {
		l.drop(id)
	}
}
