package adversary

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// strike reports whether a fault may happen now, and counts it.
func (c *Crew) strike(f Fault) bool {
	if c.Faults.Has(f) {
		c.Counts[f]++
		return true
	}
	return false
}

// let lets a call through, with what happens to it.
func (c *Crew) let(call *Call) {
	if !call.invocation.hasTime() {
		c.timeOut(call.invocation)
		return
	}
	if twins := c.gate.twins(call); len(twins) > 1 {
		for _, twin := range twins {
			c.Calls++
			c.carryOut(twin)
		}
		return
	}
	c.Calls++
	if time.Now().Before(call.Worker.outage) && !isStreamCall(call.Op) && !isDelivery(call.Op) {
		c.answer(call, Throttled, busy(call.Op))
		return
	}
	fault := c.draw(call)
	s := c.struck(call)
	if s != nil && s.Stall {
		c.Log("the stream stalls")
		c.stalled = true
		s = nil
	}
	if s != nil && s.Hold {
		c.Log("%s is held up in %s", call.Worker, call)
		c.gate.hold(call)
		return
	} else if s != nil {
		fault = s.Fault
	}
	c.inflict(call, fault, s)
}

// latePolls is how many polls find nothing at most where records are late.
const latePolls = 4

// inflict has a fault strike a call; s is the strike that is meant for it, if there is one.
func (c *Crew) inflict(call *Call, fault Fault, s *Strike) {
	switch fault {
	case faultCount:
		c.carryOut(call)
	case FailedBefore:
		c.answer(call, fault, errOf(call.Op, c.r.IntN(2) == 0))
	case Throttled:
		c.answer(call, fault, busy(call.Op))
	case Outage:
		call.Worker.outage = time.Now().Add(time.Duration(60+c.r.IntN(240)) * time.Second)
		c.answer(call, fault, busy(call.Op))
	case Conflict:
		c.answer(call, fault, conflictOf(call.Input))
	case ExpiredIterator:
		if call.Worker.verify != nil { // a verify goes from page to page at once and has none
			c.carryOut(call)
			return
		}
		c.answer(call, fault, errExpired)
	case LateRecords:
		c.waits[iteratorOf(call)] = 1 + c.r.IntN(cmp.Or(c.World.LatePolls, latePolls))
		c.carryOut(call)
	case LostReply:
		err := c.perform(call)
		c.Log("%s: %s: %v, reply lost", call.Worker, call, err)
		c.gate.take(call)
		call.answer(errConnection)
	case Unprocessed:
		c.partial = true
		c.carryOut(call)
		c.partial = false
	case CrashedBefore:
		c.Crash(call.Worker)
	case CrashedAfter:
		c.gate.take(call)
		c.Log("%s: %s: %v, and crashes", call.Worker, call, c.perform(call))
		c.Crash(call.Worker)
		call.answer(ErrCrashed)
	case GivenUp:
		c.timeOut(call.invocation)
	case Unreadable:
		c.garble(call, s.Call)
		c.carryOut(call)
	case Froze:
		c.Log("%s freezes in %s", call.Worker, call)
		c.gate.freeze(call.Worker, true)
		c.takeLeases(call.Worker)
	}
}

// Strike is a fault that is meant for one call.
type Strike struct {
	Call  *regexp.Regexp // finds the call by its description
	Skip  int            // so many such calls are let through before
	Fault Fault
	Hold  bool // no fault: the call alone waits until a worker is woken, while its worker's other calls go on
	Stall bool // no fault: from then on no worker finds records in the stream, until one is woken
	May   bool // it is no matter if the call never comes
}

// struck returns the strike that is meant for the call; nil if there is none.
func (c *Crew) struck(call *Call) *Strike {
	for i := range c.Strikes {
		s := &c.Strikes[i]
		if s.Skip < 0 || !s.Call.MatchString(call.String()) {
			continue
		}
		if s.Skip--; s.Skip < 0 {
			if !s.Hold && !s.Stall {
				c.Counts[s.Fault]++
			}
			return s
		}
	}
	return nil
}

// Unspent returns the strikes whose call has not come yet.
func (c *Crew) Unspent() []Strike {
	return slices.DeleteFunc(slices.Clone(c.Strikes), func(s Strike) bool { return s.Skip < 0 || s.May })
}

// draw draws what happens to a call; faultCount is nothing. The same numbers
// are drawn whatever faults may strike.
func (c *Crew) draw(call *Call) Fault {
	x := c.r.IntN(1000)
	for _, s := range striking(call.Op) {
		if x -= s.weight; x >= 0 {
			continue
		}
		if s.fault == Froze && c.Asleep() >= frozenMax || !c.strike(s.fault) {
			return faultCount
		}
		return s.fault
	}
	return faultCount
}

func (c *Crew) carryOut(call *Call) {
	c.gate.take(call)
	err := c.perform(call)
	if !c.isPoll(call) {
		c.done++
	}
	if err != nil {
		c.Log("%s: %s: %v", call.Worker, call, err)
	} else {
		c.Log("%s: %s", call.Worker, call)
	}
	call.answer(err)
}

// isPoll reports whether a call is made over and over where nothing is left to do.
func (c *Crew) isPoll(call *Call) bool {
	text := call.String()
	return isStreamCall(call.Op) || strings.Contains(text, c.World.LeaseTable) || strings.HasSuffix(text, " pk = tasks") ||
		renewal.MatchString(text) || c.looks(call, text)
}

// looks reports whether a worker without a record to apply looks whether rules are to be counted anew.
func (c *Crew) looks(call *Call, text string) bool {
	return call.Worker.engine != nil && call.Worker.engine.Folds() && text == "GetItem "+c.World.StateTable+"(registry/table)"
}

// renewal is a call with which a worker holds a task. Taking and saving one changes more.
var renewal = regexp.MustCompile(`^UpdateItem \S+\(tasks/.*\) SET until = [0-9]+ IF `)

func (c *Crew) answer(call *Call, fault Fault, err error) {
	c.Log("%s: %s: %s", call.Worker, call, fault)
	c.gate.take(call)
	call.answer(err)
}

// lateEffect carries out a call that was under way when its worker crashed, or its invocation had no time left.
func (c *Crew) lateEffect() {
	call := c.orphans[0]
	c.orphans = c.orphans[1:]
	c.Counts[LateEffect]++
	c.Log("%s, gone: %s: %v, late", call.Worker, call, c.perform(call))
}
