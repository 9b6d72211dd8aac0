package target

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Sender sends the write of a target, alone or with others.
type Sender interface {
	// Write sends one write of a target. If it lost the race, current is the item
	// at that moment; nil if there is none.
	Write(ctx context.Context, t *Write) (ended Outcome, current change.Image, err error)
}

// Every calls f for 0 to n-1, many at the same time, and returns all that they return. What some neighbours write
// through their senders goes out together, as soon as each of them waits for a write or has ended.
func (w *Writer) Every(ctx context.Context, n int, f func(ctx context.Context, to Sender, i int) error) []error {
	errs := make([]error, n)
	slots := w.Tables.NewSlots()
	_ = w.Tables.Every(ctx, (n+table.StatementsMax-1)/table.StatementsMax, func(ctx context.Context, number int) error {
		from := number * table.StatementsMax
		end := min(from+table.StatementsMax, n)
		b := &batch{Writer: w, slots: slots, busy: end - from}
		var all sync.WaitGroup
		for i := from; i < end; i++ {
			slots.Take()
			all.Go(func() {
				defer slots.Return()
				errs[i] = f(ctx, &batchSender{batch: b, number: i}, i)
				b.noteIdle(ctx, nil)
			})
		}
		all.Wait()
		return nil
	})
	return errs
}

// Answer is how a write ended, as Sender.Write returns it.
type Answer struct {
	Ended   Outcome
	Current change.Image
}

// Send sends the writes 0 to n-1, many at the same time and neighbours together. Where there is none (nil), the answer is RaceLost
// without an item. It begins no more once one has failed.
func (w *Writer) Send(ctx context.Context, n int, write func(i int) *Write) ([]Answer, error) {
	answers, failed, slots := make([]Answer, n), atomic.Bool{}, w.Tables.NewSlots()
	errs := w.Tables.Every(ctx, (n+table.StatementsMax-1)/table.StatementsMax, func(ctx context.Context, number int) (err error) {
		if failed.Load() {
			return nil
		}
		from := number * table.StatementsMax
		var all []*pendingWrite
		for i := from; i < min(from+table.StatementsMax, n); i++ {
			if t := write(i); t != nil {
				all = append(all, &pendingWrite{Write: t, number: i, done: make(chan struct{})})
			} else {
				answers[i].Ended = RaceLost
			}
		}
		(&batch{Writer: w, slots: slots}).send(ctx, all)
		for _, one := range all {
			<-one.done
			answers[one.number], err = Answer{one.ended, one.current}, cmp.Or(err, one.err)
		}
		if err != nil {
			failed.Store(true)
		}
		return err
	})
	return answers, cmp.Or(errs...)
}

// batch is what some neighbours among the calls write.
type batch struct {
	*Writer
	slots   *table.Slots // of all calls: each holds one, except while it waits for a write, and so does each request that writes
	mu      sync.Mutex
	busy    int // calls that have not ended and do not wait for their turn
	waiting []*pendingWrite
}

// batchSender is one call's place in a batch.
type batchSender struct {
	*batch
	number int
}

// pendingWrite is a write that waits for the batch to go out, then for its outcome.
type pendingWrite struct {
	*Write
	number   int
	replaces []*pendingWrite          // the writes that this one does; nil if it is one itself
	answer   *ddb.BatchStatementError // to its statement, if it goes out alone afterwards
	done     chan struct{}
	ended    Outcome
	current  change.Image
	err      error
}

// Write implements Sender.
func (s *batchSender) Write(ctx context.Context, t *Write) (Outcome, change.Image, error) {
	one := &pendingWrite{Write: t, number: s.number, done: make(chan struct{})}
	s.noteIdle(ctx, one)
	s.slots.Return()
	<-one.done
	s.slots.Take()
	return one.ended, one.current, one.err
}

// noteIdle notes that a call waits for a write, or has ended (nil). The last one that was busy sends what waits.
func (b *batch) noteIdle(ctx context.Context, one *pendingWrite) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one != nil {
		b.waiting = append(b.waiting, one)
	}
	if b.busy--; b.busy > 0 || len(b.waiting) == 0 {
		return
	}
	all := b.waiting
	b.waiting, b.busy = nil, len(all)
	slices.SortFunc(all, func(x, y *pendingWrite) int { return x.number - y.number })
	go b.send(ctx, all)
}

