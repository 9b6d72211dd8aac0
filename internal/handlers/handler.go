package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dynamill/dynamill/change"
)

// Processor applies records. records[:done] are durable when it returns; an
// error says why the record after them is not. Records and their images point
// into the payload of the invocation: they must not be kept after Process has returned.
type Processor interface {
	Process(ctx context.Context, records []change.Record) (done int, err error)
}

// Rederiver brings the effects of the records' items, those on other items among
// them (copies on children), to what the items' current state asks for. Images are
// nil and positions zero where they could not be read. No record up to those
// positions takes the items back afterwards. Records of one item may come in any
// order, and again. As with a Processor, they must not be kept.
type Rederiver interface {
	RederiveRecords(ctx context.Context, records []change.Record) error
}

// Parker sets records aside that can never be read. The id is the position (stream label and
// sequence number), or a digest of raw where there is none; parking one again under the same id must
// change nothing. The code is such as "record.value", the reason is a sentence. raw is the record's
// JSON as it came; it may be larger than an item can be.
type Parker interface {
	ParkRecord(ctx context.Context, id, code, reason string, raw []byte) error
}

// TaskWorker works off what large fan-outs have left, and returns how many
// pieces it did. It may be stopped by its context at any time: what is left, the
// next call takes up.
type TaskWorker interface {
	WorkTasks(ctx context.Context) (pieces int, err error)
}

// Config says what a Handler works with. All of it is given but ReadObject, Table, SortKey and Margin.
type Config struct {
	Processor Processor
	Rederiver Rederiver
	Parker    Parker
	Tasks     TaskWorker
	Replays   Replayer

	// ReadObject reads the object of a late batch, of which the payload has the name only. It returns no
	// more bytes than a late batch can have. If it is nil, the payload {"dynamill":"late",...} is an error.
	ReadObject func(ctx context.Context, name string) ([]byte, error)

	Table        string // records of another table's stream are refused; "": of none
	PartitionKey string // the table's key attributes
	SortKey      string // "" for a table without a sort key

	Logger *slog.Logger
	// Margin is how long before the invocation's deadline work is stopped, so that
	// there is time to answer. By default a tenth of the time there is, at most a second.
	Margin time.Duration
	// BatchMax is the most records given to one call.
	// Smaller pieces lose less of what is done when time runs out.
	BatchMax int
}

const marginMax = time.Second // of the default

// Handler feeds the records of Lambda invocations to a Processor. It has the
// form of lambda.Handler of aws-lambda-go, and is safe for concurrent use.
type Handler struct{ cfg Config }

// New makes a Handler.
func New(cfg Config) *Handler {
	cfg.Logger = slog.New(Traced(cfg.Logger.Handler()))
	return &Handler{cfg}
}

var errTimeUp = errors.New("stopped before the invocation's deadline")

// Invoke reads the payload, has its records applied, and answers which are not done; or does what a
// command asks for, and answers how far that is. The error is a *PayloadError if nothing of the
// payload could be understood. Nothing that Invoke started is still running when it returns.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	started := time.Now()
	work, cancel := h.untilMargin(ctx, started)
	defer cancel()
	d := &delivery{Config: &h.cfg}
	var err error
	if d.batch, err = d.read(work, payload); err == nil {
		err = d.deliver(work)
	}
	// Logged although it may be returned as well: an error that leaves this process
	// is seen by the event source mapping alone.
	h.log(ctx, d, err, time.Since(started))
	if err != nil && (d.batch == nil || !d.shape.answersByRecord()) {
		return nil, err
	}
	return d.answer()
}

// untilMargin returns the context for the work. Its end leaves time to answer.
func (h *Handler) untilMargin(ctx context.Context, now time.Time) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	margin := h.cfg.Margin
	if margin == 0 {
		margin = min(marginMax, deadline.Sub(now)/10)
	}
	return context.WithDeadlineCause(ctx, deadline.Add(-margin), errTimeUp)
}

// delivery is the work on one batch, or on one command.
type delivery struct {
	*Config
	*batch
	reply        any         // of a command
	commandAttrs []slog.Attr // of a command, for its line of the log
}

// deliver applies what can be applied. An error says why an element is open.
//
// What could be parked is rederived before the others are applied: of a stream,
// everything from an open element on comes again, so that time running out amid
// the others would else leave nothing done. Without a position it must wait for
// the others, or an earlier record of its item would take the item back; of a
// stream, it comes again with every earlier one.
func (d *delivery) deliver(ctx context.Context) error {
	switch d.shape {
	case shapeTasks:
		return d.workTasks(ctx)
	case shapeReplay:
		return d.workReplay(ctx)
	case shapeLate:
		return d.rederiveAll(ctx)
	}
	limit, failure := d.park(ctx, func(*element) bool { return true })
	d.good = slices.DeleteFunc(d.good, func(i int) bool { return i >= limit })
	placed := func(e *element) bool { return e.parked && !e.record.Position.IsZero() }
	unplaced := func(e *element) bool { return e.parked && e.record.Position.IsZero() }
	failure = errors.Join(failure, d.rederive(ctx, placed))
	err := d.inPieces(ctx, "processing", d.good, d.process)
	failure = errors.Join(err, failure)
	if failure != nil && d.shape != shapeStream {
		return failure
	}
	return errors.Join(failure, d.rederive(ctx, unplaced))
}

// park sets malformed elements aside. The limit is the first that
// could not be parked: neither it nor anything after it may be reported done.
func (d *delivery) park(ctx context.Context, wanted func(*element) bool) (limit int, err error) {
	for i := range d.elements {
		e := &d.elements[i]
		if e.fault == nil || !wanted(e) {
			continue
		}
		if err := d.Parker.ParkRecord(ctx, e.id(), e.fault.Code, e.fault.Reason, bytes.Clone(e.raw)); err != nil {
			return i, fmt.Errorf("parking record %s: %w", e.id(), err)
		}
		e.parked = true
	}
	return len(d.elements), nil
}

// inPieces gives elements' records to a call, piece by piece, until one fails or time is up. The call
// returns how many of its records are done.
func (d *delivery) inPieces(ctx context.Context, doing string, elements []int,
	call func(context.Context, []change.Record) (done int, err error),
) error {
	for piece := range slices.Chunk(elements, d.BatchMax) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		records := make([]change.Record, len(piece))
		for n, i := range piece {
			records[n] = d.elements[i].record
		}
		done, err := call(ctx, records)
		for _, i := range piece[:done] {
			d.elements[i].done = true
		}
		if err != nil {
			return d.stopped(ctx, doing, err)
		}
	}
	return nil
}

// process has a piece applied, and trusts no count that cannot be.
func (d *delivery) process(ctx context.Context, piece []change.Record) (done int, err error) {
	done, err = d.Processor.Process(ctx, piece)
	possible := done >= 0 && done <= len(piece)
	if !possible || done < len(piece) && err == nil {
		err = errors.Join(fmt.Errorf("the Processor says that %d of %d records are done", done, len(piece)), err)
	}
	if !possible {
		done = 0
	}
	return done, err
}

// stopped wraps a call's error; what fails because time is up is told apart from
// what fails by itself.
func (d *delivery) stopped(ctx context.Context, doing string, err error) error {
	if deadline, ok := ctx.Deadline(); ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	} else if ok && errors.Is(err, context.DeadlineExceeded) && time.Until(deadline) <= 0 {
		err = errors.Join(errTimeUp, err) // the timer of a connection was quicker than the context's
	}
	return fmt.Errorf("%s: %w", doing, err)
}
