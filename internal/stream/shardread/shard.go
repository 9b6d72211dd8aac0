// Package shardread reads one shard from its checkpoint to its end: it fetches pages ahead within a bound for all shards,
// hands batches to the processor, and checkpoints what is done. The lease that its caller holds says whether it may.
package shardread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// Reader reads one shard from its checkpoint to its end. One goroutine
// runs it; only what mu guards is seen by others.
type Reader struct {
	cfg     *Config
	Info    streamapi.Shard
	random  *rand.Rand         // the shard's own numbers: the same names draw the same ones
	failing *streamapi.Backoff // between tries, until something is done

	processor   Processor
	Held        *leases.Held
	Release     context.CancelFunc // ends the context of Run: the batch in hand is finished, and the lease released
	front       frontier
	ahead       *ahead
	reopened    bool            // because it was trimmed; nothing was answered since
	silentSince time.Time       // calls fail, not counting waits for room; zero if the last one did not
	answeredAt  time.Time       // when the stream last gave an iterator or a page
	hand        []change.Record // taken, not done yet: a batch, or the rest of a page that is larger
	handBytes   int64           // of the buffer, by the pages that hand came from
	lastBatchAt time.Time       // when a batch was last done
	batchMax    int             // records of the next batch
	streak      int             // pages in a row that had records
	first       string          // the sequence number of the first record that was put back; "" if none was
	end         bool            // behind hand the shard has nothing
	more        bool            // records are likely to wait behind hand
	pauses      int             // between two pages, since the shard was opened
	savedAt     time.Time

	mu       sync.Mutex
	progress Progress
	closed   bool     // the stream lists the shard as closed
	children []string // as the stream lists them
}

// Progress is what Stats and Drain want to know of a shard.
type Progress struct {
	EmptyPolls int       // polls in a row that found nothing, while nothing is in flight
	quietPolls int       // of these, those made since any worker was seen to apply records
	quietSince int64     // the count of applied batches that quietPolls belongs to
	recordsAt  time.Time // the last page with records came; before the first, when the shard was opened
	unsaved    bool      // something is done that no checkpoint names yet
	Newest     time.Time // creation of the newest record done; of the first one read while none is
	oldest     time.Time // creation of the oldest record that was read and is not done; zero if there is none
	At         time.Time // the last time that a poll or a batch succeeded
	Answered   time.Time // the last time that a page came; zero if none did
}

// ReleaseMax bounds the write that gives a lease up.
const ReleaseMax = 5 * time.Second

// ErrNotReleased ends the reading of a shard whose last checkpoint could not be written within ReleaseMax, though a later write might
// succeed. The lease ends by itself, and what was done since the checkpoint before comes again.
var ErrNotReleased = errors.New("the last checkpoint could not be written in time")

type outcome uint8

const (
	outcomeMore  outcome = iota // read on at once
	outcomeIdle                 // nothing more there: wait, then read on
	outcomeRetry                // failed: wait, then try again
	outcomeEnded                // the shard is finished
	outcomeFatal
)

// New makes the reader of a shard whose lease this worker holds.
func New(cfg *Config, info streamapi.Shard, held *leases.Held) *Reader {
	return &Reader{
		cfg: cfg, Info: info, Held: held, processor: cfg.Processor, ahead: newAhead(cfg, info),
		random:   rand.New(rand.NewPCG(streamapi.NameHash(cfg.WorkerID), streamapi.NameHash(info.ID))),
		progress: Progress{At: time.Now(), recordsAt: time.Now()},
	}
}

// Run reads until the shard is finished, ctx ends, the lease is lost, or an error comes that no retry cures. work
// lasts longer than ctx: for the batch in hand and the last checkpoint.
func (s *Reader) Run(ctx, work context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work, abort := pace.Graceful(ctx, work, s.cfg.StopTimeout)
	defer abort()
	s.Held.Arm(func() { stop(leases.ErrLost); abort() }, s.describe)
	defer s.Held.Leave()
	defer s.ahead.drop() // waits for the call under way; the checkpoint need not
	s.update(func(p *Progress) {
		if p.Newest.IsZero() {
			p.Newest = s.Held.Lease().Newest // until a page tells, the shard is that far behind
		}
	})
	err := s.follow(ctx, work)
	s.ahead.interrupt()
	s.emptyHand()
	switch {
	case errors.Is(err, leases.ErrLost), s.Held.Lease().Finished():
		return err
	case !s.Held.Valid():
		return leases.ErrNotRenewed // what the row says is no longer ours to change
	}
	if saveErr := s.releaseLease(work); saveErr != nil && err == nil {
		err = fmt.Errorf("shard %s: %w", s.Info.ID, saveErr)
	}
	return err
}

// releaseLease writes the last checkpoint and releases the lease, in one write.
func (s *Reader) releaseLease(work context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), ReleaseMax)
	defer cancel()
	m, unsaved := s.front.unsaved()
	b := streamapi.NewBackoff(s.cfg.WorkerID + s.Info.ID)
	for {
		err := s.Held.Release(ctx, func(l *leases.Lease) {
			if unsaved {
				checkpointOf(m)(l)
			}
		})
		if err == nil || streamapi.Classify(err) != streamapi.VerdictRetry {
			return err
		}
		if pace.Sleep(ctx, b.NextBackOff()) == nil {
			continue
		}
		if unsaved {
			return fmt.Errorf("%w: %w", ErrNotReleased, err)
		}
		s.cfg.Logger.Warn("a lease could not be released", "shard", s.Info.ID, "error", err)
		return nil // it ends by itself, and the row says all that is done
	}
}

