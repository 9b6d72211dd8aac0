package streamreader

import (
	"context"
	"errors"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// A look at all leases costs a scan of their table. So a worker listens for
// news instead, which are a number in the stream's own row: whoever changes what
// others should know of raises it. That an owner is silent is no news. Only the
// worker that lists looks for that; it gives up what it finds, and tells. As
// the row of who lists is the one that all listen at, all see when that is silent.
const (
	// looksPerTerm is how often, at most, a worker looks at all leases in a
	// term while there is something to divide, and lookRow what each row adds
	// to the wait.
	looksPerTerm = 20
	lookRow      = time.Millisecond
	// watchesPerTerm is how often the worker that lists looks for silent
	// owners: one that dies just after a look is seen at the next one, and
	// given up a term later, within two terms after its death.
	watchesPerTerm = 2
	// looksTerm bounds the term by which a worker looks while there is something to divide.
	looksTerm = 10 * time.Second
	// glanceTerms, and a quarter of a term for each worker, lie between two
	// looks of the others while there are no news, should news get lost.
	glanceTerms = 2
	// newsPerTerm is how often a worker listens in a term, at least once in newsMost;
	// with the default term often enough to go on within a second with what
	// another gives up. In a very large fleet it is once in newsWorker for each
	// worker: all listen at one row, and a partition gives 3,000 reads a second
	// (DynamoDB developer guide, "Best practices for designing and using partition keys effectively").
	newsPerTerm = 12
	newsMost    = 5 * time.Second
	newsWorker  = time.Millisecond
)

// looks is when a worker last read the lease table, and when it does so again.
type looks struct {
	at       time.Time // all rows were read
	ownAt    time.Time // the stream's own row was read
	listenAt time.Time
	retryAt  time.Time   // after a failure
	news     int64       // heard last
	deaf     int64       // losses announced up to here are of former times
	lost     leases.Loss // heard last
	met      bool        // the stream's own row was read once
	called   bool        // there are news
	fresh    bool        // nothing was made yet of the rows that were read
	rows     int
	expiry   time.Time // the first at which a lease may expire, should its owner remain silent
	shift    float64   // of the wait, so that workers do not keep step
}

// lookedNow notes that all rows were just read.
func (l *fleet) lookedNow(rows map[string]Lease) {
	now := time.Now()
	l.looks.at, l.looks.ownAt, l.looks.called, l.looks.fresh, l.looks.rows = now, now, false, true, len(rows)
	l.looks.expiry = now.Add(l.cfg.LeaseTerm)
	for _, row := range rows {
		l.lookByExpiry(row)
	}
	l.looks.shift = l.random.Float64() - 0.5
	if !l.looks.met {
		l.looks.met, l.looks.news, l.looks.deaf = true, l.own.News, l.own.News
	}
	if l.looks.listenAt.IsZero() {
		l.looks.listenAt = now.Add(l.listenEvery())
	}
}

// lookByExpiry has who watches look when the lease may expire.
func (l *fleet) lookByExpiry(row Lease) {
	at := l.changed[row.Shard].Add(l.input().TermOf(row))
	if row.Owner != "" && !row.Finished() && !row.OfStream() && at.Before(l.looks.expiry) {
		l.looks.expiry = at
	}
}

// listenEvery is the wait between two times that this worker listens.
func (l *fleet) listenEvery() time.Duration {
	every := max(min(l.cfg.LeaseTerm/newsPerTerm, newsMost), time.Duration(l.plan.Workers)*newsWorker)
	every = min(every, l.cfg.LeaseTerm/leases.RenewalsPerTerm)
	return every + time.Duration((l.random.Float64()-0.5)*float64(every)/8)
}

// lookAt is when the next look at all rows is due.
func (l *fleet) lookAt() time.Time {
	term := l.cfg.LeaseTerm
	soon := l.lookAfter(min(max(min(term, looksTerm)/looksPerTerm, time.Duration(l.looks.rows)*lookRow), term/leases.RenewalsPerTerm))
	watch := l.lookAfter(term / watchesPerTerm)
	switch {
	case l.looks.called, l.hush != nil, l.own.Checkpoint != Latest, l.plan.Vacant > 0, l.plan.Workers != l.workers:
		return soon
	case l.watches():
		if l.looks.expiry.Before(watch) {
			watch = l.looks.expiry
		}
		if watch.Before(soon) {
			return soon
		}
		return watch
	case l.behind, len(l.asked) > 0:
		return watch
	}
	return l.lookAfter(glanceTerms*term + time.Duration(l.plan.Workers)*term/4)
}

func (l *fleet) lookAfter(wait time.Duration) time.Time {
	return l.looks.at.Add(wait + time.Duration(l.looks.shift*float64(wait)/4))
}

// watches reports whether this worker must see who is silent: because it lists,
// or because who does is silent itself.
func (l *fleet) watches() bool {
	return l.lists() || l.looks.ownAt.Sub(l.changed[l.cfg.StreamARN]) >= l.input().TermOf(l.own)/2
}

// nextLook is when this worker next reads something of the lease table.
func (l *fleet) nextLook() time.Time {
	next := l.lookAt()
	if l.looks.listenAt.Before(next) {
		next = l.looks.listenAt
	}
	if len(l.asked) > 0 && l.acceptAt.Before(next) {
		next = l.acceptAt
	}
	if next.Before(l.looks.retryAt) {
		return l.looks.retryAt
	}
	return next
}

// listen reads the stream's own row, and reports whether it is time to look at all.
func (l *fleet) listen(ctx context.Context) (bool, error) {
	ctx, cancel := l.cfg.inTime(ctx)
	defer cancel()
	row, err := l.cfg.Checkpoints.Get(ctx, l.cfg.StreamARN)
	if err != nil {
		return false, err
	}
	l.looks.ownAt = time.Now()
	l.looks.listenAt = l.looks.ownAt.Add(l.listenEvery())
	if row.News != l.looks.news {
		l.looks.news, l.looks.called = row.News, true
	}
	l.looks.lost = row.Lost
	if row.News < l.looks.deaf {
		l.looks.deaf = 0 // the row was deleted and made anew
	}
	if l.holding()[l.cfg.StreamARN] == nil {
		l.date(l.own, row)
		l.own = row
	}
	return l.mayElect() || !l.looks.ownAt.Before(l.lookAt()), nil
}

// lostRecords is the TrimmedError of another worker, heard of since this one began.
func (l *fleet) lostRecords() error {
	if lost := l.looks.lost; lost.News > l.looks.deaf {
		return &permanentError{&TrimmedError{StreamARN: l.cfg.StreamARN, Shard: lost.Shard, Checkpoint: lost.Checkpoint, Err: errToldLost}}
	}
	return nil
}

var errToldLost = errors.New("another worker has found that")

// tell lets others know that there is something to look at, if there is.
func (l *fleet) tell(ctx context.Context) {
	if !l.untold || ctx.Err() != nil {
		return
	}
	l.announce(ctx, leases.Loss{})
}

// announce raises the news. If that fails, others notice at their next look.
func (l *fleet) announce(ctx context.Context, lost leases.Loss) {
	ctx, cancel := l.cfg.inTime(ctx)
	defer cancel()
	l.untold = false
	if err := l.cfg.Checkpoints.Announce(ctx, l.cfg.StreamARN, lost); err != nil {
		l.cfg.Logger.Warn("other workers could not be told to look at the leases", "error", err)
	}
}
