package histories

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/proof/population"
)

// History is one way things may go. All of it follows from its seed, unless
// shrinking took something away.
type History struct {
	Name         string // of one that was not drawn
	Seed         uint64
	Population   *population.Population
	Faults       adversary.Faults
	Shards       int
	Scatter      bool          // items of one partition key are spread over the shards
	HealsMax     int           // 0: the engine's own bound
	FanOutMax    int           // the same
	BatchMin     int           // the same
	RangesMin    int           // the same
	DisplayEvery time.Duration // a display is written no more often, by one worker; 0: as records come
	Workers      int           // that are at work at the same time, unless faults have it otherwise
	LeaseTerm    time.Duration
	LeasesTaken  bool            // an operator clears the leases of workers that crash or sleep
	Namesakes    bool            // workers come back under the names of those who are gone
	Company      bool            // in the end the stream is drained beside others that share it
	LatePolls    int             // how many polls find nothing at most where records are late; 0: a few
	Skews        []time.Duration // by which the workers' wall clocks are ahead, in turns
	Old          int             // the first so many steps are older than the stream
	Again        bool            // in the end everything is delivered once more
	FirstRules   string          // the rule file until rules are added or changed; "" if all are there from the beginning
	Changing     bool            // rules are changed, and not only added
	Verifies     bool            // in the end nothing must be found, and what is lost is repaired instead of swept
	TurnsMax     int             // after so many the work has no end; 0: the crew's own bound
	PageMax      int32           // items of a page of a scan; 0: as many as asked for
	Steps        []Step

	Strikes []adversary.Strike // faults meant for certain calls, in a history that was not drawn
}

// Kind is what happens in a step.
type Kind uint8

// The kinds of steps. Befall is a fault that strikes no single call.
const (
	Put       Kind = iota // an item is put whole
	Vary                  // an item is read, changed, and put whole
	Update                // attributes of an item are set, wherever it comes from
	Delete                // an item is deleted
	Transact              // several items are put in one transaction
	Remember              // an item is read, for being put back
	PutBack               // an item is put back as it was read, derived attributes and stamps included
	Clone                 // an item is put under the key of another, stamps included
	Vandalize             // what the engine derived is overwritten, removed or deleted
	Fight                 // a derived attribute is overwritten again and again
	Expire                // an item's time to live passes
	Befall
	Judge  // everything is judged now: what later heals would not be seen in the end
	Export // the keys of all items are written down, for being replayed some time
)

var kindNames = [...]string{
	"put", "vary", "update", "delete", "transact", "remember", "put back", "clone", "vandalize", "fight", "expire", "befall", "judge",
	"export",
}

// What else the number of calls may be.
const (
	Rest   = -1 // until nothing is left to do
	Struck = -2 // until one more strike has happened
)

// Step is one thing that happens after a number of calls.
type Step struct {
	Turns int // calls let through before it, Rest or Struck
	Kind  Kind
	Items []change.Item   // put, update (with the key), transact; put back: what was changed; elsewhere the item that is meant
	Pick  uint64          // chooses among what is there then, if no item is meant
	Fault adversary.Fault // befall
	Rules string          // the rule file from now on, if rules are changed
}

func (s Step) String() string {
	what := kindNames[s.Kind]
	if s.Kind == Befall {
		what = s.Fault.String()
	}
	if s.Rules != "" {
		what += ", to\n" + strings.TrimSpace(s.Rules)
	}
	text := fmt.Sprintf("after %d calls: %s", s.Turns, what)
	switch s.Turns {
	case Rest:
		text = "at rest: " + what
	case Struck:
		text = "after a strike: " + what
	}
	for _, it := range s.Items {
		text += " " + told(it)
	}
	return text
}

// befalling are the faults that happen as steps, with their weights.
var befalling = []struct {
	fault  adversary.Fault
	weight int
	rare   bool // in few histories
}{
	{fault: adversary.CrashedBefore, weight: 6}, {fault: adversary.Takeover, weight: 6}, {fault: adversary.Restart, weight: 6},
	{fault: adversary.Woke, weight: 6}, {fault: adversary.Rewound, weight: 4}, {fault: adversary.Split, weight: 4},
	{fault: adversary.RolledOver, weight: 4}, {fault: adversary.Slept, weight: 2},
	{fault: adversary.RulesAdded, weight: 4}, {fault: adversary.HandedOver, weight: 4}, {fault: adversary.Drained, weight: 4},
	{fault: adversary.Aged, weight: 3, rare: true},
	{fault: adversary.Skipped, weight: 3, rare: true}, {fault: adversary.Replaced, weight: 3, rare: true},
	{fault: adversary.StateLost, weight: 3, rare: true}, {fault: adversary.Recreated, weight: 3, rare: true},
}

