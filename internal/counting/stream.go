package counting

import (
	"context"
	"fmt"
	"sync"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardlist"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
	"github.com/dynamill/dynamill/internal/tally"
)

const (
	retryTime  = 5 * time.Minute
	emptyPolls = 3                      // after so many empty pages in a row the end of an open shard counts as reached
	spacing    = 250 * time.Millisecond // a shard may be read five times a second (DynamoDB Streams API, GetRecords)
	atOnce     = 8                      // shards that are read side by side
)

// reader reads the records that the count needs: of each shard from where its readers may be, to what was written last.
type reader struct {
	*count
	lister  shardlist.Lister
	decoder streamapi.Decoder

	turn  chan struct{} // has a token while no goroutine reads on
	until time.Time     // records that were made later end the reading of a shard

	mu     sync.Mutex // guards what follows, and what shards know; the goroutine that reads on is the only one to write
	shards map[string]*shard
	order  []*shard               // parents first
	lanes  map[string]lanes.Shard // the generation's rows of shards, as last read
	extent *lanes.CountExtent     // how far the count had read when it began to compare; nil before

	lateUntil time.Time // no record that an earlier count must have known was created later
}

// shard is how far one shard is read.
type shard struct {
	info     streamapi.Shard
	whole    bool
	finished bool   // its readers are done with it, or the count is
	start    string // padded: the count reads what follows
	at       string // padded: how far it has read
	late     []lateRecord
}

// lateRecord is a record that changes something, for a look at how far earlier counts have read.
type lateRecord struct {
	position string
	created  time.Time
}

// claim takes the place of a lease. It returns the position up to which the shard's readers are done: padded.
func (s *shard) claim(l leases.Lease) (upTo string) {
	switch {
	case l.Finished() && s.info.End == "": // the list is older than the lease: where the shard ends shows when it is read
		return doneUpTo(l)
	case l.Finished():
		s.finished, s.start = true, lanes.Pad(s.info.End)
	default:
		s.start = doneUpTo(l)
	}
	s.at = max(s.at, s.start)
	return s.start
}

// rewind has the shard read from its beginning.
func (s *shard) rewind() {
	s.finished, s.start, s.at = false, "", s.first()
}

// first is the position before the shard's first record: no record of its parents is later.
func (s *shard) first() string { return lanes.Pad(streamapi.Before(s.info.Start)) }

// holds reports whether a position is that of a record of the shard, or behind one.
func (s *shard) holds(position string) bool { return position > s.first() }

