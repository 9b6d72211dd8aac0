package streamreader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// shardReader reads one shard from its checkpoint to its end. One goroutine
// runs it; only what mu guards is seen by others.
type shardReader struct {
	cfg     *Config
	log     *slog.Logger
	slots   chan struct{} // holds one token for each shard that is being read or processed right now
	onIdle  func()        // called when the shard has been empty for DrainPolls polls
	onDone  func(records int)
	info    shardInfo
	decoder decoder

	held        *leases.Held
	front       frontier
	iterator    *string          // nil: to be opened
	reopened    bool             // because it was trimmed; nothing was answered since
	silentSince time.Time        // calls fail; zero if the last one did not
	answeredAt  time.Time        // when the stream last gave an iterator or a page
	pending     []change.Record  // fetched, not done yet
	next        *string          // the iterator behind pending; nil if the shard ends there
	fetched     bool             // pending and next are in force
	ahead       chan fetchedPage // the page behind next, on its way; nil if it was not asked for
	savedAt     time.Time

	mu       sync.Mutex
	progress progress
	closed   bool     // the stream lists the shard as closed
	children []string // as the stream lists them
}

// progress is what Stats and Drain want to know of a shard.
type progress struct {
	emptyPolls int       // polls in a row that found nothing, while nothing is in flight
	newest     time.Time // creation of the newest record done; of the first one read while none is
	at         time.Time // the last time that a poll or a batch succeeded
	answered   time.Time // the last time that a page came; zero if none did
}

// errHandover is the cause with which the reading ends when another worker has asked for the shard.
var errHandover = errors.New("another worker has asked for the shard")

// releaseMax bounds the write that gives a lease up.
const releaseMax = 5 * time.Second

type outcome uint8

const (
	outcomeMore  outcome = iota // read on at once
	outcomeIdle                 // nothing there: wait, then read on
	outcomeRetry                // failed: wait, then try again
	outcomeEnded                // the shard is finished
	outcomeFatal
)

// run reads until the shard is finished, ctx ends, the lease is lost or asked
// for, or an error that no retry cures. work is the context of what must be
// finished also when ctx has ended: the batch in hand and the last checkpoint.
func (s *shardReader) run(ctx, work context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work, abort := graceful(ctx, work, s.cfg.StopTimeout)
	defer abort()
	s.held.Arm(func() { stop(ErrLeaseLost); abort() }, func() { stop(errHandover) }, s.describe)
	defer s.held.Leave()
	err := s.follow(ctx, work)
	if s.ahead != nil {
		defer func() { <-s.ahead }() // leave no call behind; the checkpoint need not wait for it
	}
	switch {
	case errors.Is(err, ErrLeaseLost), s.held.Lease().Finished():
		return err
	case !s.held.Trusted():
		return leases.ErrTrustOver // what the row says is no longer ours to change
	}
	if saveErr := s.letGo(work); saveErr != nil && err == nil {
		err = fmt.Errorf("last checkpoint of shard %s: %w", s.info.id, saveErr)
	}
	return err
}

// letGo writes the last checkpoint. Where workers share the stream, the same
// write gives the lease to the one who has asked for it, or to nobody.
func (s *shardReader) letGo(work context.Context) error {
	if s.cfg.Alone {
		return s.save(work)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), releaseMax)
	defer cancel()
	m, unsaved := s.front.unsaved()
	b := newBackoff()
	for {
		err := s.held.Release(ctx, func(l *Lease) {
			if unsaved && !l.Finished() {
				l.Checkpoint = m.sequence
			}
		})
		if err == nil || classify(err) != verdictRetry {
			return err
		}
		if sleep(ctx, b.NextBackOff()) == nil {
			continue
		}
		if unsaved {
			return err
		}
		s.log.Warn("a lease could not be released", "shard", s.info.id, "error", err)
		return nil // it ends by itself, and the row says all that is done
	}
}

func (s *shardReader) follow(ctx, work context.Context) error {
	b := newBackoff()
	if err := s.claim(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		var wait time.Duration
		result, err := s.poll(ctx, work)
		switch {
		case result == outcomeEnded:
			return nil
		case result == outcomeFatal:
			return err
		case ctx.Err() != nil:
			return nil
		case result == outcomeRetry:
			wait = b.NextBackOff()
			s.log.Warn("reading a shard failed, will retry", "shard", s.info.id, "wait", wait, "error", err)
		case result == outcomeIdle:
			b.Reset()
			wait = s.idleWait()
		default:
			b.Reset()
		}
		if sleep(ctx, wait) != nil {
			return nil
		}
	}
	return nil
}