// Draw draws a history.
func Draw(seed uint64) *History {
	r := rand.New(rand.NewPCG(seed, 0x64796e616d696c6c))
	h := &History{
		Seed: seed, Population: population.Draw(r, projections.Kinds), Faults: drawFaults(r),
		Shards: 1 + r.IntN(3)/2*r.IntN(3), Scatter: r.IntN(2) == 0, Again: r.IntN(4) == 0,
	}
	if r := rand.New(rand.NewPCG(seed, 0x63617363616465)); r.IntN(4) == 0 {
		h.Population = h.Population.Cascading(r)
	}
	hot := h.drawHot()
	if r.IntN(8) == 0 {
		h.HealsMax = 2 + r.IntN(3)
	}
	if r.IntN(2) == 0 {
		h.Old = r.IntN(30)
	}
	if r.IntN(3) == 0 {
		h.FirstRules = fewerRules(r, h.Population.File)
	}
	if r := rand.New(rand.NewPCG(seed, 0x7461736b73)); r.IntN(3) == 0 {
		h.FanOutMax, h.RangesMin = 1+r.IntN(3), r.IntN(4)
	}
	if r := rand.New(rand.NewPCG(seed, 0x646566657273)); r.IntN(2) == 0 {
		h.DisplayEvery = displayEvery
	}
	if r := rand.New(rand.NewPCG(seed, 0x6261746368)); r.IntN(4) != 0 {
		h.BatchMin = 2
	}
	if r := rand.New(rand.NewPCG(seed, 0x77696c64)); r.IntN(2) == 0 {
		h.Population = h.Population.Wild(r)
	}
	h.drawSharing()
	for i := range h.Old + 10 + r.IntN(60) {
		s := h.drawStep(r)
		if i < h.Old {
			s.Turns = 0
			if s.Kind >= Fight {
				s = Step{Kind: Put, Items: []change.Item{h.Population.Item(r)}}
			}
		}
		h.Steps = append(h.Steps, s)
	}
	h.drawCascades()
	h.drawLarge()
	h.drawDeepTree()
	h.drawReplays()
	h.drawRecounts(hot)
	return h
}

// drawHot draws whether rules count by stream position that can, in a third of the histories. Processes alone keep such rules, so no
// function works there.
func (h *History) drawHot() *rand.Rand {
	r := rand.New(rand.NewPCG(h.Seed, 0x686f74))
	if r.IntN(3) > 0 {
		return nil
	}
	if h.Population = h.Population.Hot(r); len(h.Population.Set.Folded()) == 0 {
		return nil
	}
	h.Faults = h.Faults.Less(adversary.OfFunctions)
	if h.Seed%2 == 0 {
		h.LatePolls = hotLatePolls
	}
	return r
}

// hotLatePolls is more than a count waits for records.
const hotLatePolls = 12

// drawRecounts draws what befalls counts, in a history with rules that count by stream position.
func (h *History) drawRecounts(r *rand.Rand) {
	if r == nil {
		return
	}
	befalls := func(f adversary.Fault, times int) {
		for range times {
			h.insert(r, h.Old, Step{Kind: Befall, Fault: f, Turns: drawTurns(r)})
		}
	}
	befalls(adversary.Recounted, r.IntN(4)/2*r.IntN(3))
	if r.IntN(3) == 0 {
		befalls(adversary.Verifying, 1+r.IntN(2))
	}
	if r.IntN(4) == 0 {
		h.Faults = h.Faults.Less(adversary.Losing) // a place to which a checkpoint is set back must be in the stream still
		befalls(adversary.SetBack, 1+r.IntN(4))
		befalls(adversary.RolledOver, r.IntN(3))
		befalls(adversary.Recounted, r.IntN(2))
	} else if r.IntN(16) == 0 {
		h.Faults |= adversary.Losing
		befalls(adversary.Replaced, 1)
	}
}

// terms are the lease terms of histories: one in which a worker has few chances
// to renew its leases between two calls of the conductor's, and one with many. Both leave
// room for what the reader draws, whose looks at the leases are a twentieth of
// it apart, more or less: not a whole number of the crew's steps through time.
var terms = [...]time.Duration{5 * time.Minute, 15 * time.Minute}

// noneStops is a lease term so long that no worker stops because its own clock says so.
const noneStops = 24 * time.Hour

// drawSharing draws the workers that share the stream, and how they do.
func (h *History) drawSharing() {
	r := rand.New(rand.NewPCG(h.Seed, 0x6c6561736573))
	h.Workers = max(1, r.IntN(6))
	h.LeaseTerm = terms[r.IntN(len(terms))]
	h.LeasesTaken, h.Namesakes = r.IntN(4) == 0, r.IntN(3) == 0
	h.Company = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		return
	}
	for range skewsMax {
		skew := time.Duration(r.Int64N(int64(2*skewMax))) - skewMax
		h.Skews = append(h.Skews, skew.Round(time.Second)*time.Duration(r.IntN(2))) // half of the clocks are right
	}
}

const (
	skewMax  = 10 * time.Minute // by which a worker's clock is wrong at most
	skewsMax = 5                // clocks of a history
)