// list finds shards. One that is new is read from its beginning.
func (r *reader) list(ctx context.Context) error {
	listed, err := awscall.Persist(ctx, retryTime, func() (shardlist.Listing, error) { return r.lister.List(ctx) })
	if err != nil {
		return fmt.Errorf("listing the shards of the stream: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decoder = listed.Decoder
	for _, info := range shardlist.InOrder(shardlist.ByID(listed.Shards)) {
		s := r.shards[info.ID]
		if s == nil {
			s = &shard{}
			r.shards[info.ID], r.order = s, append(r.order, s)
			s.info = info
			s.at = s.first()
		}
		s.info = info
	}
	return nil
}

// readOn reads the generation's rows of shards, and then all that was written before to the shards, each behind its parent. Shards that
// were not listed at first may be children of others. Shards that are found behind those wait for the next call.
func (r *reader) readOn(ctx context.Context) error {
	return r.readFor(ctx, func() bool { return false })
}

// readFor is readOn, unless enough is known when the goroutines that came before have read on.
func (r *reader) readFor(ctx context.Context, enough func() bool) error {
	select {
	case <-r.turn:
		defer func() { r.turn <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if enough() {
		return nil
	}
	r.until = time.Now().Add(r.Margin)
	for reads, found := 0, -1; reads < 2 && found != len(r.order); reads++ {
		rows, err := r.Generation.Shards(ctx)
		if err != nil {
			return err
		}
		if err := r.list(ctx); err != nil {
			return err
		}
		r.mu.Lock()
		r.lanes = rows // only now: a shard that has a row and is not listed counts as one that the stream has forgotten
		r.mu.Unlock()
		found = len(r.order)
		if err := r.readAll(ctx); err != nil {
			return err
		}
		if err := r.list(ctx); err != nil { // a shard that was read to its end may have children by now
			return err
		}
	}
	return nil
}

// readAll reads all shards that are known. Those of one depth are read side by side.
func (r *reader) readAll(ctx context.Context) error {
	waiting := r.order
	for len(waiting) > 0 {
		var now, later []*shard
		pending := map[string]bool{}
		for _, s := range waiting {
			pending[s.info.ID] = true
		}
		for _, s := range waiting {
			if pending[s.info.Parent] {
				later = append(later, s)
			} else {
				now = append(now, s)
			}
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for _, s := range now {
			if p := r.shards[s.info.Parent]; !s.finished && (p == nil || p.finished) {
				group.Go(func() error { return r.read(ctx, s) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
		waiting = later
	}
	return nil
}

// read reads a shard from where it was left: all that was written before.
func (r *reader) read(ctx context.Context, s *shard) error {
	tail := streamapi.Tail{Streams: r.Streams, StreamARN: r.StreamARN, Shard: s.info, EmptyPolls: emptyPolls, Spacing: spacing,
		Until: r.until}
	from, before := streamapi.Place{Whole: s.whole}, s.at
	if after := lanes.Unpad(s.at); after != "" && s.at != s.first() {
		from.After = after
	}
	_, err := awscall.Persist(ctx, retryTime, func() (struct{}, error) {
		err := tail.Read(ctx, from, func(page []streams.Record, last bool) error {
			records, marks, err := streamapi.Records(r.decoder, page)
			if err != nil {
				return streamapi.Permanent(err)
			}
			for i := range records {
				if err := r.take(s, &records[i]); err != nil {
					return streamapi.Permanent(err)
				}
				from = streamapi.Place{After: marks[i].Sequence}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			s.finished = last
			return nil
		})
		return struct{}{}, err
	})
	if err != nil && (streamapi.Classify(err) == streamapi.VerdictExpired || awscall.Passes(err) && s.at > before) {
		return r.read(ctx, s)
	}
	return asErrAgain(s.info.ID, err)
}

// asErrAgain has a count begin anew that reads what the stream has dropped meanwhile.
func asErrAgain(shard string, err error) error {
	if verdict := streamapi.Classify(err); err != nil && (verdict == streamapi.VerdictTrimmed || verdict == streamapi.VerdictGone) {
		return errAgain{"the stream has dropped records of shard " + shard}
	}
	return err
}

// take keeps what one record changes.
func (r *reader) take(s *shard, rec *change.Record) error {
	position := lanes.Pad(rec.Position.SequenceNumber())
	if position <= s.at {
		return nil
	}
	before, _ := r.Generation.Amounts(rec.Key, rec.Old) // readers set aside what the rule cannot read
	after, _ := r.Generation.Amounts(rec.Key, rec.New)
	if differences := tally.Differences(before, after); len(differences) > 0 {
		if r.isLate(s, position, rec.Created) {
			return errAgain{"a record of shard " + s.info.ID + " came late: the scan may already include it"}
		}
		if r.Purpose == Verify && !rec.Created.After(r.lateUntil) {
			s.late = append(s.late, lateRecord{position, rec.Created})
		}
		if err := r.evidence.addRecord(rec.Key, after, s.info.ID, position, differences); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.at = position // only now: a goroutine that finds it must find what the record changes
	return nil
}

func (r *reader) setExtent(m lanes.CountExtent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.extent = &m
}

// isLate reports whether a record comes behind what the count had read when it began to compare, and may have been written before the end
// of the scan. What it changes is then known already, perhaps.
func (r *reader) isLate(s *shard, position string, created time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.extent != nil && position > r.extent.Read[s.info.ID] && !created.After(r.extent.Until)
}

// positions are how far each shard is read.
func (r *reader) positions() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]string{}
	for id, s := range r.shards {
		all[id] = s.at
	}
	return all
}

// readsAll reports whether the count reads every record that rows of groups may hold: then it comes by all of their groups. It does not if
// workers added records to the generation, and saved their checkpoints behind them, before the count began.
func (r *reader) readsAll() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, row := range r.lanes {
		if s := r.shards[id]; s == nil || row.From < s.start {
			return false
		}
	}
	return true
}

// opened are the generation's rows of shards, as last read.
func (r *reader) opened() map[string]lanes.Shard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lanes
}

// knowsAll reports whether the count has read all that the rows of some lanes hold.
func (r *reader) knowsAll(hw map[string]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for lane, position := range hw {
		if !r.knows(lane, position) {
			return false
		}
	}
	return true
}

// knows returns whether the count has read what a lane's row holds.
func (r *reader) knows(lane, hw string) bool {
	known, opened, listed := "", false, false
	for id, row := range r.lanes {
		if row.Lane != lane {
			continue
		}
		opened = true
		switch s := r.shards[id]; {
		case s == nil:
		case !r.isReached(s): // its place is behind all records of its parent, and some of those are not read
			listed = true
		case s.at != lanes.Pad(streamapi.Highest):
			known, listed = max(known, s.at), true
		case s.info.End != "": // all of this shard is known, and nothing of its children
			known, listed = max(known, lanes.Pad(s.info.End)), true
		}
	}
	return hw <= known || opened && !listed // the stream has forgotten the lane's shards long ago
}

// isReached reports whether the count has read all that comes before a shard.
func (r *reader) isReached(s *shard) bool {
	p := r.shards[s.info.Parent]
	return p == nil || p.finished
}

// lateFor returns a shard with a record that the count of an extent must have known, and has not read; "" if there is none.
func (r *reader) lateFor(m lanes.CountExtent) string {
	for id, s := range r.shards {
		for _, rec := range s.late {
			if rec.position > r.lanes[id].From && rec.position > m.Read[id] && !rec.created.After(m.Until) {
				return id
			}
		}
	}
	return ""
}