// claim starts where the row's checkpoint says, and makes the row this
// process's own if it reads alone; else it is so already.
func (s *shardReader) claim(ctx context.Context) error {
	if checkpoint := s.held.Lease().Checkpoint; checkpoint != TrimHorizon {
		p, err := s.decoder.position(checkpoint)
		if err != nil {
			return permanentf("checkpoint of shard %s: %w", s.info.id, err)
		}
		s.front.resumeAt(mark{position: p, sequence: checkpoint})
	}
	b := newBackoff()
	for s.cfg.Alone {
		err := s.held.Claim(ctx, s.cfg.worker())
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if classify(err) != verdictRetry {
			return err
		}
		s.log.Warn("claiming a lease failed, will retry", "shard", s.info.id, "error", err)
		if sleep(ctx, b.NextBackOff()) != nil {
			return nil
		}
	}
	return nil
}

// poll fetches a page unless one is in hand, processes it, and takes the step
// behind it. A page that fails half way stays in hand for the next poll.
func (s *shardReader) poll(ctx, work context.Context) (outcome, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return outcomeRetry, context.Cause(ctx)
	}
	empty := false
	if !s.fetched {
		n, err := s.fetch(ctx)
		if err != nil {
			return s.judge(err)
		}
		empty = n == 0
	}
	if result, err := s.processPending(ctx, work); result != outcomeMore {
		return result, err
	}
	// Only now, with everything beside it done, does a missing next iterator
	// mean the end of the shard.
	if s.next == nil {
		return s.finish(work)
	}
	s.iterator, s.next, s.fetched = s.next, nil, false
	if err := s.saveIfDue(work); err != nil {
		return outcomeFatal, err
	}
	s.note(empty)
	if empty {
		return outcomeIdle, nil
	}
	return outcomeMore, nil
}

// judge says what a failed call to the stream means for this shard.
func (s *shardReader) judge(err error) (outcome, error) {
	switch classify(err) {
	case verdictExpired:
		s.iterator = nil // the next poll opens one behind the last record done
		return outcomeRetry, err
	case verdictTrimmed:
		if s.nothingMissed() {
			s.iterator, s.reopened = nil, true
			return outcomeRetry, err
		}
		return outcomeFatal, s.trimmed(err)
	case verdictGone:
		return outcomeFatal, s.trimmed(err)
	case verdictRetry:
		return s.unanswered(err)
	}
	return outcomeFatal, err
}

// nothingMissed reports whether a trimmed iterator can be opened anew without
// losing anything: no record of the shard was ever handed over, and the last
// answer is so fresh that whatever came since is still held. An emulator
// refuses the iterator of a shard that never held a record once other tables
// are written. It is tried once in a row.
func (s *shardReader) nothingMissed() bool {
	return !s.reopened && s.iterator != nil && s.front.reached.sequence == "" && time.Since(s.answeredAt) < retention/2
}

func (s *shardReader) trimmed(err error) error {
	checkpoint := TrimHorizon
	if s.front.reached.sequence != "" {
		checkpoint = s.front.reached.sequence
	}
	return &TrimmedError{StreamARN: s.cfg.StreamARN, Shard: s.info.id, Checkpoint: checkpoint, Err: err}
}

// fetch reads one page and returns its number of records.
func (s *shardReader) fetch(ctx context.Context) (int, error) {
	if s.iterator == nil {
		it, err := openShard(ctx, s.cfg, s.info, s.front.reached.sequence, s.held.Lease().Whole)
		if err != nil {
			return 0, err
		}
		s.iterator, s.answeredAt = it, time.Now()
	}
	out, err := s.page(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading shard %s: %w", s.info.id, err)
	}
	records, marks, err := s.decoder.records(out.Records)
	if err != nil {
		return 0, &permanentError{fmt.Errorf("shard %s: %w", s.info.id, err)}
	}
	s.answeredAt, s.reopened = time.Now(), false
	s.answered()
	s.pending, s.next, s.fetched = records, out.NextShardIterator, true
	s.front.hand(marks...)
	if len(records) > 0 {
		s.noteRead(records[0].Created)
		if s.next != nil {
			s.fetchAhead(ctx)
		}
	}
	return len(records), nil
}

