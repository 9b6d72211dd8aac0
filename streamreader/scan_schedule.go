package streamreader

import (
	"context"
	"errors"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
	"github.com/dynamill/dynamill/streamreader/internal/streamapi"
)

// To see all leases, a worker scans their table. Most of the time it reads only the
// stream's own row instead: a worker that changes shared state increments News there.
// The silence of an owner raises no News. Only the lister scans for that; it evicts
// silent owners and increments News. All workers read the lister's own row, so all of
// them notice when the lister is silent.
const (
	// scansPerTerm is how often, at most, a worker looks at all leases in a
	// term while there is something to divide, and scanRow what each row adds
	// to the wait.
	scansPerTerm = 20
	scanRow      = time.Millisecond
	// watchesPerTerm is how often the worker that lists looks for silent
	// owners: one that dies just after a look is seen at the next one, and
	// given up a term later, within two terms after its death.
	watchesPerTerm = 2
	// scanTerm bounds the term by which a worker looks while there is something to divide.
	scanTerm = 10 * time.Second
	// idleScanTerms, and a quarter of a term for each worker, lie between two
	// looks of the others while there are no news, should news get lost.
	idleScanTerms = 2
	// newsPerTerm is how often a worker listens in a term, at least once in newsMost;
	// with the default term often enough to go on within a second with what
	// another gives up. In a very large fleet it is once in newsWorker for each
	// worker: all listen at one row, and a partition gives 3,000 reads a second
	// (DynamoDB developer guide, "Best practices for designing and using partition keys effectively").
	newsPerTerm = 12
	newsMost    = 5 * time.Second
	newsWorker  = time.Millisecond
)

// scanSchedule says when a worker last read the lease table, and when it does so again.
type scanSchedule struct {
	at            time.Time // all rows were read
	ownAt         time.Time // the stream's own row was read
	listenAt      time.Time
	retryAt       time.Time   // after a failure
	news          int64       // heard last
	formerly      leases.Loss // announced before this worker began
	baselineRead  bool        // the rows were read once
	newsPending   bool        // another worker changed what this one should look at
	rowsUnplanned bool        // no plan was made yet of the rows that were read last
	rows          int
	expiry        time.Time // the first at which a lease may expire, should its owner remain silent
	shift         float64   // of the wait, so that workers do not keep step
}

// noteScan notes that all rows were just read.
func (l *fleet) noteScan(rows map[string]Lease) {
	now := time.Now()
	l.scans.at, l.scans.ownAt, l.scans.newsPending, l.scans.rowsUnplanned, l.scans.rows = now, now, false, true, len(rows)
	l.scans.expiry = now.Add(l.cfg.LeaseTerm)
	for _, row := range rows {
		l.scanByExpiry(row)
	}
	l.scans.shift = l.random.Float64() - 0.5
	if !l.scans.baselineRead {
		l.scans.baselineRead, l.scans.news, l.scans.formerly = true, l.own.News, l.own.Lost
	}
	if l.scans.listenAt.IsZero() {
		l.scans.listenAt = now.Add(l.listenEvery())
	}
}

// scanByExpiry brings the watcher's next scan forward to when the lease may expire.
func (l *fleet) scanByExpiry(row Lease) {
	at := l.changed[row.Shard].Add(l.input().TermOf(row))
	if row.Owner != "" && !row.Finished() && row.OfShard() && at.Before(l.scans.expiry) {
		l.scans.expiry = at
	}
}

// listenEvery is the wait between two times that this worker listens.
func (l *fleet) listenEvery() time.Duration {
	every := max(min(l.cfg.LeaseTerm/newsPerTerm, newsMost), time.Duration(l.plan.Workers)*newsWorker)
	every = min(every, l.cfg.LeaseTerm/leases.RenewalsPerTerm)
	return every + time.Duration((l.random.Float64()-0.5)*float64(every)/8)
}

// scanAt is when the next look at all rows is due.
func (l *fleet) scanAt() time.Time {
	term := l.cfg.LeaseTerm
	soon := l.scanAfter(min(max(min(term, scanTerm)/scansPerTerm, time.Duration(l.scans.rows)*scanRow), term/leases.RenewalsPerTerm))
	watch := l.scanAfter(term / watchesPerTerm)
	switch {
	case l.scans.newsPending, l.drain != nil, l.own.Checkpoint != Latest, l.plan.Vacant > 0, l.plan.Workers != l.workers, l.plan.Seek, l.plan.Surplus:
		return soon
	case l.watches():
		if l.scans.expiry.Before(watch) {
			watch = l.scans.expiry
		}
		if watch.Before(soon) {
			return soon
		}
		return watch
	case l.behind:
		return watch
	}
	return l.scanAfter(idleScanTerms*term + time.Duration(l.plan.Workers)*term/4)
}

func (l *fleet) scanAfter(wait time.Duration) time.Time {
	return l.scans.at.Add(wait + time.Duration(l.scans.shift*float64(wait)/4))
}

// watches reports whether this worker must notice silent owners: because it is the
// lister, or because the lister is silent.
func (l *fleet) watches() bool {
	return l.lists() || l.scans.ownAt.Sub(l.changed[l.cfg.StreamARN]) >= l.input().TermOf(l.own)/2
}

// nextScan is when this worker next reads something of the lease table.
func (l *fleet) nextScan() time.Time {
	next := l.scanAt()
	if l.scans.listenAt.Before(next) {
		next = l.scans.listenAt
	}
	if next.Before(l.scans.retryAt) {
		return l.scans.retryAt
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
	l.scans.ownAt = time.Now()
	l.scans.listenAt = l.scans.ownAt.Add(l.listenEvery())
	if row.News != l.scans.news {
		l.scans.news, l.scans.newsPending = row.News, true
	}
	if h := l.holding()[l.cfg.StreamARN]; h == nil {
		l.date(l.own, row)
		l.own = row
	}
	l.own.Lost = row.Lost
	return l.mayElect() || !l.scans.ownAt.Before(l.scanAt()), nil
}

// lostRecords is the TrimmedError of another worker, heard of since this one began.
func (l *fleet) lostRecords() error {
	if lost := l.own.Lost; lost.Shard != "" && lost != l.scans.formerly {
		return streamapi.Permanent(&TrimmedError{StreamARN: l.cfg.StreamARN, Shard: lost.Shard, Checkpoint: lost.Checkpoint, Err: errAnnouncedLost})
	}
	return nil
}

var errAnnouncedLost = errors.New("another worker has found that")

// tell lets others know that there is something to look at, if there is.
func (l *fleet) sendNews(ctx context.Context) {
	if !l.newsUnsent || ctx.Err() != nil {
		return
	}
	l.announce(ctx, leases.Loss{})
}

// announce raises the news. If that fails, others notice at their next look.
func (l *fleet) announce(ctx context.Context, lost leases.Loss) {
	ctx, cancel := l.cfg.inTime(ctx)
	defer cancel()
	l.newsUnsent = false
	if err := l.cfg.Checkpoints.Announce(ctx, l.cfg.StreamARN, lost); err != nil {
		l.cfg.Logger.Warn("other workers could not be told to look at the leases", "error", err)
	}
}
