package adversary

import (
	"cmp"
	"context"
	"errors"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// turnsDefault bounds how long it may take until nothing is left to do. Several workers that go over a deep tree item by item
// take more than 40,000.
const turnsDefault = 120000

// ErrEndless says that work never came to an end.
var ErrEndless = errors.New("the work has no end")

// Settle ends all faults, wakes all workers, lets what was under way take effect, and stops all workers.
func (c *Crew) Settle() error {
	c.Faults, c.waits, c.stalled = 0, map[string]int{}, false
	for len(c.orphans) > 0 {
		c.lateEffect()
	}
	for c.gate.release() {
		c.Log("what was held up goes on")
	}
	for c.Asleep() > 0 {
		c.WakeOne()
	}
	for range c.r.IntN(200) {
		if len(c.active()) > 0 {
			c.turn()
		}
	}
	c.Stop()
	return c.untilOver()
}

// untilOver goes on until no worker is left.
func (c *Crew) untilOver() error {
	return c.until(func() bool { return len(c.workers) == 0 })
}

func (c *Crew) until(done func() bool) error {
	for range cmp.Or(c.TurnsMax, turnsDefault) {
		if c.reap(); done() {
			return nil
		}
		c.turn()
	}
	c.KillAll()
	return ErrEndless
}

// untilDrained has a worker drain the stream, be it in company: what the others
// have still in hand when it says that all is done comes to nothing.
func (c *Crew) untilDrained() error {
	for range c.Company {
		c.Start()
	}
	if c.Company > 0 {
		for _, r := range c.idleReplays() {
			c.resume(r)
		}
	}
	for range c.r.IntN(companyTurns) * c.Company {
		c.turn()
	}
	w := c.start(true)
	if c.Company > 0 {
		c.Counts[Drained]++
	}
	err := c.until(w.over)
	c.KillAll()
	return errors.Join(err, w.err)
}

// companyTurns bounds how many calls each of the company makes before the draining worker starts.
const companyTurns = 40

// Drain has one more worker seed what is new and read the stream to its end, and
// what was given up handed over.
func (c *Crew) Drain() error {
	for {
		switch err := c.untilDrained(); {
		case errors.Is(err, context.DeadlineExceeded):
			continue // time passed when the last checkpoint was on its way
		case err != nil || len(c.late) == 0:
			return err
		}
		if err := c.handOverAll(); err != nil {
			return err
		}
	}
}

// With has an engine do something while the conductor carries out its calls.
func (c *Crew) With(do func(context.Context, *projections.Engine) error) error {
	w := c.hire(func(ctx context.Context, w *Worker) error {
		_, engine, err := w.open(ctx, c.World)
		if err != nil {
			return err
		}
		return do(ctx, engine)
	})
	if err := c.untilOver(); err != nil {
		return err
	}
	return w.err
}

// explained reports whether faults explain why a worker ended.
func explained(err error) bool {
	var trimmed *streamreader.TrimmedError
	var changed *projections.RulesChangedError // of a worker that starts with the old rules when new ones are in force
	var gone *streams.ResourceNotFoundException
	var missing *ddb.ResourceNotFoundException
	var api smithy.APIError
	if pieces := new(replay.PiecesError); errors.As(err, &pieces) {
		return !slices.ContainsFunc(pieces.Errors, func(err error) bool { return !explained(err) })
	}
	switch {
	case err == nil, errors.Is(err, ErrCrashed), errors.Is(err, context.Canceled), errors.Is(err, streamreader.ErrLeaseLost),
		errors.Is(err, streamreader.ErrStreamEnded), errors.Is(err, projections.ErrEpochMoved), errors.As(err, &changed),
		errors.As(err, &trimmed),
		errors.As(err, &gone), errors.As(err, &missing), errors.Is(err, errConnection), errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.As(err, &api):
		return api.ErrorFault() == smithy.FaultServer || slices.Contains([]string{
			errThrottled.ErrorCode(), errStreamBusy.ErrorCode(), "TransactionConflictException",
		}, api.ErrorCode())
	}
	return false
}

// past is a batch that was delivered. It may be delivered again under the same
// rules: once rules were added, a record from before comes again only with all
// that follow it, as from a checkpoint.
type past struct {
	rules   string
	shard   string // as in delivery
	records []change.Record
}

// parcel says how one batch is handed over.
type parcel struct {
	again   *reading // of a batch that was delivered before
	times   []int    // calls that its invocations have time for before it is given up; none if it is not
	parts   [][]int  // indexes of its records, those of one item in order
	atOnce  bool
	inOrder bool // what follows a part that failed is not handed over
}

// cut draws how a batch is handed over.
func (c *Crew) cut(d *delivery, records []change.Record) parcel {
	var p parcel
	c.Delivered += len(records)
	if x := c.r.IntN(100); x < 12 && len(c.past) > 0 && c.strike(Again) {
		if former := c.past[c.r.IntN(len(c.past))]; former.rules == d.w.rules && former.shard == d.shard {
			p.again = c.read(former.records)
		}
	}
	if c.past = append(c.past, past{d.w.rules, d.shard, records}); len(c.past) > pastMax {
		c.past = c.past[1:]
	}
	if x := c.r.IntN(100); x < 20 && c.strike(GivenUp) {
		p.times = c.drawTimes()
	}
	all := make([]int, len(records))
	for i := range all {
		all[i] = i
	}
	p.parts, p.inOrder = [][]int{all}, true
	if len(records) < 2 {
		return p
	}
	switch x := c.r.IntN(100); {
	case x < 25 && c.strike(Cut):
		at := 1 + c.r.IntN(len(records)-1)
		p.parts = [][]int{all[:at], all[at:]}
	case x >= 25 && x < 40 && c.strike(OutOfOrder):
		p.parts, p.inOrder = c.byItem(records), false
	case x >= 40 && x < 60 && c.strike(AtOnce):
		p.parts, p.atOnce = c.byItem(records), true
	}
	return p
}

// byItem deals the items of a batch to two or three parts.
func (c *Crew) byItem(records []change.Record) [][]int {
	parts := make([][]int, 2+c.r.IntN(2))
	of := map[change.Key]int{}
	for i, rec := range records {
		n, ok := of[rec.Key]
		if !ok {
			n = c.r.IntN(len(parts))
			of[rec.Key] = n
		}
		parts[n] = append(parts[n], i)
	}
	return parts
}

func iteratorOf(call *Call) string {
	if in, ok := call.Input.(*dynamodbstreams.GetRecordsInput); ok && in.ShardIterator != nil {
		return *in.ShardIterator
	}
	return ""
}

// isLate reports whether nothing is to be found on an iterator yet.
func (c *Crew) isLate(iterator string) bool {
	if c.waits[iterator] == 0 {
		return c.stalled
	}
	c.waits[iterator]--
	return true
}

func errOf(op string, connection bool) error {
	if connection || isStreamCall(op) {
		return errConnection
	}
	return errServer
}

func busy(op string) error {
	if isStreamCall(op) {
		return errStreamBusy
	}
	return errThrottled
}
