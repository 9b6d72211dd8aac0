package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// lane works off some of a shard's records, one batch after the other.
type lane struct {
	*shard
	pages   chan []types.Record // closed at the shard's end
	waiting []types.Record
}

// batch is what an invocation is made with.
type batch struct {
	shard    string
	records  []types.Record
	attempts int // failed invocations that count
}

// cut returns a part of the batch.
func (b *batch) cut(from, to int) *batch {
	return &batch{b.shard, b.records[from:to], b.attempts}
}

func (l *lane) run(ctx context.Context) error {
	for {
		b := l.gather(ctx)
		if b == nil {
			return nil
		}
		for {
			if err := l.workOff(ctx, b); err != nil || ctx.Err() != nil {
				return err
			}
			if l.Again == nil || !l.Again() {
				break
			}
		}
		l.settle(len(b.records))
	}
}

// gather makes a batch of what waits; nil when nothing will come.
func (l *lane) gather(ctx context.Context) *batch {
	if len(l.waiting) == 0 {
		select {
		case l.waiting = <-l.pages:
		case <-ctx.Done():
		}
	}
	for len(l.waiting) > 0 && len(l.waiting) < l.BatchSize {
		before := len(l.waiting)
		select {
		case page := <-l.pages:
			l.waiting = append(l.waiting, page...)
		default:
		}
		if len(l.waiting) == before {
			break
		}
	}
	if len(l.waiting) == 0 {
		return nil
	}
	n := min(l.BatchSize, len(l.waiting))
	b := &batch{shard: l.id, records: l.waiting[:n:n]}
	l.waiting = l.waiting[n:]
	return b
}

// workOff invokes the function with the batch until all of it is done or
// discarded, or ctx ends.
//
// The halves of a batch are worked off in their order, and take over how often the
// batch has failed. Lambda halves a batch only if the invocation fails; it cuts one at the place up to which a partial
// response says that records are done, and both are free (Lambda developer guide, "Configuring
// partial batch response" and "Retain discarded records"). Not documented is whether
// without BisectBatch a partial response spends a retry: here it does.
func (l *lane) workOff(ctx context.Context, b *batch) error {
	left := []*batch{b}
	for len(left) > 0 && ctx.Err() == nil {
		b, left = left[0], left[1:]
		done, failed, err := l.attempt(ctx, b)
		if err != nil || ctx.Err() != nil {
			return err
		}
		rest := b.cut(done, len(b.records))
		if len(rest.records) == 0 {
			continue
		}
		splits := l.BisectBatch && (done > 0 || failed != nil && len(rest.records) > 1)
		if !splits {
			rest.attempts++
		}
		switch {
		case l.RetriesMax >= 0 && rest.attempts > l.RetriesMax:
			if err := l.discard(rest, failed); err != nil {
				return err
			}
		case splits && done == 0:
			half := len(rest.records) / 2
			left = slices.Concat([]*batch{rest.cut(0, half), rest.cut(half, len(rest.records))}, left)
		default:
			left = slices.Concat([]*batch{rest}, left)
		}
		l.pause(ctx)
	}
	return nil
}

// attempt invokes the function once. It returns how many of the records are done,
// and how the function failed if it did.
func (l *lane) attempt(ctx context.Context, b *batch) (done int, failed *FunctionError, err error) {
	payload, err := event(l.StreamARN, b.records, l.Corrupt)
	if err != nil {
		return 0, nil, err
	}
	answer, err := l.Function.Invoke(ctx, payload)
	switch {
	case ctx.Err() != nil:
		return 0, nil, nil
	case errors.As(err, &failed):
	case err != nil:
		return 0, nil, fmt.Errorf("invoking the function: %w", err)
	case l.ReportBatchItemFailures:
		done = doneCount(answer, b.records)
	default:
		done = len(b.records)
	}
	if l.Attempted != nil {
		l.Attempted(Attempt{Shard: b.shard, Records: b.records, Retry: b.attempts, Done: done, Failed: failed})
	}
	return done, failed, nil
}

// discard gives a batch up.
func (l *lane) discard(b *batch, why *FunctionError) error {
	if l.OnFailure == nil {
		return nil
	}
	object, err := l.discardedObject(b, why, time.Now())
	if err != nil {
		return fmt.Errorf("discarding a batch: %w", err)
	}
	l.OnFailure.Put(object)
	return nil
}
