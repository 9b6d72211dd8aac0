package adversary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const (
	// quantum is the least that time passes by: more than any backoff of the
	// engine (at most 3 s) or the reader (20 s) can draw at random, so that what
	// they draw changes nothing.
	quantum = 31 * time.Second
	// frozenMax is the most workers that are frozen at the same time.
	frozenMax = 3
	// pastMax is how many batches are remembered for being delivered again.
	pastMax = 40
)

// Crew conducts workers. Its methods are called by one goroutine of a synctest
// bubble, the conductor. Between two calls of Turn nothing moves.
type Crew struct {
	World
	Sim       *dynamosim.Sim
	Workers   int             // as many should be at work
	Company   int             // as many are at work, and share the stream, when it is drained in the end
	TurnsMax  int             // after so many the work has no end; 0: after 120,000
	Faults    Faults          // that may strike
	Counts    Counts          // of those that did
	Calls     int             // let through
	Delivered int             // records, repeated ones too
	Found     []verify.Result // by those who verified meanwhile, as drift
	Counted   []Miscounted    // by those who verified meanwhile
	Log       func(format string, args ...any)

	// Wrote is called with every item of the table that a worker's call wrote, as
	// it was and as it is. Nil is for an item that is not there.
	Wrote func(w *Worker, before, after change.Item)

	// Done is called with every call that had its effect.
	Done func(call *Call)

	// Strikes happen for certain, whatever Faults says.
	Strikes []Strike

	seed     uint64
	garbling bool // records are unreadable as the seed has it
	handings []*handing

	r          *rand.Rand
	gate       *Gate
	sets       ruleSets
	workers    []*Worker // all that are not over
	started    int
	replays    []*replaying // that are not done
	last       *Worker      // whose call was let through last
	orphans    []*Call      // of crashed workers, that may still take effect
	past       []past
	lanes      int                  // of deliveries so far
	seen       map[change.Key]order // what was delivered
	shards     map[string]string    // of iterators
	homes      map[string]string    // shards of records, by sequence number
	waits      map[string]int       // iterators on which nothing is found for so many polls
	stalled    bool                 // nothing is found on any
	late       []*[]change.Record   // batches that were given up
	evicted    map[eviction]bool    // that the worker need not know yet
	leasesLost bool
	garbled    map[change.Position]bool // records that cannot be read
	partial    bool                     // the call under way is worked off in part only
	done       int                      // calls carried out, those of the reader aside
	strange    []error                  // ends of workers that nothing explains
	refused    bool                     // the last reader that ended was given rules that are not in force
}

// NewCrew makes a crew without workers on an empty simulator.
func NewCrew(seed uint64, options dynamosim.Options, faults Faults) *Crew {
	c := &Crew{
		Faults: faults, seed: seed, garbling: faults.Has(Unreadable), garbled: map[change.Position]bool{},
		r: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), gate: &Gate{}, shards: map[string]string{}, homes: map[string]string{},
		waits: map[string]int{}, seen: map[change.Key]order{}, evicted: map[eviction]bool{},
		Log: func(string, ...any) {}, Wrote: func(*Worker, change.Item, change.Item) {}, Done: func(*Call) {},
	}
	options.Seed = seed
	options.BatchBound = func(_ string, n int) int {
		if c.partial {
			return n / 2
		}
		return n
	}
	options.Stale = func(string) bool { return c.r.IntN(3) == 0 && c.strike(StaleRead) }
	c.Sim = dynamosim.New(options)
	return c
}

// Strange returns the errors with which workers ended although no fault explains them.
func (c *Crew) Strange() []error { return c.strange }

// Start starts a worker.
func (c *Crew) Start() { c.start(false) }

// StartDrain starts a worker that reads the stream to its end, as one among the
// others, and then is gone.
func (c *Crew) StartDrain() { c.start(true) }

func (c *Crew) start(drain bool) *Worker {
	world := c.World
	c.takeLeases(nil)
	return c.hire(func(ctx context.Context, w *Worker) error { return w.live(ctx, world, c, drain) })
}

