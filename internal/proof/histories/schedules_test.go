package histories

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/proof/mutants"
	"github.com/dynamill/dynamill/internal/proof/population"
)

// schedule is a history written for one guard: the one bad moment that random
// schedules rarely meet.
type schedule struct {
	guard   string // its name in internal/proof/mutants
	name    string // what happens
	rules   string
	steps   []Step
	strikes []adversary.Strike

	first     string // the rules until rules are added, if not all are there from the beginning
	old       int    // so many steps are older than the stream
	healsMax  int
	fanOutMax int
	every     time.Duration // a display is written no more often, by one worker
	rangesMin int
	pageMax   int32 // most items of a page of a scan; 0: as many as fit
	shards    int   // of the stream; 1 if 0
	workers   int   // 1 if 0
	taken     bool  // a worker that sleeps works on when it wakes: its leases are taken, and it does not know
	company   bool  // in the end the stream is drained beside others
	again     bool  // and all of it once more
	verifies  bool  // what is lost is repaired by `verify --repair`
	seed      uint64
}

// schedules are all of them. Each breaks a promise when its guard is turned off,
// and none while all are in force.
func schedules() []schedule {
	return slices.Concat(aggregateSchedules(), derivedSchedules(), copySchedules(), valueSchedules(), ledgerSchedules(), lateSchedules(),
		leaseSchedules(), replaySchedules(), ownSchedules(), perSchedules(), orderedSchedules(), treeSchedules(), deletionSchedules(),
		hotSchedules(), rowSchedules())
}

// turnsMax is more than a schedule takes while all guards are in force.
const turnsMax = 10_000

// history is the schedule as a history in which nothing else goes wrong.
func (s schedule) history(t *testing.T) *History {
	t.Helper()
	p, err := population.New(s.name, s.rules, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	h := &History{
		Name: s.name, Seed: s.seed, Population: p, Shards: cmp.Or(s.shards, 1), Steps: s.steps, Strikes: s.strikes,
		Workers: cmp.Or(s.workers, 1), LeaseTerm: terms[0], LeasesTaken: s.taken, Company: s.company, Again: s.again, Verifies: s.verifies,
		FirstRules: s.first, Old: s.old, HealsMax: s.healsMax, FanOutMax: s.fanOutMax, RangesMin: s.rangesMin, PageMax: s.pageMax,
		DisplayEvery: s.every, TurnsMax: turnsMax,
		Changing: slices.ContainsFunc(s.steps, func(s Step) bool { return s.Rules != "" }),
	}
	if s.taken {
		h.LeaseTerm = noneStops
	}
	return h
}

// row is an item as told writes it: row("pk=USER#u1, sk=PROFILE, age=#7").
func row(text string) change.Item {
	it := change.Item{}
	for _, field := range strings.Split(text, ", ") {
		name, value, _ := strings.Cut(field, "=")
		if number, ok := strings.CutPrefix(value, "#"); ok {
			it[name] = change.Number(number)
		} else {
			it[name] = change.String(value)
		}
	}
	return it
}

// puts puts an item once nothing is left to do.
func puts(text string) Step { return Step{Turns: Rest, Kind: Put, Items: []change.Item{row(text)}} }

// befalls makes something happen once nothing is left to do.
func befalls(f adversary.Fault) Step { return Step{Turns: Rest, Kind: Befall, Fault: f} }

// at strikes the first call, or a later one, whose description the expression matches.
func at(expression string, skip int, f adversary.Fault) adversary.Strike {
	return adversary.Strike{Call: regexp.MustCompile(expression), Skip: skip, Fault: f}
}

// holds holds a call up until a worker is woken, while its worker's other calls go on.
func holds(expression string, skip int) adversary.Strike {
	return adversary.Strike{Call: regexp.MustCompile(expression), Skip: skip, Hold: true}
}

// stalls has the stream give no records from a call on, until a worker is woken.
func stalls(expression string, skip int) adversary.Strike {
	return adversary.Strike{Call: regexp.MustCompile(expression), Skip: skip, Stall: true}
}

// guardNames are all guards.
func guardNames(t *testing.T) []string { return guardsIn(t, "") }

// guardsIn are the guards of a patch file; "": of all.
func guardsIn(t *testing.T, file string) (names []string) {
	guards, err := mutants.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range guards {
		if file == "" || g.File == file {
			names = append(names, g.Name)
		}
	}
	return names
}

func TestSchedulesNameGuardsThatExist(t *testing.T) {
	names := guardNames(t)
	for _, s := range schedules() {
		if !slices.Contains(names, s.guard) {
			t.Errorf("%q is written for %q, which is no guard", s.name, s.guard)
		}
	}
}

// TestSchedulesHoldWithEveryGuard lives through the schedules with all guards in place.
func TestSchedulesHoldWithEveryGuard(t *testing.T) {
	for _, s := range schedules() {
		t.Run(s.guard+"/"+s.name, func(t *testing.T) { holdsPromises(t, s.history(t)) })
	}
}

// holdsPromises fails the test, with all that happened, if the history breaks a promise.
func holdsPromises(t *testing.T, h *History) {
	t.Helper()
	o := inBubble(t, h, true)
	if len(o.Problems) == 0 {
		return
	}
	for _, line := range o.Trace {
		t.Log(line)
	}
	for _, p := range o.Problems {
		t.Error(p)
	}
}
