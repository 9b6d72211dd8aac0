package adversary

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing/synctest"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
)

// invocation is one attempt to work off a batch. When its time has run out its
// calls fail, and nothing that it does afterwards has an effect.
type invocation struct {
	cancel context.CancelCauseFunc
	calls  int  // that it has time for; no limit if negative
	over   bool // its time has run out
}

// invocationKey is the context key of the invocation that a call works for.
type invocationKey struct{}

func invocationOf(ctx context.Context) *invocation {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	return inv
}

// hasTime reports whether an invocation, if there is one, has time for one more call.
func (inv *invocation) hasTime() bool {
	if inv == nil || inv.calls < 0 {
		return true
	}
	inv.calls--
	return inv.calls >= 0
}

// timeOut ends an invocation between two of its calls. Those that it has under
// way have no effect, or have it later.
func (c *Crew) timeOut(inv *invocation) {
	if inv == nil {
		return
	}
	calls := c.gate.expel(func(call *Call) bool { return call.invocation == inv })
	c.leaveBehind(calls)
	inv.over = true
	inv.cancel(context.DeadlineExceeded)
	for _, call := range calls {
		c.Log("%s: %s: time is up", call.Worker, call)
		call.answer(context.DeadlineExceeded)
	}
}

// leaveBehind keeps some of the writes of dead workers, to take effect later.
func (c *Crew) leaveBehind(calls []*Call) {
	for _, call := range calls {
		if isWrite(call.Op) && c.r.IntN(2) == 0 && c.Faults.Has(LateEffect) {
			c.orphans = append(c.orphans, call)
		}
	}
}

// keep keeps a batch that is given up until it is handed over.
func (c *Crew) keep(records []change.Record, done int) {
	if done < len(records) && c.r.IntN(2) == 0 {
		records = records[done:]
	}
	late := make([]change.Record, len(records))
	for i, rec := range records {
		if late[i] = rec; c.unreadable(rec.Position) {
			late[i] = stripped(rec)
		}
	}
	c.late = append(c.late, &late)
	c.ExcuseVerify()
}

// handing is a late batch that a worker works off.
type handing struct {
	worker *Worker
	batch  *[]change.Record
	again  bool // it stays, to be handed over once more
	done   chan struct{}
	err    error // valid once done is closed
}

// HandOver has a worker that is at work rederive a batch that was given up.
func (c *Crew) HandOver() {
	able := slices.DeleteFunc(c.active(), func(w *Worker) bool { return w.engine == nil })
	if len(able) == 0 || len(c.late) == 0 {
		return
	}
	c.Counts[HandedOver]++
	h := &handing{worker: able[c.r.IntN(len(able))], batch: c.late[c.r.IntN(len(c.late))], done: make(chan struct{})}
	h.again = c.r.IntN(3) == 0 && c.Faults.Has(HandedOver)
	c.Log("%s is handed what was given up:%s", h.worker, batch(*h.batch))
	c.handings = append(c.handings, h)
	ctx := context.WithValue(h.worker.ctx, laneKey{}, c.newLanes(1))
	go func() {
		defer close(h.done)
		h.err = h.worker.engine.RederiveRecords(ctx, *h.batch)
	}()
	synctest.Wait() // its first call is at the gate, or chance would say so
}

// reapHandings takes note of the late batches that have been worked off. Those
// that were not stay, as do some others.
func (c *Crew) reapHandings() {
	c.handings = slices.DeleteFunc(c.handings, func(h *handing) bool {
		select {
		case <-h.done:
		default:
			return false
		}
		switch {
		case h.err == nil && !h.again:
			c.late = slices.DeleteFunc(c.late, func(b *[]change.Record) bool { return b == h.batch })
		case !explained(h.err):
			c.strange = append(c.strange, fmt.Errorf("handing over what was given up: %w", h.err))
		}
		return true
	})
}

// handOverAll has an engine rederive all that was given up, in any order.
func (c *Crew) handOverAll() error {
	late := c.late
	c.late = nil
	c.r.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
	return c.With(func(ctx context.Context, e *projections.Engine) error {
		for _, b := range late {
			if err := e.RederiveRecords(ctx, *b); err != nil {
				return fmt.Errorf("handing over what was given up: %w", err)
			}
		}
		return nil
	})
}

// garbles is how many records there are for one that cannot be read.
const garbles = 30

// unreadable reports whether the record at a position cannot be read, by any worker at any time.
func (c *Crew) unreadable(p change.Position) bool {
	if c.garbled[p] {
		return true
	}
	if !c.garbling {
		return false
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, p)
	return rand.New(rand.NewPCG(c.seed, sum.Sum64())).IntN(garbles) == 0
}

// garble makes the records of a batch unreadable that an expression finds as if each were the only one.
func (c *Crew) garble(call *Call, expression *regexp.Regexp) {
	records, _ := call.Input.(batch)
	for _, rec := range records {
		if expression.MatchString(call.Op + batch{rec}.String()) {
			c.garbled[rec.Position] = true
		}
	}
}

// stripped is what can be told of a record that cannot be read.
func stripped(rec change.Record) change.Record {
	return change.Record{Key: rec.Key, Position: rec.Position}
}

// reading is a part of a batch as a driver has it.
type reading struct {
	part  int // how many records it has
	good  []change.Record
	at    []int // where in the part the good ones are
	bad   []change.Record
	first int  // where in the part the first bad one is
	early bool // the bad ones are rederived before the good ones are applied
}

// read reads a part of a batch.
func (c *Crew) read(part []change.Record) *reading {
	r := &reading{part: len(part), first: len(part)}
	for i, rec := range part {
		if !c.unreadable(rec.Position) {
			r.good, r.at = append(r.good, rec), append(r.at, i)
			continue
		}
		r.bad, r.first = append(r.bad, stripped(rec)), min(r.first, i)
	}
	c.Counts[Unreadable] += len(r.bad)
	r.early = len(r.bad) > 0 && c.r.IntN(2) == 0
	return r
}

// apply has the engine apply the records that can be read, and rederive the
// items of the others. It returns how many records of the part, from the first, are done.
func (r *reading) apply(ctx context.Context, d *delivery) (int, error) {
	done, cause := r.part, error(nil)
	failed := func(first int, err error) {
		if err != nil && first < done {
			done, cause = first, err
		}
	}
	rederive := func() {
		if len(r.bad) > 0 {
			failed(r.first, d.engine.RederiveRecords(ctx, r.bad))
		}
	}
	if r.early {
		rederive()
	}
	if len(r.good) > 0 {
		if n, err := d.to.Process(ctx, r.good); err != nil && n < len(r.at) {
			failed(r.at[n], err)
		} else {
			failed(0, err)
		}
	}
	if !r.early {
		rederive()
	}
	return done, cause
}

// timeMax is how many calls an invocation has time for at most that is given up.
const timeMax = 16

// drawTimes draws how many calls the invocations have time for that try a batch before it is given up.
func (c *Crew) drawTimes() []int {
	times := make([]int, 1+c.r.IntN(3)/2)
	for i := range times {
		times[i] = c.r.IntN(timeMax)
	}
	return times
}
