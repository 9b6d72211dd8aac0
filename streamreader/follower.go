package streamreader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

const (
	// startMax bounds the time in which a stream's first list of shards must
	// succeed: later, failures may pass; at the start they are more likely a mistake.
	startMax = 30 * time.Second
	// listSoon is the wait for the next list after a shard has ended. It
	// doubles, up to ListInterval, until another ends: children may be listed late.
	listSoon = 500 * time.Millisecond
	// missingLists is how many lists in a row must lack a shard before it
	// counts as lost, or its row as useless: a list of many pages is not one moment's picture.
	missingLists = 3
	// callsMax is how many calls to the lease table, or to a stream for its
	// shards' starts, one follower makes at the same time.
	callsMax = 16
)

// follower is one run of a Reader: a single goroutine that plans, starts one
// goroutine for each shard to be read, and takes back its lease when that ends.
// Where several workers share the stream, fleet says which shards are this one's,
// and only the owner of the stream's own row lists the shards.
type follower struct {
	r       *Reader
	drain   bool
	drained bool
	began   time.Time

	fleet    *fleet // nil: this process reads the stream alone
	own      Lease  // the stream's own row as it was when all rows were read; zero if there was none
	lister   lister
	found    listing // the last complete list, and what was found since
	plan     lineagePlan
	leases   map[string]Lease // rows of this stream's shards; of a shard that is being read, as they were before
	running  map[string]*shardReader
	children map[string][]string // by the parent's id, of leases
	missing  map[string]int      // consecutive lists that lacked the shard
	done     map[string]int      // the same for rows that serve nobody any more
	fresh    bool                // not all rows of the shards that the stream had at first are made
	decoder  decoder

	soon      time.Duration // next wait after a shard has ended
	nextList  time.Time
	nextFull  time.Time     // of all shards, should none end
	listedAt  time.Time     // the last page that came
	lists     <-chan listed // pages of the list that is being made; nil if none is
	stopList  context.CancelFunc
	idleAtAsk bool // all shards were idle when the list was begun
	failing   *backoff.ExponentialBackOff

	slots chan struct{}
	ended chan endedShard
	idle  chan struct{}
	wg    sync.WaitGroup
}

type endedShard struct {
	id   string
	held *leases.Held
	err  error
}

func newFollower(r *Reader, drain bool) *follower {
	f := &follower{
		r:        r,
		drain:    drain,
		began:    time.Now(),
		lister:   lister{streams: r.cfg.Streams, arn: r.cfg.StreamARN, keys: decoder{partition: r.cfg.PartitionKey, sortName: r.cfg.SortKey}},
		leases:   map[string]Lease{},
		running:  map[string]*shardReader{},
		missing:  map[string]int{},
		soon:     r.cfg.ListInterval,
		stopList: func() {},
		failing:  newBackoff(),
		slots:    make(chan struct{}, r.cfg.Concurrency),
		ended:    make(chan endedShard),
		idle:     make(chan struct{}, 1),
	}
	if !r.cfg.Alone {
		f.fleet = newFleet(&r.cfg, drain)
	}
	return f
}

