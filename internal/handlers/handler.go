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

// Processor applies records. records[:done] are durable when it returns; an error says why the record after them is
// not. It must not keep records or their images, which point into the payload of the invocation.
type Processor interface {
	Process(ctx context.Context, records []change.Record) (done int, err error)
}

// Rederiver brings the effects of the records' items, on their own and other items, to what their current state asks for.
// Images are nil and positions zero if they could not be read. No record up to those positions takes the items back
// afterwards. Records of one item may come in any order, and again. They must not be kept.
type Rederiver interface {
	RederiveRecords(ctx context.Context, records []change.Record) error
}

// Parker sets records aside that can never be read. The id is the position, or a digest of raw; parking one again under it
// changes nothing. The code is such as "record.value", the reason a sentence. raw is the record's JSON, of any size.
type Parker interface {
	ParkRecord(ctx context.Context, id, code, reason string, raw []byte) error
}

// TaskWorker works off what large fan-outs have left. It returns how many pieces it did, and how many tasks it left because they wait
// until a rule is seeded. Its context may stop it at any time: the next call resumes.
type TaskWorker interface {
	WorkTasks(ctx context.Context) (pieces, waiting int, err error)
}

// Config says what a Handler works with. All of it is given but ReadObject, Table, SortKey and Margin.
type Config struct {
	Processor Processor
	Rederiver Rederiver
	Parker    Parker
	Tasks     TaskWorker
	Replays   Replayer

	// ReadObject reads the object of a late batch: the payload has only its name. It returns no
	// more bytes than a late batch can have. If it is nil, the payload {"dynamill":"late",...} is an error.
	ReadObject func(ctx context.Context, name string) ([]byte, error)

	Table        string // records of another table's stream are refused; "": of none
	PartitionKey string // the table's key attributes
	SortKey      string // "" for a table without a sort key

	Logger *slog.Logger
	// Margin is the time before the deadline that is left to answer; default: a tenth of the whole,
	// from 300 ms (but at most half) to a second.
	Margin time.Duration
	// PieceFirst is how many records of a batch the Processor is given first; later it is given up to 1,000, if there is time. More at once
	// cost fewer writes, fewer lose less when time runs out. The Rederiver is given PieceFirst records at once.
	PieceFirst int
}

// Bounds of the default of Config.Margin. The least one holds the check of the rules behind work whose time is up, and the answer.
const (
	marginMin = 300 * time.Millisecond
	marginMax = time.Second
)

// Handler feeds records to a Processor. It has the form of lambda.Handler, and is safe for concurrent use.
type Handler struct{ cfg Config }

// New makes a Handler.
func New(cfg Config) *Handler {
	cfg.Logger = slog.New(Traced(cfg.Logger.Handler()))
	return &Handler{cfg}
}

var errTimeUp = errors.New("stopped before the invocation's deadline")

// Invoke reads the payload, applies its records and answers which are not done, or does what a command asks for. The error
// is a *PayloadError if the payload could not be understood. If all of a stream's batch comes again, Invoke returns an error in place of an
// answer: only then does Lambda halve the batch (Lambda developer guide, "Configuring partial batch response"). Nothing that Invoke
// started still runs when it returns.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	started := time.Now()
	work, cancel := h.untilMargin(ctx, started)
	defer cancel()
	d := &delivery{Config: &h.cfg}
	var err error
	if d.batch, err = d.read(work, payload); err == nil {
		err = d.deliver(work)
	}
	// Logged although it may be returned as well: the event source mapping alone sees a returned error.
	h.log(ctx, d, err, time.Since(started))
	if err != nil && (d.batch == nil || !d.shape.answersByRecord() || d.comesAgainWhole()) {
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
		whole := deadline.Sub(now)
		margin = min(marginMax, max(marginMin, whole/10), whole/2)
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
// It rederives what it parked before it applies the others: of a stream everything from an open element on comes
// again, so a timeout amid the others would otherwise leave nothing done. An element without a position waits for the
// others, because an earlier record of its item would take the item back.
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
	err := d.inPieces(ctx, "processing", d.good, pieceMax, d.process)
	failure = errors.Join(err, failure)
	if failure != nil && d.shape != shapeStream {
		return failure
	}
	return errors.Join(failure, d.rederive(ctx, unplaced))
}

// park sets malformed elements aside. Neither the element at limit, which could not be parked, nor any after it is done.
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

// Pieces grow while one that is so much larger would take less than half of the time that is left.
const (
	pieceGrowth = 4
	pieceMax    = 1000 // as many as a process of `run` takes at once
)

// inPieces gives elements' records to a call, piece by piece, until one fails or time is up. The first piece has PieceFirst records, none
// has more than most, unless PieceFirst is more.
func (d *delivery) inPieces(ctx context.Context, doing string, elements []int, most int,
	call func(context.Context, []change.Record) (done int, err error),
) error {
	for size := max(1, d.PieceFirst); len(elements) > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		began := time.Now()
		piece := elements[:min(size, len(elements))]
		elements = elements[len(piece):]
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
		if deadline, ok := ctx.Deadline(); ok && time.Since(began)*pieceGrowth*2 < time.Until(deadline) {
			size = max(size, min(size*pieceGrowth, most))
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

// stopped wraps a call's error, and marks what failed because time is up.
func (d *delivery) stopped(ctx context.Context, doing string, err error) error {
	if deadline, ok := ctx.Deadline(); ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	} else if ok && errors.Is(err, context.DeadlineExceeded) && time.Until(deadline) <= 0 {
		err = errors.Join(errTimeUp, err) // the timer of a connection was quicker than the context's
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// rederiveAll works off a late batch. Its images are never applied: later records of the same items may have been
// applied since, under newer rules, and tombstones may have expired.
func (d *delivery) rederiveAll(ctx context.Context) error {
	_, failure := d.park(ctx, func(e *element) bool { return !e.hasKey })
	return errors.Join(failure, d.rederive(ctx, func(*element) bool { return true }))
}

// rederive has elements' items rederived, those of parked elements too: a rule whose attributes only the malformed
// record changed sees nothing in later records. If not even the key can be read, the parked JSON is all that is left.
func (d *delivery) rederive(ctx context.Context, wanted func(*element) bool) error {
	var keyed []int
	for i := range d.elements {
		switch e := &d.elements[i]; {
		case !wanted(e):
		case e.hasKey:
			keyed = append(keyed, i)
		default:
			e.done = e.parked
		}
	}
	return d.inPieces(ctx, "rederiving", keyed, d.PieceFirst, func(ctx context.Context, piece []change.Record) (int, error) {
		if err := d.Rederiver.RederiveRecords(ctx, piece); err != nil {
			return 0, err
		}
		return len(piece), nil
	})
}

// taskProgress answers an invocation for tasks.
type taskProgress struct {
	Pieces int  `json:"pieces"`
	Done   bool `json:"done"` // nothing is left
	// Waiting is how many tasks wait until a rule is seeded.
	Waiting int `json:"waiting,omitempty"`
}

// workTasks works off tasks until nothing is left or time is up, which is no failure: the next invocation resumes.
func (d *delivery) workTasks(ctx context.Context) error {
	pieces, waiting, err := d.Tasks.WorkTasks(ctx)
	done := err == nil && waiting == 0
	d.reply = taskProgress{Pieces: pieces, Done: done, Waiting: waiting}
	d.commandAttrs = []slog.Attr{slog.Int("pieces", pieces), slog.Bool("done", done), slog.Int("waiting", waiting)}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return d.stopped(ctx, "working off tasks", err)
}
