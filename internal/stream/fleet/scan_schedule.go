package fleet

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

// A worker scans all leases rarely and reads the stream's own row often: a worker that changes shared state increments News there.
// An owner's silence raises no News; the lister scans for that, evicts silent owners and increments News. All workers
// read the lister's own row, so all of them notice when the lister is silent.
const (
	// scansPerTerm bounds the scans in a term while there is something to divide; scanRow is what each row adds to the wait.
	scansPerTerm = 20
	scanRow      = time.Millisecond
	// watchesPerTerm is how often the lister scans for silent owners: it evicts one within two terms after its death.
	watchesPerTerm = 2
	// scanTerm bounds the term by which a worker scans while there is something to divide.
	scanTerm = 10 * time.Second
	// idleScanTerms, and a quarter of a term for each worker, pass between two
	// scans of the others while there are no news, should news get lost.
	idleScanTerms = 2
	// newsPerTerm is how often a worker listens in a term, at least once in newsMost: by default, within a second. In a very large
	// fleet it is once in newsWorker for each worker, because a partition gives 3,000 reads a second
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
	retryAt       time.Time // after a failure
	news          int64     // heard last
	baselineRead  bool      // the rows were read once
	newsPending   bool      // another worker has changed something since the last scan
	rowsUnplanned bool      // no plan was made yet of the rows that were read last
	expiry        time.Time // the first at which a lease may expire, should its owner remain silent
	shift         float64   // of the wait, so that workers do not keep step
}

func (m *Member) noteScan() {
	now := time.Now()
	m.scans.at, m.scans.ownAt, m.scans.newsPending, m.scans.rowsUnplanned = now, now, false, true
	m.scans.expiry = now.Add(m.cfg.Worker.Term)
	for _, row := range m.Shards {
		m.scanByExpiry(row)
	}
	m.scans.shift = m.random.Float64() - 0.5
	if !m.scans.baselineRead {
		m.scans.baselineRead, m.scans.news = true, m.Own().News
	}
	if m.scans.listenAt.IsZero() {
		m.scans.listenAt = now.Add(m.listenEvery())
	}
}

// scanByExpiry brings the watcher's next scan forward to when the lease may expire.
func (m *Member) scanByExpiry(row leases.Lease) {
	at := m.changed[row.Shard].Add(m.input().TermOf(row))
	if row.Owner != "" && !row.Finished() && row.OfShard() && at.Before(m.scans.expiry) {
		m.scans.expiry = at
	}
}

func (m *Member) listenEvery() time.Duration {
	every := max(min(m.cfg.Worker.Term/newsPerTerm, newsMost), time.Duration(m.Plan.Workers)*newsWorker)
	every = min(every, m.cfg.Worker.Term/leases.RenewalsPerTerm)
	return every + time.Duration((m.random.Float64()-0.5)*float64(every)/8)
}

func (m *Member) scanAt() time.Time {
	term := m.cfg.Worker.Term
	soon := m.scanAfter(min(max(min(term, scanTerm)/scansPerTerm, time.Duration(len(m.Shards))*scanRow), term/leases.RenewalsPerTerm))
	watch := m.scanAfter(term / watchesPerTerm)
	switch {
	case m.scans.newsPending, m.drain != nil, m.Own().Checkpoint != leases.Latest, m.Plan.Vacant > 0, m.Plan.Workers != m.workers, m.Plan.Seek,
		m.Plan.Surplus:
		return soon
	case m.watches():
		if m.scans.expiry.Before(watch) {
			watch = m.scans.expiry
		}
		if watch.Before(soon) {
			return soon
		}
		return watch
	case m.Behind:
		return watch
	}
	return m.scanAfter(idleScanTerms*term + time.Duration(m.Plan.Workers)*term/4)
}

func (m *Member) scanAfter(wait time.Duration) time.Time {
	return m.scans.at.Add(wait + time.Duration(m.scans.shift*float64(wait)/4))
}

// watches reports whether this worker must notice silent owners: because it is the
// lister, or because the lister is silent.
func (m *Member) watches() bool {
	return m.Lists() || m.scans.ownAt.Sub(m.changed[m.cfg.StreamARN]) >= m.input().TermOf(m.Own())/2
}

// NextScan is when this worker next reads something of the lease table.
func (m *Member) NextScan() time.Time {
	next := m.scanAt()
	if m.scans.listenAt.Before(next) {
		next = m.scans.listenAt
	}
	if next.Before(m.scans.retryAt) {
		return m.scans.retryAt
	}
	return next
}

// ScanDue reports whether all rows are to be read now. It reads the stream's own row, if it is
// time for that, to hear of news.
func (m *Member) ScanDue(ctx context.Context) (bool, error) {
	switch now := time.Now(); {
	case now.Before(m.scans.retryAt):
		return false, nil
	case !now.Before(m.scanAt()):
		return true, nil
	case now.Before(m.scans.listenAt):
		return false, nil
	}
	due, err := m.listen(ctx)
	if err == nil && !due {
		m.failing.Reset()
	}
	return due, err
}

// PostponeScan puts the next scan off after one that failed, and returns for how long.
func (m *Member) PostponeScan() time.Duration {
	wait := m.failing.NextBackOff()
	m.scans.retryAt = time.Now().Add(wait)
	return wait
}

// ScanSucceeded notes that all rows were read, and what follows was done.
func (m *Member) ScanSucceeded() { m.failing.Reset() }

// ScanSoon has the next scan of all rows not wait for news.
func (m *Member) ScanSoon() { m.scans.newsPending = true }

// ScannedAt is when all rows were last read.
func (m *Member) ScannedAt() time.Time { return m.scans.at }

// HeardAt is when all rows, or the stream's own one alone, were last read.
func (m *Member) HeardAt() time.Time { return m.scans.ownAt }

// listen reads the stream's own row, and reports whether it is time to scan all.
func (m *Member) listen(ctx context.Context) (bool, error) {
	ctx, cancel := m.cfg.Worker.InTime(ctx)
	defer cancel()
	row, err := m.cfg.Store.Get(ctx, m.cfg.StreamARN)
	if err != nil {
		return false, err
	}
	m.scans.ownAt = time.Now()
	m.scans.listenAt = m.scans.ownAt.Add(m.listenEvery())
	if row.News != m.scans.news {
		m.scans.news, m.scans.newsPending = row.News, true
	}
	switch {
	case row.Shard == "":
		delete(m.rows, m.cfg.StreamARN)
	case m.ListLease() == nil:
		m.Note(row)
	}
	return m.mayElect() || !m.scans.ownAt.Before(m.scanAt()), nil
}

// SendNews lets others know that there is something to scan for, if there is. If that fails, they
// notice at their next scan.
func (m *Member) SendNews(ctx context.Context) {
	if !m.newsUnsent || ctx.Err() != nil {
		return
	}
	ctx, cancel := m.cfg.Worker.InTime(ctx)
	defer cancel()
	m.newsUnsent = false
	if err := m.cfg.Store.Announce(ctx, m.cfg.StreamARN); err != nil {
		m.cfg.Logger.Warn("other workers could not be told to look at the leases", "error", err)
	}
}
