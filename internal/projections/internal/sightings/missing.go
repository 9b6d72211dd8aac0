package sightings

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
)

// A rule may ask for a value on an item that does not exist: the engine writes nothing then, and that is not drift. It
// remembers such targets from its own writes and from passes over the table. It sends no request for this beside the stream.

const (
	// examplesMax is how many missing targets are named.
	examplesMax = 3
	// allMissingMin is how many targets a process that saw records alone must have missed, and found
	// none, before it says that a rule finds none.
	allMissingMin = 3
	// sourcesMax is how many sources of one missing target are told apart; the others are counted.
	sourcesMax = 100
)

// MissingTracker holds the missing targets of one rule, as far as this engine knows.
type MissingTracker struct {
	Rule  *plan.Binding
	Found atomic.Bool  // some target exists
	count atomic.Int64 // of those held

	mu        sync.Mutex
	most      int
	held      map[string]*TargetSources
	beyond    int64 // times that another one was missing, with no room to hold it
	sampled   bool  // the numbers below were estimated from a sample
	moreOf    int64 // targets that are not held
	moreFrom  int64 // sources that point at them
	looked    bool  // a pass over the table told
	unwritten bool  // what it told is not in the state table yet
	otherCase *projections.OtherCase
}

// TargetSources are the sources that point at one target.
type TargetSources struct {
	known   map[change.Key]bool
	counted int64 // beside those that are known
}

// Total is how many sources point at the target.
func (p *TargetSources) Total() int64 { return int64(len(p.known)) + p.counted }

// Add adds a source.
func (p *TargetSources) Add(source change.Key) {
	switch {
	case p.known[source]:
	case len(p.known) >= sourcesMax:
		p.counted++
	default:
		if p.known == nil {
			p.known = map[change.Key]bool{}
		}
		p.known[source] = true
	}
}

// SetCount replaces the known sources by a number.
func (p *TargetSources) SetCount(n int64) { p.known, p.counted = nil, n }

// Remove takes a source away.
func (p *TargetSources) Remove(source change.Key) {
	if p.known[source] {
		delete(p.known, source)
	} else if p.counted > 0 {
		p.counted--
	}
}

// NewMissing makes room for every rule that writes on items which it does not make.
func NewMissing(bindings *plan.Bindings) map[*plan.Binding]*MissingTracker {
	all := map[*plan.Binding]*MissingTracker{}
	for _, b := range bindings.InForce {
		if !b.Rule.MakesItems() {
			all[b] = &MissingTracker{Rule: b, most: TargetsHeld(len(bindings.Set.Rules)), held: map[string]*TargetSources{}}
		}
	}
	return all
}

// NoteTarget notes that a source points at a target that exists.
func (m *MissingTracker) NoteTarget(target string) {
	if m != nil {
		m.Found.Store(true)
		m.Forget(target)
	}
}

// Forget drops a target from those held as missing.
func (m *MissingTracker) Forget(target string) {
	m.AdjustSources(target, func(p *TargetSources) { p.SetCount(0) })
}

// NoteMissing notes that a target does not exist. change adjusts the sources that are known of it. A
// target at which no source points is not held.
func (m *MissingTracker) NoteMissing(target string, change func(*TargetSources)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.held[target] != nil:
	case len(m.held) >= m.most:
		m.beyond++
		return
	default:
		m.held[target] = &TargetSources{}
	}
	m.adjust(target, change)
}

// AdjustSources changes the sources that are known of a target, if the target is held as missing. It takes
// no lock while none is held.
func (m *MissingTracker) AdjustSources(target string, change func(*TargetSources)) {
	if m == nil || m.count.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[target] != nil {
		m.adjust(target, change)
	}
}

func (m *MissingTracker) adjust(target string, change func(*TargetSources)) {
	if change(m.held[target]); m.held[target].Total() == 0 {
		delete(m.held, target)
	}
	m.count.Store(int64(len(m.held)))
}

// report is what is known; false if nothing is missing.
func (m *MissingTracker) report() (projections.MissingTargets, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := TargetsOf(m.Rule.Rule)
	t.Targets, t.Sources, t.About, t.OtherCase = int64(len(m.held))+m.moreOf, m.moreFrom, m.sampled || m.beyond > 0, m.otherCase
	for _, p := range m.held {
		t.Sources += p.Total()
		t.About = t.About || len(p.known) > 0 && p.counted > 0 // a source may be among both
	}
	t.Examples = Examples(m.held)
	t.All = !m.Found.Load() && (m.looked || t.Targets >= allMissingMin)
	return t, t.Targets > 0
}

// TargetsOf names the targets of a rule before any is counted.
func TargetsOf(r *rules.Rule) projections.MissingTargets {
	t := projections.MissingTargets{Rule: r.Name, Entity: r.Pointed().Name}
	if r.ByUnique {
		t.Unique = r.Pointed().Unique
	}
	return t
}

// Examples are those of the targets held that are named.
func Examples[V any](held map[string]V) []string {
	all := slices.Sorted(maps.Keys(held))
	return all[:min(examplesMax, len(all))]
}

// SortMissing sorts by the names of rules.
func SortMissing(all []projections.MissingTargets) {
	slices.SortFunc(all, func(a, b projections.MissingTargets) int { return cmp.Compare(a.Rule, b.Rule) })
}