func (s *Reader) follow(ctx, work context.Context) error {
	s.failing = streamapi.NewBackoff(s.cfg.WorkerID + s.Info.ID)
	if err := s.open(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := s.resume(); err != nil {
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
			wait = s.failing.NextBackOff()
			s.yield(wait)
			s.cfg.Logger.Warn("reading a shard failed, will retry", "shard", s.Info.ID, "wait", wait, "error", err)
		case result == outcomeIdle:
			s.failing.Reset()
			wait = s.pause() - time.Since(s.answeredAt)
		default:
			s.failing.Reset()
		}
		if pace.Sleep(ctx, wait) != nil {
			return nil
		}
	}
	return nil
}

func (s *Reader) resume() error {
	s.limitBatches()
	checkpoint := s.Held.Lease().Checkpoint
	if checkpoint == leases.TrimHorizon {
		return nil
	}
	p, err := change.NewPosition(s.cfg.Decoder.Label, checkpoint)
	if err != nil {
		return streamapi.Permanentf("checkpoint of shard %s: %w", s.Info.ID, err)
	}
	s.front.resumeAt(streamapi.Mark{Position: p, Sequence: checkpoint})
	return nil
}

// poll takes the next page unless something is in hand, and applies one batch. What fails stays in hand for the next poll.
func (s *Reader) poll(ctx, work context.Context) (outcome, error) {
	if len(s.hand) == 0 && !s.end {
		p, result, err := s.next(ctx, work)
		if result != outcomeMore {
			return result, err
		}
		s.addToHand(p)
		if len(p.records) == 0 && !s.end {
			return s.idled(work, p)
		}
		s.gather(ctx)
	}
	s.ahead.extend(ctx)
	if len(s.hand) > 0 {
		if result, err := s.apply(ctx, work); result != outcomeMore || len(s.hand) > 0 {
			return result, err
		}
	}
	// Only now, with everything before it done, does a missing next iterator
	// mean the end of the shard.
	if s.end {
		return s.finish(work)
	}
	s.Note(false, 0)
	if !s.more && !s.isClosed() {
		return outcomeIdle, nil
	}
	return outcomeMore, nil
}

// next waits for a page and returns it with outcomeMore, or says what came
// instead. Nothing is in hand, and all before the page is done.
func (s *Reader) next(ctx, work context.Context) (*page, outcome, error) {
	began := time.Now()
	for {
		if ctx.Err() != nil { // also if a page has arrived at the same time
			return nil, outcomeRetry, context.Cause(ctx)
		}
		if p := s.ahead.first(); p != nil {
			s.ahead.take()
			s.answered(p, p.requested.Sub(began))
			if p.err != nil {
				result, err := s.judge(p.err)
				return nil, result, err
			}
			return p, outcomeMore, nil
		}
		s.ahead.start(ctx, s.place())
		select {
		case <-s.ahead.arrived:
		case <-s.saveDue():
			if err := s.saveIfDue(work); err != nil {
				return nil, outcomeFatal, err
			}
		case <-ctx.Done():
			return nil, outcomeRetry, context.Cause(ctx)
		}
	}
}

// idled takes the step behind a page without records.
func (s *Reader) idled(work context.Context, p *page) (outcome, error) {
	s.streak = 0
	if err := s.saveIfDue(work); err != nil {
		return outcomeFatal, err
	}
	// A page that was requested while a batch was being applied may lack what the batch wrote.
	s.Note(!p.requested.Before(s.lastBatchAt), p.applies)
	return outcomeIdle, nil
}

// place is where the shard is to be opened when nothing is in hand.
func (s *Reader) place() streamapi.Place {
	return streamapi.Place{After: s.front.reached.Sequence, At: s.first, Whole: s.Held.Lease().Whole}
}

func (s *Reader) judge(err error) (outcome, error) {
	switch streamapi.Classify(err) {
	case streamapi.VerdictExpired:
		s.ahead.iterator = nil // behind the last record done
		return outcomeRetry, err
	case streamapi.VerdictTrimmed:
		if s.nothingMissed() {
			s.ahead.iterator = nil
			s.reopened = true
			return outcomeRetry, err
		}
		return outcomeFatal, s.trimmed(err)
	case streamapi.VerdictGone:
		return outcomeFatal, s.trimmed(err)
	case streamapi.VerdictRetry:
		return s.unanswered(err)
	}
	return outcomeFatal, err
}

// nothingMissed reports whether a trimmed iterator can be opened anew, once, without losing anything: no record was handed over,
// and the stream still holds all since the last answer. An emulator refuses the iterator of a shard that
// never held a record once other tables are written.
func (s *Reader) nothingMissed() bool {
	return !s.reopened && s.ahead.opened() && s.front.reached.Sequence == "" && time.Since(s.answeredAt) < retention/2
}

func (s *Reader) trimmed(err error) error {
	checkpoint := cmp.Or(s.front.reached.Sequence, leases.TrimHorizon)
	return &streamapi.TrimmedError{StreamARN: s.cfg.StreamARN, Shard: s.Info.ID, Checkpoint: checkpoint, Err: err}
}

// retention is how long a stream holds records (DynamoDB developer guide, "Change data capture for DynamoDB Streams").
const retention = 24 * time.Hour