// joinWrites has one write do what different rules want of one item: the item is written, and paid for, once.
func joinWrites(all []*pendingWrite) (writes []*pendingWrite) {
	for _, one := range all {
		i := slices.IndexFunc(writes, func(w *pendingWrite) bool { return w.key == one.key && w.canJoin(one) })
		if i >= 0 {
			if both, fits := writes[i].joinedWith(one.Write); fits {
				parts := append(slices.Clip(writes[i].parts()), one)
				writes[i] = &pendingWrite{Write: both, number: writes[i].number, replaces: parts, done: make(chan struct{})}
				continue
			}
		}
		writes = append(writes, one)
	}
	return writes
}

// parts are the writes that this one does: those that it replaces, or itself alone.
func (w *pendingWrite) parts() []*pendingWrite {
	if w.replaces != nil {
		return w.replaces
	}
	return []*pendingWrite{w}
}

// canJoin reports whether another rule's write may be joined to this one: none of its rule is in it already, and none looks again.
func (w *pendingWrite) canJoin(one *pendingWrite) bool {
	return !one.LooksAgain && !slices.ContainsFunc(w.parts(), func(p *pendingWrite) bool {
		return p.LooksAgain || p.Binding == one.Binding
	})
}

// end tells the caller of a write how it ended. If one that does several has not taken effect, each of these goes out alone: only its own
// condition judges it.
func (b *batch) end(ctx context.Context, one *pendingWrite) {
	for _, part := range one.replaces {
		if one.ended != Written || one.err != nil {
			go b.sendBatch(ctx, []*pendingWrite{part})
			continue
		}
		part.ended = Written
		close(part.done)
	}
	close(one.done)
}

// send sends writes in as few requests as possible. If there are few, or an item is written twice, some go alone.
func (b *batch) send(ctx context.Context, all []*pendingWrite) {
	all = joinWrites(all)
	batches := [][]*pendingWrite{}
	if b.Tables.Batches(table.MayUpdate, len(all)) {
		batches = inBatches(all)
	} else {
		for _, one := range all {
			batches = append(batches, []*pendingWrite{one})
		}
	}
	for _, some := range batches {
		go b.sendBatch(ctx, some)
	}
}

// inBatches divides writes into batches in which each item stands once.
func inBatches(all []*pendingWrite) (batches [][]*pendingWrite) {
	for _, one := range all {
		i := slices.IndexFunc(batches, func(some []*pendingWrite) bool {
			return len(some) < table.StatementsMax && !slices.ContainsFunc(some, func(w *pendingWrite) bool { return w.key == one.key })
		})
		if i < 0 {
			i, batches = len(batches), append(batches, nil)
		}
		batches[i] = append(batches[i], one)
	}
	return batches
}

// sendBatch sends writes in one request. Each is judged by its own condition. A write goes out alone
// if DynamoDB answers anything else: then that answer counts.
func (b *batch) sendBatch(ctx context.Context, some []*pendingWrite) {
	alone := some
	if len(some) > 1 {
		b.slots.Take()
		alone = b.sendStatements(ctx, some)
		b.slots.Return()
	}
	for _, one := range alone {
		go func() {
			b.slots.Take()
			one.ended, one.current, one.err = b.Writer.Write(ctx, one.Write)
			b.slots.Return()
			if one.ended == Written && one.err == nil {
				b.Tables.NoteWrittenAlone(ctx, table.MayUpdate, one.answer)
			}
			b.end(ctx, one)
		}()
	}
}

// sendStatements sends writes as statements, and returns those that are to go out alone.
func (b *batch) sendStatements(ctx context.Context, some []*pendingWrite) (alone []*pendingWrite) {
	var sent []*pendingWrite
	var statements []ddb.BatchStatementRequest
	var owners []string
	for _, one := range some {
		st, fits := one.statement(b.Tables.Reader)
		if !fits {
			alone = append(alone, one)
			continue
		}
		sent, owners = append(sent, one), append(owners, one.Binding.ID)
		statements = append(statements, st)
	}
	if len(statements) == 0 {
		return alone
	}
	responses, err := b.Tables.Statements(ctx, table.MayUpdate, some[0].doing+" and others", owners, statements)
	if responses == nil {
		return some // alone, each fails or succeeds by itself
	}
	for i, r := range responses {
		one := sent[i]
		switch {
		case r.Error == nil:
			one.ended = Written
		case r.Error.Code == ddb.BatchStatementErrorCodeEnumConditionalCheckFailed:
			if one.ended = RaceLost; len(r.Error.Item) > 0 {
				one.current = attributes.ItemFromTable(r.Error.Item)
			}
		case awscall.RetryCode(string(r.Error.Code)): // to the end
			one.ended, one.err = RaceLost, err
		default:
			one.answer, alone = r.Error, append(alone, one)
			continue
		}
		b.end(ctx, one)
	}
	return alone
}
