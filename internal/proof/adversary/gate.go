package adversary

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// ErrCrashed is what the calls of a worker that has crashed return, for its
// goroutines to come to an end. None of them has an effect.
var ErrCrashed error = crashed{}

type crashed struct{}

func (crashed) Error() string { return "the worker has crashed" }

// StopReading keeps the stream reader from trying again.
func (crashed) StopReading() bool { return true }

// Call is one request of a worker, held at the gate.
type Call struct {
	Worker *Worker
	Op     string
	Input  any

	lane       int          // of the delivery that it works for
	invocation *invocation  // that it works for; nil if for none
	perform    func() error // carries it out; by the conductor only
	held       bool         // by a strike
	adrift     bool         // its caller has been told to stop, and does not know it yet
	err        error
	done       chan struct{}
	text       string
}

// String says what the call does, in one line.
func (c *Call) String() string {
	if c.text == "" {
		c.text = describe(c.Op, c.Input)
	}
	return c.text
}

// answer lets the caller go on.
func (c *Call) answer(err error) {
	c.err = err
	close(c.done)
}

// laneKey is the context key of the number of the delivery that a call works
// for: two deliveries at once may make the same call, and are to be told apart.
type laneKey struct{}

func laneOf(ctx context.Context) int {
	lane, _ := ctx.Value(laneKey{}).(int)
	return lane
}

// Gate holds the calls of all workers.
type Gate struct {
	mu      sync.Mutex
	waiting []*Call
}

// do holds a call until the conductor has answered it. A call whose context
// ends first is withdrawn, unless its worker is frozen or it is held up: such a
// call is on its way, and its worker does not see the time pass.
func (g *Gate) do(ctx context.Context, w *Worker, op string, input any, perform func() error) error {
	return g.pass(ctx, &Call{Worker: w, Op: op, Input: input, perform: perform})
}

func (g *Gate) pass(ctx context.Context, c *Call) error {
	c.lane, c.invocation, c.done = laneOf(ctx), invocationOf(ctx), make(chan struct{})
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !g.admit(c) {
		return ErrCrashed
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		if g.giveUp(c) {
			return context.Cause(ctx)
		}
		<-c.done
		return c.err
	}
}

func (g *Gate) admit(c *Call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.Worker.dead {
		return false
	}
	g.waiting = append(g.waiting, c)
	return true
}

// giveUp withdraws a call whose caller is to stop, unless it is on its way.
func (g *Gate) giveUp(c *Call) bool {
	g.mu.Lock()
	c.adrift = c.held || c.Worker.frozen
	adrift := c.adrift
	g.mu.Unlock()
	return !adrift && g.withdraw(c)
}

// freeze freezes a worker, or wakes it.
func (g *Gate) freeze(w *Worker, frozen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.frozen = frozen
}

// hold holds a call up.
func (g *Gate) hold(c *Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.held = true
}

func (g *Gate) withdraw(c *Call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, c)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// ready are the calls that may be let through, in an order that does not
// depend on which goroutine came first.
func (g *Gate) ready() []*Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ready []*Call
	for _, c := range g.waiting {
		if !c.Worker.frozen && !c.held {
			ready = append(ready, c)
		}
	}
	if len(ready) > 1 {
		slices.SortStableFunc(ready, func(a, b *Call) int {
			if order := cmp.Or(cmp.Compare(a.Worker.number, b.Worker.number), cmp.Compare(a.lane, b.lane)); order != 0 {
				return order // without the texts, which take long to make
			}
			return cmp.Compare(a.String(), b.String())
		})
	}
	return ready
}

// detains reports whether a worker has a call on its way that does not get on.
func (g *Gate) detains(w *Worker) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.waiting, func(c *Call) bool { return c.Worker == w && (w.frozen || c.held) })
}

// release lets the call go on that has been held up longest. It reports false if there is none.
func (g *Gate) release() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.waiting, func(c *Call) bool { return c.held })
	if i >= 0 {
		g.waiting[i].held = false
	}
	return i >= 0
}

// twins are all calls of a worker that read the same at this moment, the call
// itself among them. Which of the worker's goroutines made which of them is
// chance, so all of them go on together.
func (g *Gate) twins(call *Call) []*Call {
	if isWrite(call.Op) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var twins []*Call
	for _, c := range g.waiting {
		if c.Worker == call.Worker && c.lane == call.lane && !c.held && c.Op == call.Op && c.String() == call.String() {
			twins = append(twins, c)
		}
	}
	return twins
}

// take removes a call from the gate.
func (g *Gate) take(c *Call) { g.withdraw(c) }

// bury makes a worker dead: its calls at the gate are answered, and returned;
// later ones are answered at once.
func (g *Gate) bury(w *Worker) []*Call {
	g.mu.Lock()
	w.dead, w.frozen = true, false
	g.mu.Unlock()
	last := g.expel(func(c *Call) bool { return c.Worker == w })
	for _, c := range last {
		c.answer(ErrCrashed)
	}
	return last
}

// expel takes calls from the gate, in an order that does not depend on which
// goroutine came first.
func (g *Gate) expel(which func(*Call) bool) []*Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	var expelled []*Call
	g.waiting = slices.DeleteFunc(g.waiting, func(c *Call) bool {
		if which(c) {
			expelled = append(expelled, c)
			return true
		}
		return false
	})
	slices.SortStableFunc(expelled, func(a, b *Call) int { return cmp.Compare(a.String(), b.String()) })
	return expelled
}