// hire has a new worker do something.
func (c *Crew) hire(do func(context.Context, *Worker) error) *Worker {
	c.started++
	w := &Worker{number: c.started, rules: c.World.RuleFile, sets: &c.sets, ended: make(chan struct{}), taskKept: make(chan struct{}, 1)}
	w.name = c.freeName(w)
	w.client = &client{c, w}
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx, w.cancel = ctx, cancel
	c.workers = append(c.workers, w)
	c.Log("%s starts", w)
	go func() {
		defer close(w.ended)
		w.err = do(ctx, w)
	}()
	return w
}

// freeName is the name under which a new worker holds leases: its own, or the
// first that no living worker has.
func (c *Crew) freeName(w *Worker) string {
	for n := 1; c.World.Namesakes; n++ {
		name := fmt.Sprintf("seat-%d", n)
		if !slices.ContainsFunc(c.workers, func(w *Worker) bool { return !w.dead && w.name == name }) {
			return name
		}
	}
	return w.String()
}

// active are the workers that are neither frozen nor dead, nor at their end.
func (c *Crew) active() []*Worker {
	return slices.DeleteFunc(slices.Clone(c.workers), func(w *Worker) bool { return w.frozen || w.dead || w.over() })
}

// readers are how many of the active workers read the stream.
func (c *Crew) readers() int {
	return len(slices.DeleteFunc(c.active(), func(w *Worker) bool { return w.replay != nil || w.verify != nil || w.errand }))
}

// Turn lets one call through, or time pass when no worker waits. If no worker reads the
// stream, a worker starts, and sooner or later so many as there should be; so
// does one for a replay that came to no end.
func (c *Crew) Turn() {
	c.reap()
	if n := c.readers(); n == 0 || n < c.Workers && c.r.IntN(30) == 0 {
		c.Start()
		synctest.Wait()
	}
	if idle := c.idleReplays(); len(idle) > 0 && c.r.IntN(30) == 0 {
		c.resume(idle[c.r.IntN(len(idle))])
		synctest.Wait()
	}
	c.turn()
}

func (c *Crew) turn() {
	c.reap()
	switch x := c.r.IntN(1000); {
	case x < 4 && c.Faults.Has(Woke):
		c.WakeOne()
	case x < 12 && len(c.orphans) > 0:
		c.lateEffect()
	case x < 24 && len(c.late) > 0 && c.Faults.Has(HandedOver):
		c.HandOver()
	case x < 42:
		c.Sleep(quantum)
	}
	ready := c.gate.ready()
	if len(ready) == 0 {
		c.Sleep(quantum)
		return
	}
	if own := slices.DeleteFunc(slices.Clone(ready), func(call *Call) bool { return call.Worker != c.last }); len(own) > 0 && c.r.IntN(3) > 0 {
		ready = own // a worker often gets on by more than one call
	}
	call := ready[c.r.IntN(len(ready))]
	c.last = call.Worker
	c.let(call)
	synctest.Wait()
}

// Sleep lets time pass. What expires meanwhile is deleted at once.
func (c *Crew) Sleep(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	if n := c.Sim.ExpireItems(); n > 0 {
		c.Log("%d items expire", n)
	}
	synctest.Wait()
}

// Rest goes on until nothing is done any more but asking for records.
func (c *Crew) Rest() error {
	for since, turns := time.Now(), 0; time.Since(since) < c.restAfter(); turns++ {
		before := c.done
		if c.Turn(); c.done > before {
			since = time.Now()
		}
		if turns > cmp.Or(c.TurnsMax, turnsDefault) {
			return ErrEndless
		}
	}
	return nil
}

// restAfter is how long nothing must be done until nothing is left to do:
// a worker may be waiting for a lease to expire, and for others to take it.
func (c *Crew) restAfter() time.Duration {
	if c.World.NoneStops {
		return 4 * quantum
	}
	return 4*quantum + 2*c.World.LeaseTerm
}