// retention is how long a stream holds records (DynamoDB developer guide, "Change data capture for DynamoDB Streams").
const retention = 24 * time.Hour

// fetchedPage is an answer to GetRecords.
type fetchedPage struct {
	out *dynamodbstreams.GetRecordsOutput
	err error
}

// page returns the page behind s.iterator, which may be on its way already.
func (s *shardReader) page(ctx context.Context) (*dynamodbstreams.GetRecordsOutput, error) {
	if s.ahead == nil {
		return s.getRecords(ctx, s.iterator)
	}
	p := <-s.ahead
	s.ahead = nil
	return p.out, p.err
}

// fetchAhead asks for the page behind s.next while the one before is being
// processed. There is never more than one call on a shard at a time.
func (s *shardReader) fetchAhead(ctx context.Context) {
	ahead, iterator := make(chan fetchedPage, 1), s.next
	s.ahead = ahead
	go func() {
		out, err := s.getRecords(ctx, iterator)
		ahead <- fetchedPage{out, err}
	}()
}

func (s *shardReader) getRecords(ctx context.Context, iterator *string) (*dynamodbstreams.GetRecordsOutput, error) {
	return s.cfg.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{
		ShardIterator: iterator,
		Limit:         aws.Int32(recordsPageMax),
	})
}

// recordsPageMax is the most records that GetRecords returns (API reference of
// DynamoDB Streams, GetRecords).
const recordsPageMax = 1000

// processPending gives the page to the processor, batch by batch, in order.
func (s *shardReader) processPending(ctx, work context.Context) (outcome, error) {
	for len(s.pending) > 0 {
		if ctx.Err() != nil {
			return outcomeRetry, context.Cause(ctx)
		}
		if !s.held.Trusted() {
			return outcomeFatal, leases.ErrTrustOver
		}
		batch := s.pending[:min(len(s.pending), s.cfg.BatchMax)]
		done, err := s.cfg.Processor.Process(work, batch)
		if advanceErr := s.front.advance(done, len(batch)); advanceErr != nil {
			return outcomeFatal, fmt.Errorf("shard %s: %w", s.info.id, advanceErr)
		}
		s.pending = s.pending[done:]
		if done > 0 {
			s.noteDone(batch[:done])
		}
		if err == nil && done < len(batch) {
			err = errShort
		}
		if err != nil {
			err = fmt.Errorf("processing records of shard %s: %w", s.info.id, err)
			if stopsReading(err) {
				return outcomeFatal, err
			}
			if saveErr := s.saveIfDue(work); saveErr != nil {
				return outcomeFatal, saveErr
			}
			return outcomeRetry, err
		}
		if err := s.saveIfDue(work); err != nil {
			return outcomeFatal, err
		}
	}
	return outcomeMore, nil
}

// finish marks the shard finished. It may be called again if it failed.
func (s *shardReader) finish(work context.Context) (outcome, error) {
	s.setEmptyPolls(0)
	s.mu.Lock()
	children := s.children
	s.mu.Unlock()
	err := s.held.Save(work, func(l *Lease) { l.Checkpoint, l.Children = ShardEnd, children })
	switch {
	case err == nil:
		s.front.save(s.front.reached)
		return outcomeEnded, nil
	case classify(err) == verdictRetry:
		return outcomeRetry, err
	}
	return outcomeFatal, err
}

// saveIfDue checkpoints at most once per CheckpointInterval. A write that may
// succeed later is no reason to stop reading: what it would have said is said
// by the next one.
func (s *shardReader) saveIfDue(work context.Context) error {
	if time.Since(s.savedAt) < s.cfg.CheckpointInterval {
		return nil
	}
	err := s.save(work)
	if err != nil && classify(err) == verdictRetry {
		s.log.Warn("checkpoint failed, will retry", "shard", s.info.id, "error", err)
		return nil
	}
	return err
}

func (s *shardReader) save(work context.Context) error {
	m, ok := s.front.unsaved()
	if !ok {
		return nil
	}
	s.savedAt = time.Now()
	if err := s.held.Save(work, func(l *Lease) { l.Checkpoint = m.sequence }); err != nil {
		return err
	}
	s.front.save(m)
	return nil
}