var (
	ruleLine    = regexp.MustCompile(`(?m)^  [\w-]+: *\{ (copy|count|sum|average|min|max|first|last|set|mirror|tree|delete):.*\n`)
	writeShards = regexp.MustCompile(`write_shards: \d`)
)

// fewerRules draws what a rule file was before rules were added to it and write
// shards were changed; "" where that would be no rule file.
func fewerRules(r *rand.Rand, file string) string {
	fewer := ruleLine.ReplaceAllStringFunc(file, func(line string) string {
		if r.IntN(3) == 0 {
			return ""
		}
		return writeShards.ReplaceAllString(line, fmt.Sprintf("write_shards: %d", 1+r.IntN(4)))
	})
	if _, err := population.New("fewer", fewer, projections.Kinds); err != nil {
		return ""
	}
	return fewer
}

// rederiving are faults that have items rederived, which may hide what other
// faults spoil: in half of the histories.
var rederiving = []adversary.Fault{adversary.GivenUp, adversary.Unreadable}

// drawFaults draws which faults a history has: most of the common ones, few of the rare ones.
func drawFaults(r *rand.Rand) adversary.Faults {
	faults := adversary.AllFaults
	if r.IntN(3) > 0 {
		for _, f := range faults.List() {
			if f < adversary.Replayed && r.IntN(4) == 0 { // those that follow are drawn by themselves
				faults = faults.Without(f)
			}
		}
	}
	for _, f := range rederiving {
		if r.IntN(2) == 0 {
			faults = faults.Without(f)
		}
	}
	for _, b := range befalling {
		if b.rare && r.IntN(8) > 0 {
			faults = faults.Without(b.fault)
		}
	}
	return faults
}

func (h *History) drawStep(r *rand.Rand) Step {
	s := Step{Pick: r.Uint64(), Turns: drawTurns(r)}
	switch x := r.IntN(100); {
	case x < 30:
		s.Kind, s.Items = Put, []change.Item{h.Population.Item(r)}
	case x < 45:
		s.Kind = Vary
	case x < 52:
		s.Kind, s.Items = Update, []change.Item{h.Population.Item(r)}
	case x < 64:
		s.Kind = Delete
	case x < 68:
		s.Kind, s.Items = Transact, []change.Item{h.Population.Item(r), h.Population.Item(r), h.Population.Item(r)}
	case x < 73:
		s.Kind = Remember
	case x < 78:
		s.Kind = PutBack
	case x < 80:
		s.Kind = Clone
	case x < 86:
		s.Kind = Vandalize
	case x < 87:
		s.Kind = Fight
	case x < 89:
		s.Kind = Expire
	default:
		s.Kind, s.Fault = Befall, drawBefalling(r)
	}
	return s
}

func drawTurns(r *rand.Rand) int {
	if r.IntN(3) == 0 {
		return 0
	}
	turns := r.IntN(12)
	if r.IntN(5) == 0 {
		turns = r.IntN(120)
	}
	return turns
}

func drawBefalling(r *rand.Rand) adversary.Fault {
	total := 0
	for _, b := range befalling {
		total += b.weight
	}
	x := r.IntN(total)
	for _, b := range befalling {
		if x -= b.weight; x < 0 {
			return b.fault
		}
	}
	return adversary.Restart
}

// company is how many workers are at work beside the one that drains the stream in the end.
func (h *History) company() int {
	if !h.Company || h.LeasesTaken {
		return 0
	}
	return h.Workers - 1
}

// displayEvery is how often a worker writes a display at most, in half of the histories: so long that most changes of a group wait.
const displayEvery = 3 * time.Minute

// String tells the history, for readers who want to know how it could go wrong.
func (h *History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"seed %d, rules %s, %d shards (scattered: %v), corrections at most %d, fan-outs %d, ranges from %d, batches from %d, displays every %v, "+
			"everything delivered again: %v\n",
		h.Seed, h.Population.Name, h.Shards, h.Scatter, h.HealsMax, h.FanOutMax, h.RangesMin, h.BatchMin, h.DisplayEvery, h.Again)
	fmt.Fprintf(&b, "rules are changed: %v, pages of scans: %d\n", h.Changing, h.PageMax)
	fmt.Fprintf(&b, "%d workers, lease term %v, leases taken: %v, under the same names: %v, clocks ahead: %v, drained in company: %v\n",
		h.Workers, h.LeaseTerm, h.LeasesTaken, h.Namesakes, h.Skews, h.company() > 0)
	fmt.Fprintf(&b, "faults: %v\n%s\n", h.Faults.List(), strings.TrimSpace(h.Population.File))
	if h.FirstRules != "" {
		fmt.Fprintf(&b, "the first rules:\n%s\n", strings.TrimSpace(h.FirstRules))
	}
	for i, s := range h.Steps {
		if i == h.Old && i > 0 {
			b.WriteString("-- the stream is enabled --\n")
		}
		fmt.Fprintf(&b, "%3d. %s\n", i+1, s)
	}
	return b.String()
}
