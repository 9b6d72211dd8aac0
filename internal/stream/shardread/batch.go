package shardread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

const (
	// gatherMax is how long a batch in a shard that is behind waits for more pages: one large batch costs less than many.
	gatherMax = 100 * time.Millisecond
	// keepMax is how long a shard keeps what it has in hand while it waits to try
	// again what failed.
	keepMax = time.Second
	// ownersBefore is how many owners may have ended without a checkpoint before the next one takes smaller batches. They
	// crashed, or lost the lease, in their first batch: a worker that is stopped in good order writes one.
	ownersBefore = 2
	// largePage is the size of a page that probably did not hold all that there was. Behind a smaller one there
	// is little yet: records of this moment, such as those of the engine's own writes.
	largePage = streamapi.PageBytesMax / 2
	// behindLeast is how old a shard's newest record is when the shard counts as
	// behind: times of creation are floored to the second.
	behindLeast = 2 * time.Second
)

var errShort = errors.New("processor returned fewer records done than it was given, and no error")

func (s *Reader) addToHand(p *page) {
	s.reopened, s.end, s.more = false, p.end, p.more
	s.handBytes += p.bytes
	if len(p.records) == 0 {
		return
	}
	if len(s.hand) == 0 {
		s.hand = p.records
		s.noteOldest()
	} else {
		s.hand = append(s.hand, p.records...)
	}
	s.front.hand(p.marks...)
	s.NoteRead(p.records[0].Created)
	s.streak++
}

// limitBatches makes the first batch small if owners ended without a checkpoint: a quarter of the records for each of
// them. A batch that is small enough gets done and saved. The limit grows by an eighth with each.
func (s *Reader) limitBatches() {
	s.batchMax = s.cfg.BatchMax
	switches := s.Held.Lease().Switches
	for n := switches; n > ownersBefore && s.batchMax > 1; n-- {
		s.batchMax = max(1, s.batchMax/4)
	}
	if s.batchMax < s.cfg.BatchMax {
		s.cfg.Logger.Warn("workers keep ending before they save a checkpoint of this shard: the next batch is smaller",
			"shard", s.Info.ID, "owners_since_checkpoint", switches, "batch_max", s.batchMax)
	}
}

// gather adds the pages that follow, as long as all fit into one batch. Only a shard that is behind waits for them.
func (s *Reader) gather(ctx context.Context) {
	enough, cancel := context.WithTimeout(ctx, gatherMax)
	defer cancel()
	fits := func(p *page) bool {
		return p.err == nil && len(p.records) > 0 && len(s.hand)+len(p.records) <= s.batchMax
	}
	for !s.end && len(s.hand) < s.batchMax {
		s.ahead.extend(ctx)
		if p := s.ahead.first(); p != nil && fits(p) {
			s.ahead.take()
			s.answered(p, 0)
			s.addToHand(p)
			continue
		}
		if !s.behind() || !s.ahead.coming() {
			return
		}
		select {
		case <-s.ahead.arrived:
		case <-enough.Done():
			return
		}
	}
}

// behind reports whether more is to be expected behind what is in hand: not
// where the record before came after an empty page, and not where it is new.
func (s *Reader) behind() bool {
	return s.streak > 1 && time.Since(s.hand[len(s.hand)-1].Created) > behindLeast
}

// apply gives one batch to the processor and takes over what it says.
func (s *Reader) apply(ctx, work context.Context) (outcome, error) {
	if result, err := s.awaitTurn(ctx, work); result != outcomeMore {
		return result, err
	}
	if !s.Held.Valid() {
		<-s.cfg.Turns
		return outcomeFatal, leases.ErrNotRenewed
	}
	batch := s.hand[:min(len(s.hand), s.batchMax)]
	done, err := s.processor.Process(work, batch)
	s.cfg.Applies.Add(1) // also where it failed: it may have written
	<-s.cfg.Turns
	if advanceErr := s.front.advance(done, len(batch)); advanceErr != nil {
		return outcomeFatal, fmt.Errorf("shard %s: %w", s.Info.ID, advanceErr)
	}
	s.lastBatchAt = time.Now()
	if s.hand = s.hand[done:]; len(s.hand) == 0 {
		s.emptyHand()
	}
	s.noteOldest()
	if done > 0 {
		s.noteDone(batch[:done])
		s.batchMax = min(s.batchMax+s.batchMax/8+1, s.cfg.BatchMax)
		s.failing.Reset()
	}
	if err == nil && done < len(batch) {
		err = errShort
	}
	if err != nil {
		err = fmt.Errorf("processing records of shard %s: %w", s.Info.ID, err)
		if streamapi.StopsReading(err) {
			return outcomeFatal, err
		}
	}
	if saveErr := s.saveIfDue(work); saveErr != nil {
		return outcomeFatal, saveErr
	}
	if err != nil {
		return outcomeRetry, err
	}
	return outcomeMore, nil
}

// awaitTurn returns outcomeMore when a batch of this shard may be processed: shards take turns in the order of asking.
func (s *Reader) awaitTurn(ctx, work context.Context) (outcome, error) {
	for {
		select {
		case s.cfg.Turns <- struct{}{}:
			err := context.Cause(ctx) // read once: the next answer may differ
			if err != nil {
				<-s.cfg.Turns
				return outcomeRetry, err
			}
			return outcomeMore, nil
		case <-s.saveDue():
			if err := s.saveIfDue(work); err != nil {
				return outcomeFatal, err
			}
		case <-ctx.Done():
			return outcomeRetry, context.Cause(ctx)
		}
	}
}

func (s *Reader) emptyHand() {
	s.cfg.Buffer.release(s.handBytes)
	s.hand, s.handBytes = nil, 0
}

// yield makes room while this shard waits to retry: it forgets what it has read ahead, and what it has in hand if the
// wait is long or others wait for room. It keeps what is so old that the stream may soon drop it.
func (s *Reader) yield(wait time.Duration) {
	if len(s.hand) == 0 || time.Since(s.hand[0].Created) > retention/2 {
		return
	}
	s.ahead.drop()
	if wait <= keepMax && !s.cfg.Buffer.short() {
		return
	}
	s.first = s.front.forget()
	s.ahead.iterator = nil
	s.end = false
	s.emptyHand()
}
