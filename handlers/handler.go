package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dynamill/dynamill/change"
)

// Processor applies records. records[:done] are durable when it returns; an
// error says why the record after them is not. Records and their images point
// into the payload of the invocation: they must not be kept after Process has returned.
type Processor interface {
	Process(ctx context.Context, records []change.Record) (done int, err error)
}

// Rederiver brings items' effects, those on other items among them (copies on
// children), to what the items' current state asks for. It is safe beside
// records of the same items.
type Rederiver interface {
	Rederive(ctx context.Context, keys []change.Key) error
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

	PartitionKey string // the table's key attributes
	SortKey      string // "" for a table without a sort key

	Logger *slog.Logger // slog.Default()
	// Margin is how long before the invocation's deadline work is stopped, so that
	// there is time to answer. By default a tenth of the time there is, at most a second.
	Margin time.Duration
	// BatchMax is the most records or keys given to one call; by default all.
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
	return &Handler{cfg}, nil
}

var errTimeUp = errors.New("stopped before the invocation's deadline")

// Invoke reads the payload, has its records applied, and answers which are not
// done; or has tasks worked off, and answers how many pieces that took and whether
// it is all. The error is a *PayloadError if nothing of the payload could be
// understood. Nothing that Invoke started is still running when it returns.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	started := time.Now()
	work, cancel := h.untilMargin(ctx, started)
	defer cancel()
	d := &delivery{Config: &h.cfg}
	var err error
	if d.batch, err = readBatch(payload, h.cfg.PartitionKey, h.cfg.SortKey); err == nil {
		err = d.deliver(work)
	}
	// Logged although it may be returned as well: an error that leaves this process
	// is seen by nobody but the event source mapping.
	h.log(ctx, d, err, time.Since(started))
	if err != nil && (d.batch == nil || d.shape == shapeLate || d.shape == shapeTasks) {
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
	applied int    // records that are done
	parked  int    // records that are parked, and need not come again
	open    []bool // by element: it is not done
	tasks   taskProgress
}

// deliver applies what can be applied. An error says why an element is open.
func (d *delivery) deliver(ctx context.Context) error {
	if d.shape == shapeTasks {
		return d.workTasks(ctx)
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
	done, err := d.process(ctx)
	for _, owner := range d.owners[:done] {
		d.open[owner] = false
	}
	d.applied = done
	if err != nil {
		failure = err // of an earlier record than the one that limited
	}
	for _, i := range parked {
		d.open[i] = false
	}
	return errors.Join(failure, d.rederiveParked(ctx, parked))
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
			ID: e.id(), Code: e.fault.code, Reason: e.fault.reason, Raw: bytes.Clone(e.raw),
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
	for done < len(d.records) {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		piece := d.records[done:]
		if d.BatchMax > 0 {
			piece = piece[:min(d.BatchMax, len(piece))]
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

// rederiveParked repairs what the malformed records leave behind. A later record
// of the same item is applied in its turn: what counts is the state that it
// shows, and the ledger notices the gap. But a rule whose attributes only the
// malformed record changed sees nothing in later records, so the item is
// rederived as well. That must not happen before the records in front of the
// malformed one are done: applied after it, they would take the item's effects
// back to an older state, with no record to follow. So it is done last, and a
// malformed record behind one that failed stays open, and comes again with it.
// Where not even the key can be read, the parked record is all that is left of it.
func (d *delivery) rederiveParked(ctx context.Context, parked []int) error {
	first := len(d.open)
	for i, open := range d.open {
		if open {
			first = i
			break
		}
	}
	var keys []change.Key
	for n, i := range parked {
		if i > first {
			for _, later := range parked[n:] {
				d.open[later] = true
			}
			parked = parked[:n]
			break
		}
		if d.elements[i].hasKey {
			keys = append(keys, d.elements[i].key)
		}
	}
	if err := d.rederive(ctx, keys); err != nil {
		for _, i := range parked {
			d.open[i] = d.elements[i].hasKey
		}
		d.parked = len(parked) - len(keys)
		return err
	}
	d.parked = len(parked)
	return nil
}

// rederiveAll works off a late batch. Its images are never applied: since they
// were given up, later records of the same items may have been applied, under newer
// rules, and tombstones may have expired. What counts is the items as they are now.
func (d *delivery) rederiveAll(ctx context.Context) error {
	parked, _, failure := d.park(ctx, func(e *element) bool { return !e.hasKey })
	seen := make(map[change.Key]bool, len(d.elements))
	var keys []change.Key
	for i := range d.elements {
		if e := &d.elements[i]; e.hasKey && !seen[e.key] {
			seen[e.key] = true
			keys = append(keys, e.key)
		}
	}
	if err := d.rederive(ctx, keys); err != nil {
		return errors.Join(failure, err)
	}
	for i := range d.elements {
		if d.elements[i].hasKey {
			d.open[i] = false
			d.applied++
		}
	}
	for _, i := range parked {
		d.open[i] = false
	}
	d.parked = len(parked)
	return failure
}

func (d *delivery) rederive(ctx context.Context, keys []change.Key) error {
	for len(keys) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		piece := keys
		if d.BatchMax > 0 {
			piece = keys[:min(d.BatchMax, len(keys))]
		}
		if err := d.Rederiver.Rederive(ctx, piece); err != nil {
			return d.stopped(ctx, "rederiving", err)
		}
		keys = keys[len(piece):]
	}
	return nil
}

// stopped wraps a call's error; what fails because time is up is told apart from
// what fails by itself.
func (d *delivery) stopped(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