// run returns nil when ctx has ended or, draining, when the stream is drained.
func (f *follower) run(ctx, work context.Context) error {
	defer func() { f.stopList() }()
	switch err := f.load(ctx); {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	for ctx.Err() == nil {
		if f.fleet != nil {
			if err := f.share(ctx, work); err != nil && ctx.Err() == nil {
				return err
			}
		}
		f.list(ctx)
		if f.fleet != nil {
			f.fleet.tell(ctx)
		}
		if err := f.await(ctx, work); err != nil {
			return err
		}
		if over, err := f.over(); over {
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
		if l.Stream != f.r.cfg.StreamARN && l.Stream > former {
			former = l.Stream
		}
	}
	f.see(rows)
	if f.fresh {
		f.r.cfg.Logger.Info("starting with the oldest records that the stream holds", "stream", f.r.cfg.StreamARN)
		if former != "" {
			f.r.cfg.Logger.Warn("the table had another stream before: changes between the two were not seen",
				"stream", f.r.cfg.StreamARN, "former", former)
		}
	}
	return nil
}

// see takes over the rows as they were just read.
func (f *follower) see(rows []Lease) {
	var own *Lease
	seen := make(map[string]Lease, len(rows))
	for _, l := range rows {
		switch {
		case l.Stream != f.r.cfg.StreamARN:
		case l.OfStream():
			own = &l
		default:
			seen[l.Shard] = l
		}
	}
	f.fresh, f.own = !hasProgress(seen), Lease{}
	if own != nil {
		f.fresh, f.own = own.Checkpoint == TrimHorizon, *own
	}
	for id := range f.running {
		if l, ok := f.leases[id]; ok && f.fleet == nil {
			seen[id] = l
		}
	}
	if f.fleet != nil {
		f.fleet.see(f.leases, seen, own)
		if own != nil && own.Label != "" {
			f.decoder = decoder{label: own.Label, partition: own.PartitionKey, sortName: own.SortKey}
		}
	}
	before := f.leases
	f.leases, f.children = seen, childrenIn(seen)
	for id, l := range seen {
		if was, known := before[id]; known && l.Finished() && !was.Finished() && len(f.children[id]) == 0 {
			f.listSoon()
		}
	}
	for id, s := range f.running {
		if f.fleet == nil {
			break
		}
		f.fleet.silence.heard(s.snapshot().answered)
		if len(f.children[id]) > 0 {
			s.observe(shardInfo{closed: true}, f.children[id], streams.StreamStatusEnabled)
		}
	}
}

// list begins a list of the shards if it is time for one and this worker's turn.
func (f *follower) list(ctx context.Context) {
	mine := f.fleet == nil || f.fleet.lists()
	// Who drains wants to know of itself that nothing is left.
	if !mine && (!f.drain || !f.settled() || !f.allIdle()) || f.lists != nil || time.Now().Before(f.nextList) {
		return
	}
	var only []string // parents whose children are looked for; nil: everything is listed
	if f.found.pages > 1 && f.soon < f.r.cfg.ListInterval && f.fleet != nil && !f.drain {
		only = childless(f.found.shards, f.leases)
		switch {
		case len(only) == 0: // all were found
			f.soon, f.nextList = f.r.cfg.ListInterval, f.nextFull
			return
		case len(only) >= f.found.pages:
			only = nil
		}
	}
	f.idleAtAsk = f.allIdle()
	ctx, f.stopList = context.WithCancel(ctx)
	pages := make(chan listed)
	f.lists = pages
	f.wg.Go(func() { f.lister.send(ctx, only, pages) })
}

// page takes over one page of a list, or its failure.
func (f *follower) page(ctx, work context.Context, p listed) error {
	err := p.err
	if err == nil {
		f.decoder, f.listedAt = p.found.decoder, time.Now()
		if err = f.takePage(ctx, p); err == nil {
			err = f.apply(ctx, work)
		}
	}
	if err == nil && p.last && p.complete {
		err = f.complete(ctx)
	}
	if err == nil && !p.last {
		return nil
	}
	f.stopList()
	f.lists = nil
	wait, full := f.nextWait(p.took)
	f.nextList = time.Now().Add(wait)
	if p.complete {
		f.nextFull = time.Now().Add(full)
	}
	switch {
	case err == nil:
		f.failing.Reset()
		if f.fleet != nil {
			f.fleet.silence.lists = time.Time{}
		}
		return nil
	case ctx.Err() != nil:
		return nil
	case f.fleet != nil && errors.Is(err, ErrLeaseLost): // somebody else lists now
	case classify(err) != verdictRetry, f.decoder.label == "" && time.Since(f.began) > startMax:
		return err
	}
	wait = f.failing.NextBackOff()
	f.nextList = time.Now().Add(wait)
	// At the start there is no need for it: who cannot list then ends soon.
	if f.fleet != nil && f.fleet.lists() && f.decoder.label != "" && f.fleet.silence.failedList(f.r.cfg.LeaseTerm) {
		f.r.cfg.Logger.Warn("listing the stream's shards failed for a while, another worker may try", "error", err)
		f.fleet.resign(ctx)
		return nil
	}
	f.r.cfg.Logger.Warn("listing the stream's shards failed, will retry", "wait", wait, "error", err)
	return nil
}

// takePage makes the rows that a page asks for. Who reads alone waits for the
// whole list, so that a restart can tell by the rows a first start that was cut
// off from a stream that was followed before; in a fleet the stream's own row tells.
func (f *follower) takePage(ctx context.Context, p listed) error {
	if p.complete && p.last {
		f.found = p.found
		children := childrenOf(p.found.shards)
		for _, s := range p.found.shards {
			if reader := f.running[s.id]; reader != nil {
				reader.observe(s, children[s.id], p.found.status)
			}
		}
		f.plan = planLineage(f.r.cfg.StreamARN, f.found.shards, f.leases, !f.fresh)
		if f.fleet != nil && !f.fleet.lists() {
			return nil
		}
		return f.createRows(ctx, f.plan.create)
	}
	if f.fleet == nil || !f.fleet.lists() {
		return nil
	}
	if !p.complete {
		f.found.shards = append(f.found.shards, p.page...)
	}
	if err := f.fleet.describe(ctx, f.decoder, f.fleet.own.Checkpoint); err != nil {
		return err
	}
	return f.createRows(ctx, planPart(f.r.cfg.StreamARN, p.page, f.leases))
}

// complete draws the conclusions that only a whole list allows.
func (f *follower) complete(ctx context.Context) error {
	if f.fleet == nil {
		if err := f.endFirstList(ctx); err != nil {
			return err
		}
		f.fresh = false
	} else if f.fleet.lists() {
		if err := f.fleet.describe(ctx, f.decoder, Latest); err != nil {
			return err
		}
		f.fresh = false
		f.plan.missing = append(f.plan.missing, stranded(f.plan.read, f.leases)...)
	}
	if f.fleet == nil || f.fleet.lists() {
		if err := f.judgeMissing(); err != nil {
			return err
		}
		f.deleteDone(ctx)
	}
	known := f.fleet == nil || f.fleet.lists() || len(f.plan.create)+len(f.plan.missing) == 0
	f.drained = known && f.idleAtAsk && f.settled() && f.allIdle() && f.found.status != streams.StreamStatusEnabling
	return nil
}

// endFirstList notes, for who reads alone, that a first list is complete which
// a worker of a fleet had begun: from now on a shard whose parent nobody knows
// is a loss.
func (f *follower) endFirstList(ctx context.Context) error {
	if f.own.Shard == "" || f.own.Checkpoint != TrimHorizon {
		return nil
	}
	row, err := f.r.cfg.Checkpoints.Claim(ctx, f.own, f.r.cfg.worker())
	if err != nil {
		return err
	}
	row.Checkpoint, row.Label, row.PartitionKey, row.SortKey = Latest, f.decoder.label, f.decoder.partition, f.decoder.sortName
	f.own, err = f.r.cfg.Checkpoints.Release(ctx, row)
	return err
}

// apply starts what may be read: everything, or what fleet says.
func (f *follower) apply(ctx, work context.Context) error {
	if f.fleet != nil {
		f.balance(ctx, work)
	} else if len(f.found.shards) > 0 {
		f.plan = planLineage(f.r.cfg.StreamARN, f.found.shards, f.leases, !f.fresh)
		if err := f.createRows(ctx, f.plan.create); err != nil {
			return err
		}
		for _, s := range f.plan.read {
			// A row that another process has made since the plan may be finished already.
			if f.running[s.id] == nil && !f.leases[s.id].Finished() {
				f.start(ctx, work, s, leases.Hold(f.r.cfg.Checkpoints, f.leases[s.id], 0, time.Now()))
			}
		}
	}
	f.publish()
	return nil
}

// createRows makes rows, and completes rows that others made.
func (f *follower) createRows(ctx context.Context, create []Lease) error {
	rows := make([]Lease, len(create))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callsMax)
	for i, lease := range create {
		group.Go(func() (err error) {
			rows[i], err = f.createRow(ctx, lease)
			return err
		})
	}
	err := group.Wait()
	for _, row := range rows {
		if row.Shard != "" {
			f.note(row)
		}
	}
	if len(create) > 0 {
		f.children = childrenIn(f.leases)
		if f.fleet != nil {
			f.fleet.untold = true
		}
	}
	return err
}

// createRow makes one row, in a fleet only while this worker is the one that
// lists: another may have come to know better.
func (f *follower) createRow(ctx context.Context, lease Lease) (Lease, error) {
	if f.fleet != nil {
		office := f.fleet.holding()[f.r.cfg.StreamARN]
		if office == nil || !office.Trusted() {
			return Lease{}, leases.ErrTrustOver
		}
		var cancel context.CancelFunc
		ctx, cancel = office.Until(ctx)
		defer cancel()
	}
	lease.Whole = lease.Start != ""
	if f.fresh {
		// The oldest shards may be trimmed in part by now. That is no loss:
		// the reader takes up the stream as it is.
		whole, err := holdsStart(ctx, &f.r.cfg, shardInfo{id: lease.Shard, start: lease.Start})
		if err != nil && classify(err) == verdictRetry {
			return Lease{}, err
		}
		lease.Whole = whole
	}
	row, err := f.r.cfg.Checkpoints.Create(ctx, lease)
	if err != nil || !row.Bare {
		return row, err
	}
	row.Stream, row.Parent, row.Start, row.Whole, row.Orphan = lease.Stream, lease.Parent, lease.Start, lease.Whole, lease.Orphan
	return f.r.cfg.Checkpoints.Adopt(ctx, row)
}

// note takes over one row as a call has just returned it.
func (f *follower) note(row Lease) {
	if f.fleet != nil {
		f.fleet.note(f.leases[row.Shard], row)
	}
	f.leases[row.Shard] = row
}

func (f *follower) start(ctx, work context.Context, info shardInfo, held *leases.Held) {
	s := &shardReader{
		cfg:      &f.r.cfg,
		log:      f.r.cfg.Logger,
		slots:    f.slots,
		onIdle:   f.wake,
		onDone:   f.r.countDone,
		info:     info,
		decoder:  f.decoder,
		held:     held,
		progress: progress{at: time.Now()},
	}
	if f.fleet != nil {
		f.fleet.silence.resume(s)
	}
	s.observe(info, f.children[info.id], f.found.status)
	f.running[info.id] = s
	f.r.countMove()
	f.wg.Go(func() {
		err := s.run(ctx, work)
		f.ended <- endedShard{id: info.id, held: held, err: err}
	})
}

func (f *follower) wake() {
	select {
	case f.idle <- struct{}{}:
	default: // somebody has knocked already
	}
}

// take puts back the lease of a shard whose goroutine has ended.
func (f *follower) take(e endedShard) error {
	s := f.running[e.id]
	delete(f.running, e.id)
	if cause := e.held.Cause(); errors.Is(cause, ErrNamesake) {
		e.err = cause
	}
	f.countGone(e)
	f.note(e.held.Lease())
	if f.fleet != nil {
		f.fleet.drop(e.id)
		f.fleet.untold = true
		if errors.Is(e.err, errUnanswered) {
			f.r.cfg.Logger.Warn("a shard is given back", "shard", e.id, "error", e.err)
			f.fleet.silence.gaveBack(s, f.r.cfg.LeaseTerm)
			e.err = nil
		}
		if errors.Is(e.err, ErrLeaseLost) && !errors.Is(e.err, ErrNamesake) {
			f.r.cfg.Logger.Warn("a shard is no longer this worker's", "shard", e.id, "error", e.err)
			e.err = nil
		}
	}
	f.publishRunning()
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
	told := time.Time{}
	for e := range f.ended {
		errs = append(errs, f.take(e))
		if f.fleet != nil && time.Since(told) > tellEvery { // others need not wait for the slowest
			f.fleet.tell(context.Background())
			told = time.Now()
		}
	}
	if f.fleet != nil {
		f.fleet.stop()
	}
	return errors.Join(errs...)
}

// tellEvery is how often at most a worker that stops tells of what it gives up.
const tellEvery = 200 * time.Millisecond

// tellLoss lets the other workers end with this one, where records are lost,
// instead of one after the other as each takes the shard.
func (f *follower) tellLoss(err error) {
	var lost *TrimmedError
	if f.fleet == nil || !errors.As(err, &lost) || errors.Is(err, errToldLost) {
		return
	}
	f.fleet.announce(context.Background(), leases.Loss{Shard: lost.Shard, Checkpoint: lost.Checkpoint})
}
