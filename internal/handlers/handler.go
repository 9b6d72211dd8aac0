package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// Parker sets records aside that can never be read. Parking one again under
// the same ID must change nothing.
type Parker interface {
	ParkRecord(ctx context.Context, p ParkedRecord) error
}

// TaskWorker works off what large fan-outs have left, and returns how many
// pieces it did. It may be stopped by its context at any time: what is left, the
// next call takes up.
type TaskWorker interface {
	WorkTasks(ctx context.Context) (pieces int, err error)
}

// Objects reads the object of a late batch, of which the payload has the name only. It
// returns no more bytes than a late batch can have.
type Objects interface {
	ReadObject(ctx context.Context, name string) ([]byte, error)
}

// ParkedRecord is a record that could not be read.
type ParkedRecord struct {
	ID     string // the position (stream label and sequence number), or a digest of Raw where there is none
	Code   string // e.g. "record.value"
	Reason string // a sentence
	Raw    []byte // the record's JSON as it came; it may be larger than an item can be
}

// Config says what a Handler works with. The zero value of every field but
// Processor, Rederiver and PartitionKey stands for its default.
type Config struct {
	Processor Processor
	Rederiver Rederiver
	Parker    Parker     // nil: a record that cannot be read fails, and all after it
	Tasks     TaskWorker // nil: the payload {"dynamill":"tasks"} is an error
	Objects   Objects    // nil: the payload {"dynamill":"late",...} is an error
	Replays   Replayer   // nil: the payload {"dynamill":"replay",...} is an error

	Table        string // records of another table's stream are refused; "": of none
	PartitionKey string // the table's key attributes
	SortKey      string // "" for a table without a sort key

	Logger *slog.Logger // slog.Default()
	// Margin is how long before the invocation's deadline work is stopped, so that
	// there is time to answer. By default a tenth of the time there is, at most a second.
	Margin time.Duration
	// BatchMax is the most records given to one call; by default all.
	// Smaller pieces lose less of what is done when time runs out.
	BatchMax int
}

const marginMax = time.Second // of the default

// Handler feeds the records of Lambda invocations to a Processor. It has the
// form of lambda.Handler of aws-lambda-go, and is safe for concurrent use.
type Handler struct{ cfg Config }

// New makes a Handler.
func New(cfg Config) (*Handler, error) {
	var problems []error
	require := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, errors.New(problem))
		}
	}
	require(cfg.Processor != nil, "Processor is missing")
	require(cfg.Rederiver != nil, "Rederiver is missing")
	require(cfg.PartitionKey != "", "PartitionKey is missing")
	require(cfg.PartitionKey != cfg.SortKey || cfg.SortKey == "", "PartitionKey and SortKey are the same attribute")
	require(cfg.Margin >= 0, "Margin must not be negative")
	require(cfg.BatchMax >= 0, "BatchMax must not be negative")
	if len(problems) > 0 {
		return nil, fmt.Errorf("config of the handler: %w", errors.Join(problems...))
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.Logger = slog.New(Traced(cfg.Logger.Handler()))
	if cfg.BatchMax == 0 {
		cfg.BatchMax = math.MaxInt
	}
	return &Handler{cfg}, nil
}

var errTimeUp = errors.New("stopped before the invocation's deadline")

// Invoke reads the payload, has its records applied, and answers which are not
// done; or does what a command asks for, and answers how far that is. The error is a *PayloadError if nothing of the payload could be
// understood. Nothing that Invoke started is still running when it returns.
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
	if err != nil && (d.batch == nil || d.shape == shapeLate || d.shape == shapeTasks || d.shape == shapeReplay) {
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

// delivery is the work on one batch.
type delivery struct {
	*Config
	*batch
	applied  int    // records that are done
	parked   int    // records that are parked, and need not come again
	open     []bool // by element: it is not done
	tasks    taskProgress
	replayed any // a ReplayStep or a ReplayPiece
}

// deliver applies what can be applied. An error says why an element is open.
//
// What could be parked is rederived before the others are applied: of a stream,
// everything from an open element on comes again, so that time running out amid
// the others would else leave nothing done. Without a position it must wait for
// the others, or an earlier record of its item would take the item back; of a
// stream, it comes again with every earlier one.
func (d *delivery) deliver(ctx context.Context) error {
	if d.shape == shapeTasks {
		return d.workTasks(ctx)
	}
	if d.shape == shapeReplay {
		return d.workReplay(ctx)
	}
	d.open = make([]bool, len(d.elements))
	for i := range d.open {
		d.open[i] = true
	}
	if d.shape == shapeLate {
		return d.rederiveAll(ctx)
	}
	parked, limit, failure := d.park(ctx, func(*element) bool { return true })
	d.cut(limit)
	placed, unplaced := d.byPosition(parked)
	failure = errors.Join(failure, d.rederiveParked(ctx, placed))
	done, err := d.process(ctx)
	for _, owner := range d.owners[:done] {
		d.open[owner] = false
	}
	d.applied = done
	failure = errors.Join(err, failure)
	if failure != nil && d.shape != shapeStream {
		return failure
	}
	return errors.Join(failure, d.rederiveParked(ctx, unplaced))
}

// park sets malformed elements aside, and returns which. The limit is the first that
// could not be parked: neither it nor anything after it may be reported done.
func (d *delivery) park(ctx context.Context, wanted func(*element) bool) (parked []int, limit int, err error) {
	for i := range d.elements {
		e := &d.elements[i]
		if e.fault == nil || !wanted(e) {
			continue
		}
		if d.Parker == nil {
			return parked, i, fmt.Errorf("record %s cannot be read: %w", e.id(), e.fault)
		}
		err := d.Parker.ParkRecord(ctx, ParkedRecord{
			ID: e.id(), Code: e.fault.Code, Reason: e.fault.Reason, Raw: bytes.Clone(e.raw),
		})
		if err != nil {
			return parked, i, fmt.Errorf("parking record %s: %w", e.id(), err)
		}
		parked = append(parked, i)
	}
	return parked, len(d.elements), nil
}

// cut takes off the records of elements from limit on.
func (d *delivery) cut(limit int) {
	n := 0
	for i, owner := range d.owners {
		if owner < limit {
			d.records[n], d.owners[n] = d.records[i], owner
			n++
		}
	}
	d.records, d.owners = d.records[:n], d.owners[:n]
}

// process has the records applied, piece by piece, until one fails or time is up.
func (d *delivery) process(ctx context.Context) (done int, err error) {
	for piece := range slices.Chunk(d.records, d.BatchMax) {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		n, err := d.Processor.Process(ctx, piece)
		if n < 0 || n > len(piece) || n < len(piece) && err == nil {
			err = errors.Join(fmt.Errorf("the Processor says that %d of %d records are done", n, len(piece)), err)
			if n < 0 || n > len(piece) {
				n = 0
			}
		}
		done += n
		if err != nil {
			return done, d.stopped(ctx, "processing", err)
		}
	}
	return done, nil
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