// WakeIfRefused wakes all workers if the last reader that ended was refused, because the rules that it was
// given are not in force: an operator finds the process that was to bring them into force, and hangs.
func (c *Crew) WakeIfRefused() {
	for c.refused && c.Asleep() > 0 {
		c.WakeOne()
	}
}

// Asleep is how many workers are frozen.
func (c *Crew) Asleep() int {
	n := 0
	for _, w := range c.workers {
		if w.frozen {
			n++
		}
	}
	return n
}

// Crash ends a worker between two of its calls. Those that it has under way
// have no effect, or have it later.
func (c *Crew) Crash(w *Worker) {
	c.Log("%s crashes", w)
	c.leaveBehind(c.gate.bury(w))
	w.cancel()
	c.takeLeases(w)
}

// CrashOne crashes a worker that is at work.
func (c *Crew) CrashOne() {
	if active := c.active(); len(active) > 0 {
		c.Crash(active[c.r.IntN(len(active))])
		synctest.Wait()
	}
}

// WakeOne lets the call go on that has been held up longest, or wakes a frozen
// worker. Where strikes put them to sleep it is the first that they struck.
func (c *Crew) WakeOne() {
	if c.gate.release() {
		c.Log("what was held up goes on")
		return
	}
	if c.stalled {
		c.stalled = false
		c.Log("the stream goes on")
		return
	}
	var frozen []*Worker
	for _, w := range c.workers {
		if w.frozen {
			frozen = append(frozen, w)
		}
	}
	if len(frozen) == 0 {
		return
	}
	w := frozen[c.r.IntN(len(frozen))]
	if len(c.Strikes) > 0 {
		w = frozen[0]
	}
	c.gate.freeze(w, false)
	c.Counts[Woke]++
	c.Log("%s wakes", w)
}

// Stop asks the workers that are at work to stop in good order.
func (c *Crew) Stop() {
	for _, w := range c.active() {
		c.Log("%s is told to stop", w)
		w.cancel()
	}
	synctest.Wait()
}

// KillAll crashes all workers, frozen ones too, with nothing to take effect later.
func (c *Crew) KillAll() { c.kill(func(*Worker) bool { return true }) }

// KillAwake crashes all workers but those that are frozen.
func (c *Crew) KillAwake() { c.kill(func(w *Worker) bool { return !w.frozen }) }

func (c *Crew) kill(chosen func(*Worker) bool) {
	for _, w := range slices.Clone(c.workers) {
		if !w.dead && chosen(w) {
			c.Crash(w)
		}
	}
	c.orphans, c.past = nil, nil
	for slices.ContainsFunc(c.workers, chosen) {
		c.Sleep(quantum)
		c.reap()
	}
}

// ExpectGaps says that records have been lost. A sleeper may still have them in
// hand, so that nothing is known of their order any more.
func (c *Crew) ExpectGaps() { c.seen = nil }

// newLanes numbers so many lanes, and returns the first.
func (c *Crew) newLanes(n int) int {
	c.lanes += n
	return c.lanes - n + 1
}

// reap takes note of the workers that have come to their end.
func (c *Crew) reap() {
	synctest.Wait()
	c.reapHandings()
	c.workers = slices.DeleteFunc(c.workers, func(w *Worker) bool {
		if !w.over() || c.gate.detains(w) {
			return false
		}
		w.cancel()
		if w.replay == nil && w.verify == nil && !w.errand {
			c.refused = errors.As(w.err, new(*projections.RulesChangedError))
		}
		c.reapReplay(w)
		c.reapVerify(w)
		if !w.dead && !explained(w.err) {
			c.strange = append(c.strange, w.err)
			c.Log("%s ends: %v", w, w.err)
		} else {
			c.Log("%s has ended", w) // which of its goroutines was the first to fail is chance
		}
		return true
	})
	synctest.Wait() // what the ended were still handed is withdrawn
}
